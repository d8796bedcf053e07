"""What users of Keras try with `NesterovMomentum` in a model of their own.

`TRIED` is the table of docs/optimizer.md: what is tried, its result, and the
function that proves it. W is that of Algorithm 1, by NumPy.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from tests import reference
from tests.fresh_process import FreshProcesses
from tests.models.small_towers import QUERIES, TITLES, two_tower
from tests.optimizers.small_regression import (
    BATCH,
    BATCHES,
    RATE,
    START,
    X,
    Y,
    fit,
    gradient,
    loss,
    regression,
)

EPOCHS = 4
STEPS = EPOCHS * BATCHES
SCHEDULE: dict[str, Any] = {"ends": 0.5, "middle": 0.875, "fraction": 0.2}
MOMENTA = [
    dssm.NesterovSchedule(**SCHEDULE).momentum(k, STEPS) for k in range(STEPS)
]
PAGE = Path(__file__).parents[2] / "docs" / "optimizer.md"

Fresh = FreshProcesses


def path() -> list[np.ndarray]:
    """Returns W before the first and after each step."""
    steps = reference.nesterov(gradient, [START], MOMENTA, RATE)
    return [w for (w,) in steps]


def new_model(**options: Any) -> keras.Sequential:
    return regression(dssm.NesterovMomentum(RATE, threshold=None), **options)


def weights(model: keras.Model) -> np.ndarray:
    return model.get_weights()[0]


def check(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


class Seen(keras.callbacks.Callback):
    """Keeps what a function returns of the model, after batches and epochs."""

    def __init__(self, see: Callable[[Any], Any]) -> None:
        super().__init__()
        self.see = see
        self.after_batch: list[Any] = []
        self.after_epoch: list[Any] = []

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.after_batch.append(self.see(self.model))

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.after_epoch.append(self.see(self.model))


class Fail(keras.callbacks.Callback):
    """Raises `ArithmeticError` after a training step."""

    def __init__(self, step: int) -> None:
        super().__init__()
        self.step = step

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if self.model.optimizer.iterations == self.step:
            raise ArithmeticError


def train(
    model: keras.Model, *callbacks: Any, first: bool = False, **options: Any
) -> Any:
    """Fits with the schedule, listed before or after other callbacks."""
    schedule = dssm.NesterovSchedule(**SCHEDULE)
    both = [schedule, *callbacks] if first else [*callbacks, schedule]
    return fit(model, EPOCHS, callbacks=both, **options)


def try_fit(folder: Path, fresh: Fresh) -> None:
    for first in (True, False):
        model, seen = new_model(), Seen(weights)
        train(model, seen, first=first)
        check(seen.after_batch, path()[1:])
        check(seen.after_epoch, path()[BATCHES::BATCHES])
        check(weights(model), path()[-1])


def try_steps_per_execution(folder: Path, fresh: Fresh) -> None:
    model, seen = new_model(steps_per_execution=2), Seen(weights)
    train(model, seen)
    # Of 5 steps: 2, 2 and 1.
    ends = [k for k in range(1, STEPS + 1) if k % BATCHES in (0, 2, 4)]
    check(seen.after_batch, [path()[end] for end in ends])


def try_without_callback(folder: Path, fresh: Fresh) -> None:
    model, seen = new_model(), Seen(weights)
    fit(model, EPOCHS, callbacks=[seen])
    momenta = [0.9] * STEPS
    wanted = reference.nesterov(gradient, [START], momenta, RATE)
    check(weights(model), wanted[-1][0])
    (w,), (before,) = wanted[1], wanted[0]
    check(seen.after_batch[0], w + 0.9 * (w - before))


def try_train_on_batch(folder: Path, fresh: Fresh) -> None:
    model = new_model()
    model.optimizer.set_phases(0.5, 0.875, [4, 16, 20])
    for k in range(STEPS):
        start = BATCH * (k % BATCHES)
        model.train_on_batch(X[start : start + BATCH], Y[start : start + BATCH])
    model.optimizer.finalize_variable_values(model.trainable_variables)
    check(weights(model), path()[-1])


def try_validation_data(folder: Path, fresh: Fresh) -> None:
    history = train(new_model(), validation_data=(X, Y)).history
    check(history["val_loss"], [loss(w) for w in path()[BATCHES::BATCHES]])
    assert history["momentum"] == MOMENTA[BATCHES - 1 :: BATCHES]


def try_evaluate(folder: Path, fresh: Fresh) -> None:
    seen = Seen(lambda model: model.evaluate(X, Y, verbose=0))
    train(new_model(), seen)
    check(seen.after_batch, [loss(w) for w in path()[1:]])


def try_early_stopping(folder: Path, fresh: Fresh) -> None:
    """Validation targets are what the weights of the second epoch give."""
    best = path()[2 * BATCHES]
    model = new_model()
    stop = keras.callbacks.EarlyStopping(
        "val_loss", patience=1, restore_best_weights=True
    )
    history = train(model, stop, validation_data=(X, X @ best)).history
    assert len(history["loss"]) == 3
    check(weights(model), best)


def try_model_checkpoint(folder: Path, fresh: Fresh) -> None:
    """Files within an epoch hold W; a training goes on from such a file."""
    name = str(folder / "{epoch}_{batch}.keras")
    model = new_model()
    train(model, keras.callbacks.ModelCheckpoint(name, save_freq=3))
    saved = sorted(folder.glob("*.keras"))
    assert len(saved) == STEPS // 3
    for file in saved[:2]:
        loaded = keras.saving.load_model(file)
        check(weights(loaded), path()[int(loaded.optimizer.iterations.numpy())])
    goes_on(loaded)
    np.testing.assert_array_equal(weights(loaded), weights(model))


def goes_on(model: keras.Model) -> None:
    """Trains a model on that has been saved inside an epoch."""
    done = int(model.optimizer.iterations.numpy())
    assert 0 < done % BATCHES
    rows = slice(BATCH * (done % BATCHES), None)
    schedule = dssm.NesterovSchedule(STEPS, **SCHEDULE)
    model.fit(
        X[rows], Y[rows], BATCH, shuffle=False, verbose=0, callbacks=[schedule]
    )
    rest = EPOCHS - done // BATCHES - 1
    fit(model, rest, callbacks=[schedule])


def try_backup(folder: Path, fresh: Fresh) -> None:
    backup = keras.callbacks.BackupAndRestore
    undisturbed = new_model()
    train(undisturbed, backup(folder / "undisturbed"))
    check(weights(undisturbed), path()[-1])
    for step in (8, 12):
        files = folder / str(step)
        with pytest.raises(ArithmeticError):
            train(new_model(), backup(files), Fail(step))
        resumed = new_model()
        history = train(resumed, backup(files)).history
        assert len(history["loss"]) == EPOCHS - step // BATCHES
        np.testing.assert_array_equal(weights(resumed), weights(undisturbed))


def try_exception(folder: Path, fresh: Fresh) -> None:
    model = new_model()
    with pytest.raises(ArithmeticError):
        train(model, Fail(7))
    check(weights(model), path()[7])
    goes_on(model)
    check(weights(model), path()[-1])


def try_fresh_process(folder: Path, fresh: Fresh) -> None:
    model = new_model()
    with pytest.raises(ArithmeticError):
        train(model, Fail(7))
    model.save(folder / "model.keras")
    code = """
import json, keras
keras.config.set_floatx("float64")
from tests.callbacks.test_tried_in_keras import goes_on, weights
model = keras.saving.load_model("model.keras")
loaded = weights(model).tolist()
goes_on(model)
print(json.dumps([loaded, weights(model).tolist()]))
"""
    (printed,) = fresh(code, folder=folder)
    loaded, ended = json.loads(printed)
    check(loaded, path()[7])
    goes_on(model)
    np.testing.assert_array_equal(ended, weights(model))


def try_export(folder: Path, fresh: Fresh) -> None:
    model = new_model()
    train(model)
    model.export(folder / "exported", verbose=False)
    loaded = tf.saved_model.load(folder / "exported")
    check(loaded.serve(X), X @ path()[-1])


def try_clipping_of_towers(folder: Path, fresh: Fresh) -> None:
    model = two_tower(run_eagerly=True)
    before = model.get_weights()
    optimizer = dssm.NesterovMomentum(1.0, 0.0, None, clipnorm=1e-3)
    model.compile(optimizer, dssm.CosineSoftmax(), run_eagerly=True)
    model.train_on_batch(QUERIES, TITLES)
    for old, new in zip(before, model.get_weights(), strict=True):
        assert np.linalg.norm(new - old) == pytest.approx(1e-3, rel=1e-2)


def try_val_accuracy(folder: Path, fresh: Fresh) -> None:
    stop = keras.callbacks.EarlyStopping("val_accuracy", patience=1)
    history = two_tower(run_eagerly=True, rate=1e-6).fit(
        QUERIES, TITLES, epochs=5, validation_data=(QUERIES, TITLES),
        callbacks=[stop], verbose=0,
    )  # fmt: skip
    assert stop.monitor_op is keras.ops.greater
    assert len(history.history["val_accuracy"]) == 2


TRIED: dict[str, tuple[str, Callable[[Path, Fresh], None]]] = {
    "`fit`, and weights read in other callbacks": (
        "W after each step, in whatever order the callbacks are listed",
        try_fit,
    ),
    "`compile(steps_per_execution=2)`": (
        "the same; mu may change between the two steps",
        try_steps_per_execution,
    ),
    "`fit` without the callback": (
        "mu is constant; W + mu V within `fit`, W at its end",
        try_without_callback,
    ),
    "`train_on_batch` in a loop": (
        "W + mu V; W after `optimizer.finalize_variable_values"
        "(model.trainable_variables)`",
        try_train_on_batch,
    ),
    "`fit(validation_data=...)`": ("the loss of W", try_validation_data),
    "`evaluate` in a callback": ("the loss of W", try_evaluate),
    "`EarlyStopping(restore_best_weights=True)`": (
        "W of the best epoch",
        try_early_stopping,
    ),
    "`ModelCheckpoint`, also inside an epoch": (
        "the file holds W; training goes on bit-equally",
        try_model_checkpoint,
    ),
    "`BackupAndRestore` after a crash": (
        "bit-equal to a training without a crash",
        try_backup,
    ),
    "`get_weights()` after an exception in `fit`": (
        "W of the last complete step",
        try_exception,
    ),
    "`save`, and `load_model` in another process": (
        "the file holds W; training goes on bit-equally",
        try_fresh_process,
    ),
    "`export` after `fit`": ("the outputs of W", try_export),
    '`TwoTower`, `NesterovMomentum(clipnorm=...)`': (
        "as in Keras",
        try_clipping_of_towers,
    ),
    '`TwoTower`, `EarlyStopping("val_accuracy")`': (
        "stops when the accuracy no longer grows",
        try_val_accuracy,
    ),
}  # fmt: skip


@pytest.mark.parametrize("tried", TRIED)
def test_what_is_tried(tried, float64, tmp_path, fresh_process):
    _, prove = TRIED[tried]
    prove(tmp_path, fresh_process)


def test_the_page_has_the_table():
    lines = PAGE.read_text().splitlines()
    rows = [f"| {tried} | {result} |" for tried, (result, _) in TRIED.items()]
    first = lines.index(rows[0])
    assert lines[first : first + len(rows)] == rows
