"""Training with cached sketches gives the weights of training without."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from tests.kit.equal import check_equal
from tests.models.small_towers import QUERIES, TITLES, one_batch

OTHER_TITLES = [*TITLES, *["steel lamp", "drill bolt 8", "hex glue"] * 3]


def towers(
    dtype: str = "float32", negatives: str = "in_batch", tied: bool = False,
    **options: Any,
) -> dssm.TwoTower:  # fmt: skip
    """Builds two small towers, with the same weights at each call."""
    keras.utils.set_random_seed(5)
    query = dssm.CombinedEncoder(3, 4, 15, dtype=dtype)
    document = dssm.CombinedEncoder(3, 4, 15, length_norm=0.5, dtype=dtype)
    model = dssm.TwoTower(
        query, query if tied else document, negatives=negatives, n=2
    )
    model.adapt([*TITLES, "a lamp"])
    optimizer = dssm.NesterovMomentum(0.1)
    model.compile(optimizer, dssm.CosineSoftmax(dtype=dtype), **options)
    return model


def batches() -> tf.data.Dataset:
    extras = {
        "negatives": tf.constant(TITLES[1:7])[:, tf.newaxis],
        "log_q": tf.random.stateless_uniform([6, 2], [0, 1], -5, -1),
    }
    return one_batch(QUERIES[:6], TITLES[:6], extras).repeat(3)


def without_log_q(query: Any, document: Any, extras: Any) -> Any:
    return query, document, {"negatives": extras["negatives"]}


@pytest.mark.parametrize(
    ("dtype", "negatives", "tied", "error"),
    [
        ("float32", "in_batch", True, 1e-5),
        ("float32", "random", False, 1e-5),
        ("float64", "in_batch", False, 1e-12),
        ("float64", "random", True, 1e-12),
    ],
)
def test_equal_weights_and_losses(dtype, negatives, tied, error):
    """Each two of the three values are together once."""
    data = batches()
    if negatives == "random" or dtype == "float64":
        data = data.map(without_log_q)
    # The first of the four in a graph, in which batches are cached, too.
    eager = (dtype, negatives) != ("float32", "in_batch")
    plain, cached = (
        towers(dtype, negatives, tied, run_eagerly=eager) for _ in range(2)
    )
    hashed = data.map(lambda *batch: (plain.hasher(*batch),))
    expected = plain.fit(hashed, epochs=2, verbose=0).history
    history = cached.fit(data, epochs=2, verbose=0).history
    assert history["loss"][1] < history["loss"][0]  # it has learnt
    np.testing.assert_allclose(
        history["loss"], expected["loss"], rtol=error, atol=error / 100
    )
    assert history["accuracy"] == expected["accuracy"]
    check_equal(cached, plain, atol=error)
    np.testing.assert_allclose(
        cached.evaluate(data, verbose=0),
        plain.evaluate(hashed, verbose=0),
        rtol=10 * error,
    )


class Adapts(keras.callbacks.Callback):
    """Changes the word weights after `fit` has built its dataset."""

    def on_train_begin(self, logs: Any = None) -> None:
        self.model.adapt(OTHER_TITLES)


@pytest.mark.parametrize("in_callback", [False, True])
def test_the_columns_are_those_of_the_present_weights(in_callback):
    model, expected = (towers(run_eagerly=True) for _ in range(2))
    old = expected.get_weights()
    first = model.fit(batches(), verbose=0).history  # fills the cache
    model.set_weights(old)
    optimizer = dssm.NesterovMomentum(0.1)
    model.compile(optimizer, dssm.CosineSoftmax(), run_eagerly=True)
    expected.adapt(OTHER_TITLES)
    if not in_callback:
        model.adapt(OTHER_TITLES)
    callbacks = [Adapts()] if in_callback else []
    losses = model.fit(batches(), verbose=0, callbacks=callbacks).history
    hashed = batches().map(lambda *batch: (expected.hasher(*batch),))
    np.testing.assert_allclose(
        losses["loss"],
        expected.fit(hashed, verbose=0).history["loss"],
        rtol=1e-5,
    )
    assert abs(losses["loss"][0] - first["loss"][0]) > 1e-4


def test_hashed_datasets_serve_every_model_with_this_hashing():
    model, other = (towers(run_eagerly=True) for _ in range(2))
    other.adapt(OTHER_TITLES)
    model.fit(batches(), verbose=0)
    hashed = model.hasher.dataset(batches())
    np.testing.assert_allclose(
        other.evaluate(hashed, verbose=0),
        other.evaluate(batches(), verbose=0),
        rtol=1e-6,
    )


def test_towers_of_other_widths_compute_their_cosines_as_a_whole():
    query = dssm.CombinedEncoder(3, 4, 15)
    document = dssm.CombinedEncoder(2, 4, 16)
    model = dssm.TwoTower(query, document, negatives="in_batch")
    model.adapt(TITLES)
    optimizer = dssm.NesterovMomentum(0.1)
    model.compile(optimizer, dssm.CosineSoftmax(), run_eagerly=True)
    data = batches().map(without_log_q)
    loss, _ = model.evaluate(data, verbose=0)
    history = model.fit(data.take(1), verbose=0).history
    np.testing.assert_allclose(history["loss"], [loss], rtol=1e-6)
