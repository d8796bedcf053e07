"""What training does when it cannot go on: one line, and a good state left."""

import pathlib
import re
import shutil
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.callbacks import explain_failure
from keras_lstm_dssm.data import ClickLog, training_batches
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.optimizers.nesterov_momentum import NesterovSchedule
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.tools import train
from tests.kit.flags import last_of_each
from tests.training.small_trainings import QUICK


@pytest.fixture
def log(tmp_path) -> pathlib.Path:
    path = tmp_path / "clicks.tsv"
    lines = (f"query {i}\ttitle {i % 9} of {i}\n" for i in range(60))
    path.write_text("".join(lines))
    return path


Failing = Callable[..., str]


@pytest.fixture
def failing(log, tmp_path, monkeypatch, capsys) -> Failing:
    """Calls a function with the model after a training step; the error line.

    There are 12 training steps in 2 epochs, with a checkpoint after each."""
    monkeypatch.setitem(dssm.PRESETS, "lstm_32", QUICK)
    given = [f"--data={log}", "--preset=lstm_32", "--epochs=2",
             "--batch_size=10", "--save_minutes=0",
             f"--output={tmp_path / 'run'}"]  # fmt: skip

    def fail(step: int, do: Callable, *flags: str) -> str:
        def end(self: NesterovSchedule, batch: int, logs: Any = None) -> None:
            if self.model.optimizer.iterations == step:
                do(self.model)

        monkeypatch.setattr(NesterovSchedule, "on_train_batch_end", end)
        assert train.program.run(["train", *last_of_each(*given, *flags)]) == 1
        error = capsys.readouterr().err
        assert error.startswith("error: ") and error.count("\n") == 1, error
        return error

    return fail


@pytest.fixture
def model() -> dssm.TwoTower:
    model = dssm.TwoTower(dssm.DSSMEncoder([4]), dssm.DSSMEncoder([4]))
    model.compile(dssm.NesterovMomentum(), dssm.CosineSoftmax())
    return model


def first_texts(log: pathlib.Path, step: int) -> str:
    batches = training_batches(ClickLog(log), 10, epochs=2, seed=0)
    batch = list(batches.as_numpy_iterator())[step]
    pairs = zip(*(column[:3].tolist() for column in batch), strict=True)
    return "; ".join(f"{q.decode()!r} -> {t.decode()!r}" for q, t in pairs)


def check_good_state(run: RunFolder, steps: int) -> None:
    """The checkpoint is of that training step, finite, and the only file."""
    model = run.load_checkpoint()
    assert model.optimizer.iterations == steps
    for variable in model.variables + model.optimizer.variables:
        assert np.isfinite(np.asarray(variable)).all()
    assert [p.name for p in run.checkpoint.parent.iterdir()] == ["last.keras"]
    assert not run.model.exists()


def test_a_weight_that_the_loss_does_not_show(failing, log, tmp_path):
    def spoil(model: dssm.TwoTower) -> None:
        table = model.query_encoder.tables[0].value  # nothing reads the row
        table[50_000].assign(np.full(table.shape[1], np.inf, np.float32))

    error = failing(4, spoil)
    assert error.startswith(
        "error: training step 5: embedding/table of the query encoder is NaN"
    )
    assert first_texts(log, 4) in error
    check_good_state(RunFolder(tmp_path / "run"), 4)


def test_a_log_that_vanishes_meanwhile(failing, log, tmp_path):
    """Each epoch opens the file again, ahead of its first training step."""
    flags = ["--epochs=4", "--batch_size=2", "--save_minutes=9"]
    error = failing(1, lambda _: log.unlink(), *flags)
    assert "clicks.tsv: no such file, expected a click file" in error
    run = RunFolder(tmp_path / "run")
    # The end of an epoch.
    assert run.load_checkpoint().optimizer.iterations in (0, 30, 60, 90)
    assert not run.model.exists()


def test_a_validation_file_that_vanishes_meanwhile(failing, log, tmp_path):
    dev = pathlib.Path(shutil.copy(log, tmp_path / "dev.tsv"))
    flags = [f"--validation={dev}", "--save_minutes=9"]
    error = failing(8, lambda _: dev.unlink(), *flags)
    assert "dev.tsv: no such file, expected a click file" in error
    check_good_state(RunFolder(tmp_path / "run"), 6)  # the first epoch's end


@pytest.mark.parametrize(("now", "expected"), [
    ("a\tb\n", "clicks.tsv: found 1 lines, expected the 60 that were "
     "there when training began: restore the file"),
    ("a\n", "clicks.tsv:1: found no tab"),
], ids=["cut", "overwritten"])  # fmt: skip
def test_a_log_that_changes_meanwhile(now, expected, log, model):
    clicks = ClickLog(log)
    batches = training_batches(clicks, 10, epochs=2, seed=0)
    log.write_text(now)
    with pytest.raises(tf.errors.OpError) as caught:
        list(batches)
    run = RunFolder(log.with_name("run"))
    with pytest.raises(InputError, match=re.escape(expected)):
        explain_failure(caught.value, run, model, [clicks], lambda _: batches)


def test_a_defect_stays_one(log, model):
    """What nobody foresaw is not explained away."""
    error = tf.errors.InternalError(None, None, "a defect")
    run = RunFolder(log.with_name("run"))
    explain_failure(error, run, model, [ClickLog(log)], lambda _: None)


def test_a_tensorboard_log_that_cannot_be_written(log, model):
    """TensorFlow writes it, and has an error of its own for a full disk."""
    run = RunFolder(log.with_name("run"))
    text = f"{run.logs}/train/events.0.v2; No space left on device\nmore"
    error = tf.errors.ResourceExhaustedError(None, None, text)
    with pytest.raises(InputError, match=r"logs: cannot be written to \(.*No"):
        explain_failure(error, run, model, [ClickLog(log)], lambda _: None)
