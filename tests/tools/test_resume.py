"""lstm-dssm-train --resume: runs that it continues or refuses."""

import json
import pathlib
import shutil

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.tools import train
from tests.training.small_trainings import QUICK


@pytest.fixture
def copy(trained_run, tmp_path) -> pathlib.Path:
    """Copies the trained run, so that a test may change it."""
    return shutil.copytree(trained_run, tmp_path / "run")


def resume(run: pathlib.Path, *flags: str) -> int:
    return train.run(["train", "--resume", f"--output={run}", *flags])


def test_a_finished_run(copy, trained_run, tmp_path, capsys):
    out = tmp_path / "out.json"
    # Given again, the settings are those of the run; the model was lost.
    (copy / "model.keras").unlink()
    assert resume(copy, "--epochs=3", "--batch_size=16", f"--json={out}") == 0
    assert "already finished; to train longer, start anew in another" in (
        capsys.readouterr().out
    )
    assert (
        json.loads(out.read_text())
        == json.loads((trained_run / "metrics.json").read_text())["train"]
    )
    for name in ("history.csv", "config.json"):
        assert (copy / name).read_text() == (trained_run / name).read_text()
    before, after = dssm.load_run(trained_run), dssm.load_run(copy)
    for one, other in zip(before.weights, after.weights, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("flag", "known"),
    [
        ("--epochs=9", "3"),
        ("--data=other.tsv", "hardware"),
        ("--preset=lstm_64", "LSTMEncoder({'cells': 32})"),
        ("--preset=rnn_288", "LSTMEncoder({'cells': 32})"),
        ("--dev=api", "None"),
    ],
)
def test_another_setting(trained_run, tmp_path, flag, known, capsys):
    shutil.copy(trained_run / "config.json", tmp_path)
    assert resume(tmp_path, flag) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"error: {flag}: the run in {tmp_path} was ")
    assert f"{known}; leave the flag out" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("config.json", "{", "config.json: "),
        ("config.json", "{}", "config.json: 'data' is missing"),
        ("metrics.json", "{", "metrics.json: "),
        ("history.csv", "epoch,updates\nx,y\n", "history.csv: "),
    ],
)
def test_a_damaged_run(trained_run, tmp_path, name, content, message, refused):
    shutil.copy(trained_run / "config.json", tmp_path)
    (tmp_path / name).write_text(content)
    refused(resume(tmp_path), message)


def test_a_start_that_failed_can_be_repeated(tmp_path, monkeypatch):
    """A run that could not be saved does not block a new one."""
    monkeypatch.setitem(dssm.PRESETS, "dssm", QUICK)
    (tmp_path / "clicks.tsv").write_text("hex bolt\tsteel hex bolt\n" * 4)
    flags = [
        f"--data={tmp_path / 'clicks.tsv'}",
        "--preset=dssm",
        "--epochs=1",
        f"--output={tmp_path / 'run'}",
    ]

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "save", full)
        assert train.run(["train", *flags]) == 1
    assert train.run(["train", *flags]) == 0
    assert (tmp_path / "run" / "model.keras").exists()


def test_a_run_is_left_alone_by_a_new_one(collection_folder, tmp_path, refused):
    """A new training writes nothing at all into the folder of a run."""
    data = shutil.copytree(collection_folder, tmp_path / "data")
    for log in data.glob("clicks.train.tsv*"):
        log.unlink()
    qrels = data / "qrels"
    shutil.copy(qrels / "dev.tsv", qrels / "train.tsv")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.json").write_text("{}")
    flags = [f"--data={data}", f"--output={tmp_path / 'run'}"]
    refused(train.run(["train", *flags]), "--resume")
    assert [p.name for p in (tmp_path / "run").iterdir()] == ["config.json"]
