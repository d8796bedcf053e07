"""Towers train on cached columns as on columns computed in each step."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.models.pairs import HashedPairs
from tests.models.small_towers import QUERIES, TITLES


def towers(
    dtype: str = "float32", negatives: str = "in_batch", tied: bool = False
) -> dssm.TwoTower:
    """The same weights each time."""
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
def test_equal_weights_and_losses(
    negatives: str, tied: bool, dtype: str, error: float
) -> None:
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


def test_the_columns_are_those_of_the_present_weights() -> None:
    """A dataset that is hashed before `adapt` is up to date in `fit`."""
    model, expected = towers(), towers()
    hashed = model.hasher.dataset(batches())
    model.fit(hashed, verbose=0)
    model.set_weights(expected.get_weights())
    model.compile(dssm.NesterovMomentum(0.1), dssm.CosineSoftmax())
    titles = [*TITLES, "steel lamp", "drill bolt"]
    for each in (model, expected):
        each.adapt(titles)
    ((batch, *_),) = model.hasher.dataset(hashed).take(1)
    assert isinstance(batch, HashedPairs)
    vectors = expected.document_encoder.compose(
        batch.document._replace(fixed=None)
    )
    np.testing.assert_allclose(batch.document.fixed, vectors[:, 7:], atol=1e-6)
    one, other = (
        each.fit(batches(), verbose=0).history["loss"]
        for each in (model, expected)
    )
    np.testing.assert_allclose(one, other, rtol=1e-5)


def test_towers_of_other_widths_compute_their_cosines_as_a_whole() -> None:
    query = dssm.CombinedEncoder(3, 4, 15)
    document = dssm.CombinedEncoder(2, 4, 16)
    model = dssm.TwoTower(query, document, negatives="in_batch")
    model.adapt(TITLES)
    model.compile(dssm.NesterovMomentum(0.1), dssm.CosineSoftmax())
    data = batches().map(without_log_q)
    hashed = data.map(lambda *batch: (model.hasher(*batch),))
    np.testing.assert_allclose(
        model.evaluate(data, verbose=0),
        model.evaluate(hashed, verbose=0),
        rtol=1e-6,
    )
