"""lstm-dssm-table: the choice of a paper, and several data sets."""

import json
import shutil
from pathlib import Path

import pytest

from keras_lstm_dssm.papers.run_systems import run_system
from keras_lstm_dssm.papers.table import make_table
from keras_lstm_dssm.settings.papers import TableSettings
from keras_lstm_dssm.tools import table


def run(data: object, output: Path, *flags: str) -> int:
    return table.run(["table", f"--data={data}", f"--output={output}", *flags])


def run_here(output, rows, settings, seeds) -> dict[str, str]:
    """Does what `run_systems` does, without a process for each system."""
    for name, row in rows.items():
        run_system(output, name, row, settings, seeds)
    return {}


@pytest.fixture
def in_process(monkeypatch) -> None:
    # The package's function `make_table` hides the module of that name.
    monkeypatch.setitem(make_table.__globals__, "run_systems", run_here)


@pytest.fixture
def two_folders(collection_folder, tmp_path) -> list[Path]:
    """Makes two data sets, so that a table of several can be written.

    In the first each query of dev and test has six judged titles, in the
    second three.
    """
    folders = [tmp_path / name for name in ("six", "three")]
    for folder in folders:
        shutil.copytree(collection_folder, folder)
    for split in ("dev", "test"):
        path = folders[1] / f"qrels/{split}.tsv"
        lines = path.read_text().splitlines(keepends=True)
        seen: dict[str, int] = {}
        kept = [lines[0]]
        for line in lines[1:]:
            query, _, grade = line.split("\t")
            wrong = int(int(grade) == 0)
            seen[query] = seen.get(query, 0) + wrong
            if not wrong or seen[query] < 3:
                kept.append(line)
        path.write_text("".join(kept))
    return folders


def test_several_data_sets(two_folders, tmp_path, in_process, capfd):
    output = tmp_path / "out"
    flags = ["--paper=mv_lstm", "--systems=random,document_order"]
    data = ",".join(map(str, two_folders))
    json_file = tmp_path / "all.json"
    assert run(data, output, *flags, f"--json={json_file}") == 0
    summaries = json.loads((output / "table.json").read_text())
    assert json.loads(json_file.read_text()) == summaries
    assert list(summaries) == ["six", "three"]
    for name, summary in summaries.items():
        alone = json.loads((output / name / "table.json").read_text())
        assert alone == summary
        assert summary["settings"]["epochs"] == 7  # the paper's default
    lines = (output / "table.md").read_text().splitlines()
    assert "| System | six P@1 | six MRR | three P@1 | three MRR |" in lines
    random_order = next(x for x in lines if x.startswith("| Random order |"))
    mrr = [100 * sum(1 / r for r in range(1, n + 1)) / n for n in (6, 3)]
    assert random_order == (
        f"| Random order | 16.67 | {mrr[0]:.2f} | 33.33 | {mrr[1]:.2f} |"
    )
    assert (output / "table.html").exists()
    shown = capfd.readouterr().out
    assert "six P@1" in shown


def test_lstm_dssm_is_table_iv(collection_folder, tmp_path, in_process):
    output = tmp_path / "out"
    flags = ["--paper=lstm_dssm", "--systems=random", "--depth=100"]
    assert run(collection_folder, output, *flags) == 0
    summary = json.loads((output / "table.json").read_text())
    assert list(summary["systems"]["random"]["test"]) == ["rerank", "retrieve"]
    settings = summary["settings"]
    defaults = TableSettings("any")
    assert (settings["epochs"], settings["depth"]) == (defaults.epochs, 100)
    assert settings["gammas"] == list(defaults.gammas)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "--paper is missing"),
        (
            ["--paper=mv_lstm", "--gammas=5"],
            "--gammas is no flag of --paper=mv",
        ),
        (["--paper=mv_lstm", "--pairs=5"], "--pairs is no flag of --paper=mv"),
        (["--paper=mv_lstm", "--clicks=5"], "--clicks is no flag of --paper"),
        (["--paper=table_iv", "--select=map"], "--select is no flag of --pape"),
        (["--paper=mv_lstm", "--systems=dssm"], "found 'dssm', expected all"),
        (
            ["--paper=mv_lstm", "--learning_rates=x"],
            "expected numbers from 1e-",
        ),
        (["--paper=mv_lstm", "--data=a/x,b/x"], "found two data sets of one n"),
    ],
)
def test_wrong_flags(collection_folder, tmp_path, refused, flags, message):
    output = tmp_path / "out"
    refused(run(collection_folder, output, *flags), message)
    assert not output.exists()


def test_the_defaults_are_in_the_help(capsys):
    assert table.run(["table", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "By default 30 (table_iv), 7 (mv_lstm), 30 (keyvec)." in text
    assert (
        "By default 0.003,0.01,0.03,0.1 (table_iv), 0.003,0.01,0.03,0.1,0.3"
        in text
    )
