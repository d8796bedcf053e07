"""lstm-dssm-table_iv as a user runs it."""

import json
import multiprocessing
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from keras_lstm_dssm.files import lock_folder, read_csv
from keras_lstm_dssm.models import Recipe
from keras_lstm_dssm.papers import PAPERS
from keras_lstm_dssm.papers.run_systems import run_system, run_systems
from keras_lstm_dssm.papers.table_iv import TABLE_IV_ROWS
from keras_lstm_dssm.tools import table_iv
from tests.papers.conftest import with_recipe

FLAGS = (
    "--seeds=1", "--epochs=1", "--batch_size=16", "--learning_rates=0.1",
    "--gammas=10",
)  # fmt: skip


@pytest.fixture(autouse=True)
def small_dssm(monkeypatch) -> None:
    recipe = Recipe("DSSMEncoder", {"units": [8, 4]})
    row = with_recipe(TABLE_IV_ROWS["dssm"], recipe)
    rows = {**TABLE_IV_ROWS, "dssm": row}
    monkeypatch.setitem(
        PAPERS, "table_iv", PAPERS["table_iv"]._replace(rows=rows)
    )


def run(data: object, output: Path, *flags: str) -> int:
    return table_iv.run(
        ["table_iv", f"--data={data}", f"--output={output}", *FLAGS, *flags]
    )


def run_here(output, rows, settings, seeds, *options) -> dict[str, str]:
    """Runs the systems of a learning curve without a process for each."""
    if not options:  # the table itself
        return run_systems(output, rows, settings, seeds)
    for name, row in rows.items():
        run_system(output, name, row, settings, seeds)
    return {}


def test_table_and_curve(collection_folder, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr("keras_lstm_dssm.papers.table.run_systems", run_here)
    output = tmp_path / "out"
    # One system cannot be run: where its folder should be, there is a file.
    blocked = output / "systems/random"
    blocked.parent.mkdir(parents=True)
    blocked.write_text("in the way")
    flags = ["--systems=random,dssm", "--pairs=40"]
    json_file = tmp_path / "all.json"
    assert run(collection_folder, output, *flags, f"--json={json_file}") == 1
    error = capfd.readouterr().err.splitlines()[-1]
    assert error.startswith(f"error: {output}: the table lacks what failed (ra")
    assert str(blocked) in error
    table = json.loads((output / "table.json").read_text())
    assert json.loads(json_file.read_text()) == table
    assert list(table["systems"]) == ["dssm"]
    assert str(blocked) in table["failed"]["random"]
    rows = [r for r in read_csv(output / "curve.csv") if r["mode"] == "rerank"]
    assert [(r["system"], r["pairs"]) for r in rows] == [
        ("dssm", "40"), ("dssm", "120"),
    ]  # fmt: skip
    # A third of the clicks, three times the epochs: as many updates.
    assert len(read_csv(next((output / "pairs/40").rglob("*history.csv")))) == 3
    assert (output / "curve.rerank.png").exists()
    assert (output / "curve.retrieve.png").exists()
    capfd.readouterr()
    assert run(collection_folder, output, "--systems=dssm") == 0
    assert "dssm: finished before" in capfd.readouterr().out
    assert run(collection_folder, output, "--epochs=2") == 1
    error = capfd.readouterr().err
    assert "settings.json: found epochs 1, expected 2" in error
    assert error.count("\n") == 1


def test_one_process_at_a_time(collection_folder, tmp_path, capfd):
    output = tmp_path / "out"
    with lock_folder(output, "making a table"):
        assert run(collection_folder, output, "--systems=random") == 1
    error = capfd.readouterr().err
    assert f"{output}: another process is making a table here" in error
    assert not (output / "systems").exists()


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def kill_child() -> None:
    multiprocessing.active_children()[0].kill()


@pytest.mark.parametrize(
    ("event", "code", "message"),
    [
        (interrupt, 130, "interrupted\n"),
        (kill_child, 1, "(dssm: its process ended with code -9)\n"),
    ],
)
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
    assert run(collection_folder, tmp_path / "out", *flags) == code
    assert capfd.readouterr().err.endswith(message)
    assert not multiprocessing.active_children()
    assert not list(folder.glob("seed_*"))


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--systems=lstm", "found 'lstm', expected all, or some of random"),
        ("--misspelled=20", "--misspelled=20: expected numbers from 0 to 1"),
        ("--gammas=", "--gammas: found nothing, expected a number"),
        ("--pairs=120", "--pairs=120: found a log of 120 clicks, expected"),
        ("--pairs=many", "--pairs=many: expected numbers"),
        ("--clicks=60 --pairs=100", "--pairs=100: found a log of 6"),
    ],
)
def test_wrong_flags(collection_folder, tmp_path, refused, flag, message):
    refused(run(collection_folder, tmp_path / "out", *flag.split()), message)
    assert not (tmp_path / "out/systems").exists()
