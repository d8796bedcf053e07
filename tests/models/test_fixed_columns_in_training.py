"""Training with cached sketches gives the weights of training without."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from tests.models.small_towers import QUERIES, TITLES

OTHER_TITLES = [*TITLES, *["steel lamp", "drill bolt 8", "hex glue"] * 3]


def towers(
    dtype: str = "float32", negatives: str = "in_batch", tied: bool = False
) -> dssm.TwoTower:
    """Builds two small towers, with the same weights at each call."""
    keras.utils.set_random_seed(5)
    query = dssm.CombinedEncoder(3, 4, 15, dtype=dtype)
    document = dssm.CombinedEncoder(3, 4, 15, length_norm=0.5, dtype=dtype)
    model = dssm.TwoTower(
        query, query if tied else document, negatives=negatives, n=2
    )
    model.adapt([*TITLES, "a lamp"])
    optimizer = dssm.NesterovMomentum(0.1)
    model.compile(optimizer, dssm.CosineSoftmax(dtype=dtype))
    return model


def batches() -> tf.data.Dataset:
    extras = {
        "negatives": tf.constant(TITLES[1:7])[:, tf.newaxis],
        "log_q": tf.random.stateless_uniform([6, 2], [0, 1], -5, -1),
    }
    whole = tf.data.Dataset.from_tensors((QUERIES[:6], TITLES[:6], extras))
    return whole.repeat(3)


def without_log_q(query: Any, document: Any, extras: Any) -> Any:
    return query, document, {"negatives": extras["negatives"]}


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("negatives", ["in_batch", "random"])
@pytest.mark.parametrize(
    ("dtype", "error"), [("float32", 1e-5), ("float64", 1e-12)]
)
def test_equal_weights_and_losses(negatives, tied, dtype, error):
    data = batches()
    if negatives == "random" or dtype == "float64":
        data = data.map(without_log_q)
    plain, cached = (towers(dtype, negatives, tied) for _ in range(2))
    hashed = data.map(lambda *batch: (plain.hasher(*batch),))
    expected = plain.fit(hashed, epochs=2, verbose=0).history
    history = cached.fit(data, epochs=2, verbose=0).history
    assert history["loss"][1] < history["loss"][0]  # it has learnt
    np.testing.assert_allclose(history["loss"], expected["loss"], rtol=error)
    assert history["accuracy"] == expected["accuracy"]
    for one, other in zip(
        cached.get_weights(), plain.get_weights(), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=error)
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
    model, expected = towers(), towers()
    old = expected.get_weights()
    first = model.fit(batches(), verbose=0).history  # fills the cache
    model.set_weights(old)
    model.compile(dssm.NesterovMomentum(0.1), dssm.CosineSoftmax())
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
    model, other = towers(), towers()
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
    model.compile(dssm.NesterovMomentum(0.1), dssm.CosineSoftmax())
    data = batches().map(without_log_q)
    loss, _ = model.evaluate(data, verbose=0)
    history = model.fit(data.take(1), verbose=0).history
    np.testing.assert_allclose(history["loss"], [loss], rtol=1e-6)
