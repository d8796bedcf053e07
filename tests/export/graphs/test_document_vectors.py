"""Vectors of documents in a graph: float32, and rounded to int8."""

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.export.graphs.retriever import (
    VECTORS,
    Float32Vectors,
    Int8Vectors,
    int8_codes,
    stored_vectors,
)


def test_codes_of_known_numbers():
    codes, scales = int8_codes(np.float32([[0.6, -0.8], [0, 1]]))
    assert codes.dtype == np.int8 and scales.dtype == np.float32
    # 127 * 0.6 / 0.8 = 95.25
    assert codes.tolist() == [[95, -127], [0, 127]]
    np.testing.assert_allclose(scales, [1 / 25154**0.5, 1 / 127], rtol=1e-6)


def test_a_number_takes_four_bytes_or_one():
    vectors = np.full((10, 96), 96**-0.5, np.float32)
    sizes = [
        sum(v.numpy().nbytes for v in stored_vectors(vectors, kind).variables)
        for kind in VECTORS
    ]
    assert sizes == [10 * 96 * 4, 10 * (96 + 4)]


def test_int8_scores_are_cosines_of_rounded_vectors():
    rng = np.random.default_rng(4)
    vectors = rng.normal(size=(3000, 96)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    queries = tf.constant(vectors[:5])
    codes, scales = int8_codes(vectors)
    rounded = codes * scales[:, np.newaxis].astype(np.float64)
    np.testing.assert_allclose(np.linalg.norm(rounded, axis=1), 1, atol=1e-6)
    got = Int8Vectors(codes, scales).cosines(queries, 7, 3000)
    np.testing.assert_allclose(got, vectors[:5] @ rounded[7:].T, atol=1e-6)
    # Each number is off by half of a step at most, here a few thousandths.
    exact = Float32Vectors(vectors).cosines(queries, 7, 3000)
    assert 1e-4 < np.abs(got - exact).max() < 5e-3
