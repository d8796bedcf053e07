"""Blocks change nothing: the k best of all, the first of equals first."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_lstm_dssm.export import retriever as module
from keras_lstm_dssm.export.documents import (
    Float32Vectors,
    Int8Vectors,
    int8_codes,
)
from keras_lstm_dssm.export.retriever import nearest

WHOLE = st.integers(-2, 2)


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_blocks_against_a_stable_sort(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 20), "documents")
    batch = data.draw(st.integers(0, 3), "batch")
    width = data.draw(st.integers(0, count), "width")
    rows = st.lists(WHOLE, min_size=2, max_size=2)
    # Whole numbers: sums are exact and many are equal.
    vectors = np.float32(
        data.draw(st.lists(rows, min_size=count, max_size=count))
    )
    queries = np.float32(
        data.draw(st.lists(rows, min_size=batch, max_size=batch))
    ).reshape(batch, 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK", data.draw(st.integers(1, 8), "block"))
        scores, places = nearest(
            tf.constant(queries), Float32Vectors(vectors), tf.constant(width)
        )
    products = queries @ vectors.T
    wanted = np.argsort(-products, axis=1, kind="stable")[:, :width]
    np.testing.assert_array_equal(places, wanted)
    np.testing.assert_array_equal(
        scores, np.take_along_axis(products, wanted, axis=1)
    )


def test_codes_of_known_numbers() -> None:
    codes, scales = int8_codes(np.float32([[0.6, -0.8], [0, 1]]))
    assert codes.dtype == np.int8 and scales.dtype == np.float32
    # 127 * 0.6 / 0.8 = 95.25
    assert codes.tolist() == [[95, -127], [0, 127]]
    np.testing.assert_allclose(scales, [1 / 25154**0.5, 1 / 127], rtol=1e-6)


def test_a_number_takes_four_bytes_or_one() -> None:
    vectors = np.full((10, 96), 96**-0.5, np.float32)
    sizes = [
        sum(variable.numpy().nbytes for variable in kind(vectors).variables)
        for kind in (Float32Vectors, Int8Vectors)
    ]
    assert sizes == [10 * 96 * 4, 10 * (96 + 4)]


def test_int8_scores_are_cosines_of_rounded_vectors() -> None:
    rng = np.random.default_rng(4)
    vectors = rng.normal(size=(3000, 96)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    queries = tf.constant(vectors[:5])
    codes, scales = int8_codes(vectors)
    rounded = codes * scales[:, np.newaxis].astype(np.float64)
    np.testing.assert_allclose(np.linalg.norm(rounded, axis=1), 1, atol=1e-6)
    got = Int8Vectors(vectors).cosines(queries, 7, 3000)
    np.testing.assert_allclose(got, vectors[:5] @ rounded[7:].T, atol=1e-6)
    # Each number is off by half of a step at most, here a few thousandths.
    exact = Float32Vectors(vectors).cosines(queries, 7, 3000)
    assert 1e-4 < np.abs(got - exact).max() < 5e-3
