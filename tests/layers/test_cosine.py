import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.layers import unit
from keras_lstm_dssm.layers.cosine import cosine_matrix, cosine_pairs
from tests import reference

RANDOM = np.random.default_rng(0)
QUERY, DOCUMENT = RANDOM.normal(size=(4, 6)), RANDOM.normal(size=(3, 6))


def test_matrix_and_pairs_equal_the_formula():
    expected = [[reference.cosine(q, d) for d in DOCUMENT] for q in QUERY]
    matrix = cosine_matrix(tf.constant(QUERY), tf.constant(DOCUMENT))
    pairs = cosine_pairs(QUERY[:, np.newaxis], tf.constant(DOCUMENT))
    np.testing.assert_allclose(matrix, expected, rtol=1e-14)
    np.testing.assert_allclose(pairs, expected, rtol=1e-14)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e12])
def test_unit_vectors_have_length_one(scale):
    for dtype, error in ("float32", 3e-7), ("float64", 1e-15):
        vectors = tf.constant(QUERY * scale, dtype)
        length = np.linalg.norm(unit(vectors), axis=-1)
        np.testing.assert_allclose(length, 1, atol=error)


def test_a_zero_vector_is_the_first_basis_vector_without_gradient():
    zero = tf.zeros([2, 3], tf.float64)
    other = tf.constant([0.6, 0.8, 0.0], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch([zero, other])
        cosine = cosine_pairs(zero, other)
    gradient, toward = tape.gradient(cosine, [zero, other])
    np.testing.assert_allclose(cosine, [0.6, 0.6])
    np.testing.assert_array_equal(gradient, np.zeros((2, 3)))
    np.testing.assert_allclose(toward, [2 * 0.64, -2 * 0.48, 0])


@pytest.mark.parametrize(
    ("dtype", "error"), [("float64", 1e-12), ("float32", 1e-5)]
)
def test_the_gradient_of_a_matrix_is_that_of_the_formula(dtype, error):
    """As TensorFlow derives it; some vectors are zero."""
    query, document = (
        tf.Variable(QUERY, dtype=dtype),
        tf.Variable(DOCUMENT, dtype=dtype),
    )
    query[1].assign(tf.zeros([6], dtype))
    document[2].assign(tf.zeros([6], dtype))
    weights = tf.constant(RANDOM.normal(size=(4, 3)), dtype)
    any_width = tf.TensorSpec([None, None], dtype)
    matrix = tf.function(cosine_matrix, input_signature=[any_width, any_width])
    with tf.GradientTape(persistent=True) as tape:
        fast = matrix(query * 2, document * 2)
        plain = tf.matmul(unit(query * 2), unit(document * 2), transpose_b=True)
        of_fast = tf.reduce_sum(weights * tf.exp(fast))
        of_plain = tf.reduce_sum(weights * tf.exp(plain))
    np.testing.assert_allclose(fast, plain, rtol=error, atol=error)
    for variable in (query, document):
        expected = tape.gradient(of_plain, variable)
        found = tape.gradient(of_fast, variable)
        np.testing.assert_allclose(found, expected, rtol=error, atol=error)


def test_nan_stays_nan():
    """A spoilt vector must not pass for the first basis vector."""
    vectors = unit(tf.constant([[1.0, float("nan")], [3.0, 4.0]]))
    np.testing.assert_array_equal(np.isnan(vectors), [[True] * 2, [False] * 2])
    np.testing.assert_allclose(vectors[1], [0.6, 0.8], rtol=1e-6)
