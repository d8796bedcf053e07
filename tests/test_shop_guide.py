"""docs/shop.md: its commands, run in their order, print what it shows."""

import contextlib
import importlib
import io
import json
import re
import shlex
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import lstm_dssm_programs
from keras_lstm_dssm import PRESETS
from keras_lstm_dssm.data import Collection
from keras_lstm_dssm.text import normalize
from tests.fresh_process import FreshProcesses
from tests.kit.hardware_shop import write_shop
from tests.test_pages import TEXTS

PROGRAMS = {
    f"lstm-dssm-{name}": module
    for name, module in lstm_dssm_programs.PROGRAMS.items()
}
pytestmark = pytest.mark.usefixtures("remembered_runs")
BLOCKS = re.findall(r"(?ms)^```(\w+)\n(.*?)^```", TEXTS["docs/shop"])


class Shown(NamedTuple):
    """What the page says that commands print, and what they printed."""

    commands: str
    shown: str
    printed: str


def run(line: str, folder: Path) -> str:
    """Runs a line of the page in a folder; returns what it prints."""
    name, *flags = shlex.split(line)
    if name not in PROGRAMS:
        done = subprocess.run(
            line, shell=True, cwd=folder, check=True, capture_output=True
        )
        return done.stdout.decode("utf-8-sig")
    program = importlib.import_module(PROGRAMS[name]).program
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(io.StringIO()) as printed,
    ):
        patch.chdir(folder)
        assert program.run([name, *flags]) == 0, line
    return printed.getvalue()


def serve(fresh_process: FreshProcesses, line: str, folder: Path) -> None:
    """Starts the server at free ports, and asks for its page."""
    _, *flags = shlex.split(line.replace("=8501", "=0"))
    words = "serve", *flags, "--port=0"
    with fresh_process.program(*words, folder=folder) as process:
        for said in process.stdout:
            if found := re.search(r"http://127\.0\.0\.1:\d+/", said):
                break
        with urllib.request.urlopen(found[0]) as reply:
            assert b"<title>" in reply.read()
        process.terminate()


@pytest.fixture(scope="module")
def guided(fresh_process, tmp_path_factory) -> tuple[Path, list[Shown]]:
    """Runs the page; returns its folder and what was printed."""
    folder = tmp_path_factory.mktemp("shop")
    write_shop(folder)
    found, commands, printed = [], "", ""
    for language, block in BLOCKS:
        if language == "text":
            found.append(Shown(commands, block, printed))
            commands = printed = ""
        elif language == "sh":
            commands += block
            for line in block.replace("\\\n", " ").splitlines():
                if line.startswith("lstm-dssm-serve"):
                    serve(fresh_process, line, folder)
                else:
                    printed += run(line, folder)
    return folder, found


def comparable(text: str, folder: Path) -> Iterator[str]:
    """Yields lines without what differs among processors.

    Trainings there have other last bits: decimals, ranks, the best epoch, and
    which size of a product is found first.
    """
    for line in text.replace(f"{folder}/", "").splitlines():
        line = re.sub(r"^ +\d+  +\d\.\d+  \w+  (.+) \S+$", r"hit: \1", line)
        line = re.sub(r"[-+]?\d+\.\d+( +(\d+|none) )?", "# ", line)
        line = line.replace("p < #", "p = #")
        line = re.sub(r"kept epoch \d+ of \d+", "kept epoch", line)
        yield " ".join(line.split())


def test_the_commands_print_what_the_page_shows(guided):
    """`...` stands for any lines."""
    folder, found = guided
    assert len(found) == 8
    for commands, shown, printed in found:
        lines, position, skips = [*comparable(printed, folder)], 0, False
        for line in comparable(shown, folder):
            if line == "...":
                skips = True
                continue
            assert line in lines[position:], (commands, line, printed)
            place = lines.index(line, position)
            assert skips or place == position, (commands, line, printed)
            position, skips = place + 1, False
        assert skips or position == len(lines), (commands, printed)


def words_by_split(shop: Collection) -> dict[str, set[str]]:
    """Returns the queries of dev and test, as their words."""
    return {
        split: {*normalize([shop.queries[q] for q in shop.qrels(split)])}
        for split in ("dev", "test")
    }


def test_three_nights(guided, tmp_path, monkeypatch):
    """The script of the page, with a small encoder and an epoch."""
    small = PRESETS["dssm"].with_encoder(units=[32])
    monkeypatch.setitem(PRESETS, "dssm", small)
    folder, _ = guided
    for path in folder.glob("*.csv"):
        shutil.copy(path, tmp_path)
    shutil.copytree(folder / "SHOP", tmp_path / "SHOP")
    first = words_by_split(Collection(tmp_path / "SHOP"))
    (script,) = (block for language, block in BLOCKS if language == "bash")
    start, *lines = script.replace("\\\n", " ").splitlines()
    assert start == "set -e # night.sh LOG OLD_RUN NEW_RUN"
    train = (
        "lstm-dssm-train --data=SHOP --preset=dssm --towers=tied --epochs=1"
        " --output=RUN-1"
    )
    run(train, tmp_path)
    logs = sorted(tmp_path.glob("log-*.csv"))
    assert len(logs) == 2
    for night, log in enumerate(logs, 2):
        if night == 2:  # with a product that nobody has clicked
            shutil.copy(
                tmp_path / "catalogue-3.csv", tmp_path / "catalogue.csv"
            )
        for line in lines:
            given = (log.name, f"RUN-{night - 1}", f"RUN-{night}")
            for number, value in enumerate(given, 1):
                line = line.replace(f'"${number}"', value)
            line = line.replace("--epochs=6", "--epochs=1")
            run(line, tmp_path)
        shop = Collection(tmp_path / "SHOP")
        trained = shop.training_log(write_to=tmp_path / "trained.tsv")
        known = {*normalize([query for query, _ in trained])}
        data = json.loads((tmp_path / "SHOP" / "data.json").read_text())
        rows = data["counts"]["log"]
        assert rows["clicks"] > 300 and rows["unknown id"] < 20
        for split, words in words_by_split(shop).items():
            assert words >= first[split]
            assert not words & known
        assert (tmp_path / "MODELS" / "retriever" / f"{night - 1}").is_dir()
        search = 'lstm-dssm-search --models=MODELS --k=1 "pipe wrench"'
        assert 'Pipe Wrench 14"' in run(search, tmp_path)
