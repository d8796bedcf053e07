"""lstm-dssm-train as a user runs it."""

import csv
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.tools import train
from tests.training.small_trainings import QUICK

STOPPED_AT = 45
WAITING = f"""
import time
import keras_lstm_dssm as dssm
from keras_lstm_dssm.tools import train
from keras_lstm_dssm.optimizers import NesterovSchedule

dssm.PRESETS["dssm"] = dssm.Recipe("DSSMEncoder", {QUICK.encoder_config})

def wait(callback, batch, logs=None):
    if callback.model.optimizer.iterations == {STOPPED_AT}:
        print("waiting", flush=True)
        time.sleep(600)

NesterovSchedule.on_train_batch_end = wait
raise SystemExit(train.run())
"""


def run(*arguments: str) -> int:
    return train.run(["lstm-dssm-train", *arguments])


@pytest.fixture(autouse=True)
def quick_preset(monkeypatch) -> None:
    """Makes the preset `dssm` quick to train."""
    monkeypatch.setitem(dssm.PRESETS, "dssm", QUICK)


def test_run_folder_has_all_that_is_promised(trained_run):
    config = json.loads((trained_run / "config.json").read_text())
    recipe = dssm.Recipe.from_dict(config["recipe"])
    assert recipe == dssm.PRESETS["lstm_32"].replace(epochs=3, batch_size=16)
    assert config["version"] == dssm.__version__
    with (trained_run / "history.csv").open() as file:
        rows = list(csv.DictReader(file))
    # 120 clicks in batches of 16 are 8 updates an epoch.
    assert [row["epoch"] for row in rows] == ["1", "2", "3"]
    assert [row["updates"] for row in rows] == ["8", "16", "24"]
    assert float(rows[-1]["loss"]) < float(rows[0]["loss"])
    metrics = json.loads((trained_run / "metrics.json").read_text())["train"]
    assert metrics == {name: float(rows[-1][name]) for name in rows[-1]}
    assert (config["pairs"], config["bad_lines"]) == (120, 0)
    assert list((trained_run / "logs").rglob("events.out.tfevents.*"))
    assert (trained_run / "checkpoints" / "last.keras").exists()
    names = {path.name for path in trained_run.rglob("*")}
    assert not [name for name in names if "partial" in name]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--data=nowhere.tsv"], "nowhere.tsv"),
        (["--data=api", "--preset=lstm_97"], "lstm_96"),
        ([], "--data"),
        (["--data={faulty}"], "faulty.tsv:2"),
        (["--data={empty}"], "empty.tsv"),
        (["--resume"], "no run here"),
        (["--data=api", "--epochs=0"], "epochs"),
        (["--data={good}", "--validation=nowhere.tsv"], "nowhere.tsv"),
        (["--data={good}", "--validation={faulty}"], "faulty.tsv:2"),
        (["--data={good}", "--dev=nowhere"], "nowhere: found nothing there"),
        (["--data={good}", "--dev={good}"], "found a file, expected 'api', "),
        (["--data={good}", "--select=mrr@7"], "--select=mrr@7"),
        (["--data={good}", "--patience=0"], "--patience=0"),
        (["--data={good}", "--every=0"], "--every=0"),
        (["--data={good}", "--towers=equal"], "--towers=equal"),
        (["--data={good}", "--seed=-1"], "--seed=-1"),
        (["--data={good}", "--seed=4294967296"], "--seed=4294967296"),
        (["--data={good}", "--threshold=0"], "--threshold=0"),
        (["--data={good}", "--gamma=0"], "--gamma=0"),
        (["--data={good}", "--learning_rate=0"], "--learning_rate=0"),
        (["--data={good}", "--min_relevant=0"], "--min_relevant=0"),
        (["--data={good}", "--gamma=nan"], "--gamma=nan: expected a finite"),
        (["--data={good}", "--gamma=1e39"], "expected a finite number, 1e+30"),
        (["--data={good}", "--learning_rate=inf"], "--learning_rate=inf: exp"),
        (["--data={good}", "--threshold=nan"], "--threshold=nan: expected"),
        (["--data={good}", "--save_minutes=inf"], "--save_minutes=inf: exp"),
        (["--data={good}", "--save_minutes=-1"], "--save_minutes=-1"),
        (["--workers=2", "--start_minutes=inf"], "--start_minutes=inf: expect"),
        (["--workers=2", "--start_minutes=nan"], "--start_minutes=nan: expect"),
        (["--data={good}", "--max_bad_lines=-1"], "--max_bad_lines=-1"),
        (["--data={good}", "--on_bad_line=go"], "--on_bad_line=go"),
        (
            ["--data={faulty}", "--on_bad_line=skip", "--max_bad_lines=0"],
            "faulty.tsv:2: found no tab",
        ),
        (["--data", "{good}", "{faulty}"], "faulty.tsv'; quote globs"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_1(
    arguments, expected, tmp_path, refused
):
    faulty, empty = tmp_path / "faulty.tsv", tmp_path / "empty.tsv"
    good = tmp_path / "good.tsv"
    good.write_text("hex bolt\tsteel hex bolt\n")
    faulty.write_text("hex bolt\tsteel hex bolt\nno tab here\n")
    empty.write_text("")
    code = run(
        *(a.format(faulty=faulty, empty=empty, good=good) for a in arguments),
        f"--output={tmp_path / 'run'}",
    )
    refused(code, expected)
    assert not (tmp_path / "run").exists()


def test_bad_lines_are_skipped_and_reported(tmp_path, capsys):
    lines = [f"query {i}\ttitle {i % 5}".encode() for i in range(40)]
    lines[7:7] = [b"no tab", b"a\tb\tc"]
    lines[30:30] = [b"no tab either", b"caf\xe9\tLatin-1"]
    log, folder = tmp_path / "clicks.tsv", tmp_path / "run"
    log.write_bytes(b"\n".join(lines))
    assert not run(
        f"--data={log}",
        f"--validation={log}",
        "--preset=dssm",
        "--epochs=1",
        "--on_bad_line=skip",
        "--max_bad_lines=4",
        f"--output={folder}",
    )
    out = capsys.readouterr().out
    metrics = json.loads((folder / "metrics.json").read_text())
    for name in ("data", "validation"):
        line = "skipped bad lines: no tab: 2, 2 tabs: 1, invalid UTF-8: 1\n"
        assert out.count(f"--{name}: {line}") == 1
        assert metrics[f"bad_lines/{name}"] == {
            "no tab": 2,
            "2 tabs": 1,
            "invalid UTF-8": 1,
        }
    config = json.loads((folder / "config.json").read_text())
    assert (config["pairs"], config["bad_lines"]) == (40, 4)
    lines.remove(b"no tab")
    log.write_bytes(b"\n".join(lines))
    assert run("--resume", f"--output={folder}") == 1
    assert "found 40 pairs and 3 bad lines, expected the 40 and 4 that" in (
        capsys.readouterr().err
    )


def test_interrupted_and_resumed_equals_uninterrupted(
    collection_folder, tmp_path
):
    """Interrupts a process in the middle of an epoch, and resumes its run."""
    settings = [
        f"--data={collection_folder}",
        "--preset=dssm",
        "--epochs=3",
        "--batch_size=4",
    ]
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING, *settings, f"--output={parts}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    try:
        assert run(*settings, f"--output={whole}") == 0  # meanwhile
        assert process.stdout
        waiting = any(line == "waiting\n" for line in process.stdout)
        process.send_signal(signal.SIGTERM)  # taken as ctrl-c
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert waiting, errors
    assert process.returncode == 130, errors
    assert errors.endswith("interrupted\n")
    stopped = dssm.run_folder.RunFolder(parts).load_checkpoint()
    done = int(stopped.optimizer.iterations.numpy())
    assert 30 <= done == STOPPED_AT < 90
    usable = dssm.load_run(parts).query_encoder.encode(["usable"])
    assert usable.shape == (1, 3)
    assert run("--resume", f"--output={parts}") == 0
    with (parts / "history.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["updates"] for row in rows] == ["30", "60", "90"]
    expected, resumed = dssm.load_run(whole), dssm.load_run(parts)
    for one, other in zip(expected.weights, resumed.weights, strict=True):
        np.testing.assert_array_equal(one, other)
