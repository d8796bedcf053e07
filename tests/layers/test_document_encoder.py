"""Weights of sentences, and the vector of a document, eq. (3)."""

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.layers.documents import DocumentEncoder, sentence_weights
from tests.matchers.ragged_texts import check_central_differences, randomise

RANDOM = np.random.default_rng(0)
DOCUMENT = tf.constant([0, 0, 0, 1, 2, 2])
LOGITS = RANDOM.normal(size=6) * 3
STATES = RANDOM.normal(size=(6, 4))

pytestmark = pytest.mark.usefixtures("float64")


def small_encoder() -> DocumentEncoder:
    encoder = DocumentEncoder(4, 3)
    randomise(encoder)
    return encoder


def by_loops(encoder: DocumentEncoder, logits: np.ndarray) -> np.ndarray:
    weights, bias = (each.numpy() for each in encoder.dense.weights)
    vectors = []
    for rows in ([0, 1, 2], [3], [4, 5]):
        p = 1 / (1 + np.exp(-logits[rows]))
        mean = sum(p[i] / sum(p) * STATES[row] for i, row in enumerate(rows))
        vectors.append(np.tanh(mean @ weights + bias))
    return np.array(vectors)


def test_vectors_equal_loops():
    encoder = small_encoder()
    found = encoder(tf.constant(STATES), tf.constant(LOGITS), DOCUMENT)
    np.testing.assert_allclose(found, by_loops(encoder, LOGITS), rtol=1e-12)


def test_gradients_equal_differences():
    encoder = small_encoder()
    inputs = tf.Variable(STATES), tf.Variable(LOGITS)
    toward = RANDOM.normal(size=(3, 3))

    def loss() -> tf.Tensor:
        return tf.reduce_sum(encoder(*inputs, DOCUMENT) * toward)

    variables = [variable.value for variable in encoder.trainable_variables]
    assert len(variables) == 2
    check_central_differences(loss, [*variables, *inputs])


@pytest.mark.parametrize("size", [1.0, 100.0, 1e4, -1e4])
def test_weights_sum_to_1(size):
    """Even where every p underflows to 0, or is 1."""
    weights = sentence_weights(tf.constant(LOGITS - 5) * size, DOCUMENT)
    assert np.isfinite(weights).all() and np.min(weights) >= 0
    np.testing.assert_allclose(
        tf.math.segment_sum(weights, DOCUMENT), np.ones(3), rtol=1e-12
    )


@pytest.mark.parametrize("logit", [0.0, 2.0, -900.0])
def test_a_constant_p_gives_the_mean(logit):
    weights = sentence_weights(tf.fill([6], tf.constant(logit)), DOCUMENT)
    np.testing.assert_allclose(weights, [1 / 3] * 3 + [1] + [0.5] * 2)


def test_tiny_probabilities_keep_their_ratio():
    logits = tf.constant([-800.0, -800.0 + np.log(3)], tf.float64)
    weights = sentence_weights(logits, tf.constant([0, 0]))
    np.testing.assert_allclose(weights, [0.25, 0.75], rtol=1e-10)


def test_wrong_arguments_are_explained():
    for arguments in ((0, 2), (3, 0)):
        with pytest.raises(InputError, match="must be at least 1, not"):
            DocumentEncoder(*arguments)
