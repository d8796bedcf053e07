"""lstm-dssm-table of each paper as a user runs it."""

import json
import multiprocessing
import os
import shutil
import signal
import threading
import time
from pathlib import Path

import pytest

from keras_lstm_dssm.data import write_collection
from keras_lstm_dssm.files import lock_folder
from keras_lstm_dssm.models import Recipe
from keras_lstm_dssm.papers import PAPERS
from keras_lstm_dssm.papers.run_systems import run_system, run_systems
from keras_lstm_dssm.papers.table import make_table
from keras_lstm_dssm.papers.table_iv import TABLE_IV_ROWS
from keras_lstm_dssm.plain_files import read_csv
from keras_lstm_dssm.settings.programs import TableSettings
from keras_lstm_dssm.tools import table
from tests.conftest import TOPICS
from tests.papers.conftest import with_recipe


@pytest.fixture(autouse=True)
def small_dssm(monkeypatch) -> None:
    recipe = Recipe("DSSMEncoder", {"units": [8, 4]})
    row = with_recipe(TABLE_IV_ROWS["dssm"], recipe)
    paper = PAPERS["table_iv"]._replace(rows={**TABLE_IV_ROWS, "dssm": row})
    monkeypatch.setitem(PAPERS, "table_iv", paper)


def run(data: object, output: Path, *flags: str) -> int:
    return table.program.run(
        ["table", f"--data={data}", f"--output={output}", *flags]
    )


def run_iv(data: object, output: Path, *flags: str) -> int:
    given = ["--paper=table_iv", "--seeds=1"]
    if "--epochs" not in str(flags):
        given.append("--epochs=1")
    small = ["batch_size=16", "learning_rates=0.1", "gammas=10"]
    given += [f"--set={setting}" for setting in small]
    return run(data, output, *given, *flags)


def run_here(output, rows, settings, seeds, *_) -> dict[str, str]:
    """Does what `run_systems` does, without a process for each system."""
    for name, row in rows.items():
        run_system(output, name, row, settings, seeds)
    return {}


# The package's function `make_table` hides the module of that name.
TABLE = make_table.__globals__


@pytest.fixture
def in_process(monkeypatch) -> None:
    monkeypatch.setitem(TABLE, "run_systems", run_here)


@pytest.fixture
def two_folders(collection_folder, tmp_path) -> list[Path]:
    """Makes two data sets, so that a table of several can be written.

    In the first each query of dev and test has six judged titles, in the
    second three.
    """
    six, three = tmp_path / "six", tmp_path / "three"
    shutil.copytree(collection_folder, six)
    titles = {name: title for name, (_, title) in TOPICS.items()}
    queries = {name: query for name, (query, _) in TOPICS.items()}
    judged = {
        name: {other: int(other == name) for other in (name, *others[:2])}
        for name in TOPICS
        for others in [[other for other in TOPICS if other != name]]
    }
    qrels = {"dev": judged, "test": judged}
    write_collection(three, titles, queries, qrels, [*TOPICS.values()])
    return [six, three]


def test_several_data_sets(two_folders, tmp_path, in_process, capfd):
    output, json_file = tmp_path / "out", tmp_path / "all.json"
    flags = ["--paper=mv_lstm", "--systems=random,document_order"]
    data = ",".join(map(str, two_folders))
    assert run(data, output, *flags, f"--json={json_file}") == 0
    summaries = json.loads((output / "table.json").read_text())
    assert json.loads(json_file.read_text()) == summaries
    assert list(summaries) == ["six", "three"]
    for name, summary in summaries.items():
        alone = json.loads((output / name / "table.json").read_text())
        assert alone == summary
        assert summary["settings"]["epochs"] == 7  # the paper's default
    text = (output / "table.md").read_text()
    assert "| System | six P@1 | six MRR | three P@1 | three MRR |\n" in text
    six, three = (100 * sum(1 / r for r in range(1, n + 1)) / n for n in (6, 3))
    assert f"| Random order | 16.67 | {six:.2f} | 33.33 | {three:.2f} |" in text
    assert (output / "table.html").exists()
    assert "six P@1" in capfd.readouterr().out


def test_table_iv_of_a_row(collection_folder, tmp_path, in_process):
    output = tmp_path / "out"
    flags = ["--paper=table_iv", "--systems=random", "--set=depth=100"]
    assert run(collection_folder, output, *flags) == 0
    summary = json.loads((output / "table.json").read_text())
    assert list(summary["systems"]["random"]["test"]) == ["rerank", "retrieve"]
    settings = summary["settings"]
    defaults = TableSettings("any")
    assert (settings["epochs"], settings["depth"]) == (defaults.epochs, 100)
    assert settings["gammas"] == list(defaults.gammas)


def test_the_defaults_are_in_the_help(capsys):
    assert table.program.run(["table", "--helpfull"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "By default 30 (table_iv), 7 (mv_lstm), 30 (keyvec)." in text
    rates = "By default 0.003,0.01,0.03,0.1 (table_iv), 0.003,0.01,0.03,0.1,0.3"
    assert rates in text


def test_table_and_curve(collection_folder, tmp_path, capfd, monkeypatch):
    """Each system has a process, but for the points of the curve."""

    def run_table(*given) -> dict[str, str]:
        return (run_here if given[4:] else run_systems)(*given)

    monkeypatch.setitem(TABLE, "run_systems", run_table)
    output, json_file = tmp_path / "out", tmp_path / "all.json"
    # One system cannot be run: where its folder should be, there is a file.
    blocked = output / "systems/random"
    blocked.parent.mkdir(parents=True)
    blocked.write_text("in the way")
    flags = ["--systems=random,dssm", "--pairs=40"]
    assert run_iv(collection_folder, output, *flags, f"--json={json_file}") == 1
    error = capfd.readouterr().err.splitlines()[-1]
    assert error.startswith(f"error: {output}: the table lacks what failed (ra")
    assert str(blocked) in error
    summary = json.loads((output / "table.json").read_text())
    assert json.loads(json_file.read_text()) == summary
    assert list(summary["systems"]) == ["dssm"]
    assert str(blocked) in summary["failed"]["random"]
    rows = [r for r in read_csv(output / "curve.csv") if r["mode"] == "rerank"]
    assert [(r["system"], r["pairs"]) for r in rows] == [
        ("dssm", "40"), ("dssm", "120"),
    ]  # fmt: skip
    # A third of the clicks, three times the epochs: as many updates.
    assert len(read_csv(next((output / "pairs/40").rglob("*history.csv")))) == 3
    assert (output / "curve.rerank.png").exists()
    assert (output / "curve.retrieve.png").exists()
    assert run_iv(collection_folder, output, "--systems=dssm") == 0
    assert "dssm: finished before" in capfd.readouterr().out
    assert run_iv(collection_folder, output, "--epochs=2") == 1
    error = capfd.readouterr().err
    assert (
        "settings.json: this folder has results with epochs 1, and now it is 2"
        in error
    )
    assert error.count("\n") == 1


def test_one_process_at_a_time(collection_folder, tmp_path, refused):
    output = tmp_path / "out"
    with lock_folder(output, "making a table"):
        code = run_iv(collection_folder, output, "--systems=random")
    refused(code, f"{output}: another process is making a table here")
    assert not (output / "systems").exists()


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def kill_child() -> None:
    multiprocessing.active_children()[0].kill()


@pytest.mark.parametrize(("event", "code", "message"), [
    (interrupt, 130, "interrupted\n"),
    (kill_child, 1, "(dssm: its process ended with code -9)\n"),
])  # fmt: skip
def test_a_sudden_end_leaves_no_half_result(
    collection_folder, tmp_path, capfd, event, code, message
):
    folder = tmp_path / "out/systems/dssm"

    def strike() -> None:
        while not folder.exists():  # made by the system's own process
            time.sleep(0.01)
        event()

    threading.Thread(target=strike, daemon=True).start()
    flags = ["--systems=dssm", "--epochs=1000000"]
    assert run_iv(collection_folder, tmp_path / "out", *flags) == code
    assert capfd.readouterr().err.endswith(message)
    assert not multiprocessing.active_children()
    assert not list(folder.glob("seed_*"))
