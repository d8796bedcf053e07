"""Weights are those of the last training step whenever they are read."""

import functools
import pathlib
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from tests.kit.equal import check_equal
from tests.models import small_towers

QUERIES = [f"{name} of kind" for name in "abcdefghijkl"]
TITLES = [f"thing {name}" for name in "abcdefghijkl"]


two_tower = functools.partial(small_towers.two_tower, rate=0.3)


def fit(model: dssm.TwoTower, *callbacks: keras.callbacks.Callback) -> None:
    """Six steps, each on other texts."""
    model.fit(
        QUERIES, TITLES, 2, verbose=0, shuffle=False, callbacks=list(callbacks)
    )


class AfterBatch(keras.callbacks.Callback):
    """Calls a function with the model after one batch of each epoch."""

    def __init__(self, batch: int, do: Callable[[Any], Any]) -> None:
        super().__init__()
        self.batch = batch
        self.do = do
        self.result: Any = None

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if batch == self.batch:
            self.result = self.do(self.model)


def saved_weights(model: dssm.TwoTower, folder: pathlib.Path) -> Any:
    model.save_weights(folder / "model.weights.h5")
    other = two_tower(lazy=model.optimizer.lazy)
    other.load_weights(folder / "model.weights.h5")
    return [variable.numpy() for variable in other.trainable_variables]


def saved_model(model: dssm.TwoTower, folder: pathlib.Path) -> Any:
    keras.saving.save_model(model, folder / "model.keras")
    loaded = keras.saving.load_model(folder / "model.keras")
    saved = [variable.numpy() for variable in loaded.trainable_variables]
    # The velocities belong to the weights: the next step is as it would be.
    loaded.train_on_batch(QUERIES[:2], TITLES[:2])
    return saved + loaded.get_weights()


def test_within_an_epoch(warm, tmp_path):
    """As they are where all rows move in every step."""
    reads: list[Callable[[Any], Any]] = [
        lambda model: [model.query_encoder.encode(QUERIES)],
        lambda model: model.get_weights(),
        lambda model: saved_model(model, tmp_path),
        lambda model: saved_weights(model, tmp_path),
        lambda model: [model.document_encoder(tf.constant(TITLES))],
    ]
    found = []
    for lazy in (True, False):
        callbacks = [AfterBatch(n + 1, read) for n, read in enumerate(reads)]
        fit(warm(two_tower, lazy=lazy), *callbacks)
        found.append([callback.result for callback in callbacks])
    for lazy_values, dense_values in zip(*found, strict=True):
        check_equal(lazy_values, dense_values, atol=1e-6)
    # Rows do lag behind: without the hook, some differ by far more.
    model = warm(two_tower, lazy=True)
    raw = AfterBatch(4, lambda m: m.query_encoder.embedding.table.numpy())
    fit(model, raw)
    behind = raw.result - found[1][2][0]
    assert abs(behind).max() > 1e-3


def test_reading_the_weights_changes_no_later_step(warm):
    one, other = (warm(two_tower, lazy=True) for _ in range(2))
    fit(one)
    fit(other, *(AfterBatch(n, lambda m: m.get_weights()) for n in range(5)))
    check_equal(one, other, atol=1e-6)


@pytest.mark.parametrize("batch", [2, 5])
def test_weights_that_are_set_stay(batch, warm):
    """No update that is pending, or of the epoch's end, changes them."""
    model = warm(two_tower, lazy=True)
    start = [weight + 1 for weight in model.get_weights()]

    def replace(model: dssm.TwoTower) -> Any:
        model.set_weights(start)
        return model.get_weights()

    replaced = AfterBatch(batch, replace)
    stop = AfterBatch(batch, lambda m: setattr(m, "stop_training", True))
    model.fit(
        QUERIES[: 2 * batch + 2], TITLES[: 2 * batch + 2], 2, verbose=0,
        shuffle=False, callbacks=[replaced, stop],
    )  # fmt: skip
    for found in (replaced.result, model.get_weights()):
        check_equal(found, start)


@pytest.mark.parametrize("lazy", [True, False])
def test_a_frozen_tower_stays_as_it_is_and_goes_on(lazy):
    """Also with the optimizer that has moved it before."""
    options = {"run_eagerly": not lazy}
    model = two_tower(lazy=lazy, **options)
    query, document = model.towers
    fit(model)
    document.trainable = False
    model.compile(model.optimizer, dssm.CosineSoftmax(), **options)
    before, queries = document.get_weights(), query.get_weights()
    fit(model)
    check_equal(document, before)
    assert abs(query.get_weights()[0] - queries[0]).max() > 0.01
    document.trainable = True
    model.compile(model.optimizer, dssm.CosineSoftmax(), **options)
    check_equal(document, before)
    fit(model)
    assert abs(document.get_weights()[0] - before[0]).max() > 0.01


def bias(model: dssm.TwoTower) -> Any:
    """A weight of which the loss of every batch is a function."""
    return model.query_encoder.trainable_variables[-1]


@pytest.mark.parametrize("eager", [False, True], ids=["graph", "eager"])
@pytest.mark.parametrize("lazy", [True, False], ids=["lazy", "dense"])
def test_a_step_that_failed_leaves_the_weights(lazy, eager):
    """W of (6), not the look-ahead point W + mu V; and training goes on."""
    model = two_tower(lazy=lazy, run_eagerly=eager)
    batches = [(QUERIES[n : n + 2], TITLES[n : n + 2]) for n in range(0, 12, 2)]
    before = model.get_weights()
    for batch in batches[:3]:
        model.train_on_batch(*batch)
    good = model.get_weights()
    moved = [abs(a - b).max() for a, b in zip(good, before, strict=True)]
    assert min(moved) > 1e-3  # so that V is no zero
    value = bias(model).numpy()
    bias(model).assign(np.full_like(value, np.nan))
    with pytest.raises(tf.errors.InvalidArgumentError, match="NaN or infin"):
        model.train_on_batch(*batches[3])
    assert np.isnan(bias(model).numpy()).all()
    bias(model).assign(value)
    check_equal(model, good, atol=1e-6)
    assert int(model.optimizer.iterations.numpy()) == 3
    model.reset_metrics()
    assert np.isfinite(model.train_on_batch(*batches[4])[0])
    assert int(model.optimizer.iterations.numpy()) == 4
