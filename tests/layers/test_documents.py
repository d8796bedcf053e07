"""The layers of a document, in their special cases.

`tests/models/test_keyvec.py` compares all of them with NumPy.
"""

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.layers.documents import (
    SentenceEncoder,
    SentenceReader,
    sentence_weights,
    windows_of,
)
from keras_lstm_dssm.text import WordBatch

DOCUMENT = tf.constant([0, 0, 0, 1, 2, 2])
LOGITS = np.random.default_rng(0).normal(size=6) * 3

pytestmark = pytest.mark.usefixtures("float64")


def word_batch(sentences: list[list[int]]) -> WordBatch:
    none = tf.zeros([0], tf.int32)
    words = tf.ragged.constant(sentences, tf.int32)
    lengths = tf.cast(words.row_lengths(), tf.int32)
    return WordBatch(none, none, none, words.to_tensor(), lengths, none)


def test_the_first_of_equal_windows_has_the_gradient():
    encoder = SentenceEncoder(1, 1, [1])
    encoder.kernels[0].assign([[[1.0]]])
    vectors = tf.constant([[2.0], [2.0], [1.0]], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(vectors)
        values = encoder(vectors, word_batch([[2, 1, 0]]), training=True)
    gradient = tape.gradient(values, vectors)
    assert gradient.numpy().tolist() == [[0], [1], [0]]


def test_a_long_sentence_costs_only_its_own_words():
    """There is no padding to the longest sentence."""
    lengths = tf.constant([60, *[4] * 100])
    for width in (3, 4, 5):
        windows = windows_of(lengths, width)[0]
        assert len(windows) == 61 - width + 100 * max(5 - width, 1)


def test_of_nothing_there_are_no_vectors():
    empty, none = word_batch([[0]]), tf.zeros([0], tf.int32)
    empty = empty._replace(words=empty.words[:0], lengths=empty.lengths[:0])
    vectors = tf.zeros([0, 3], tf.float64)
    assert SentenceEncoder(3, 2, [1, 2, 3, 5])(vectors, empty).shape == (0, 8)
    states, logits = SentenceReader(3, 2)(vectors, none, none)
    assert states.shape == (0, 4) and logits.shape == (0,)


def test_without_scores_all_logits_are_zero():
    reader = SentenceReader(3, 2, scores=False)
    assert len(reader.weights) == 6
    index, lengths = tf.constant([0, 1, 1]), tf.constant([1, 2])
    states, logits = reader(tf.ones([2, 3], tf.float64), index, lengths)
    assert states.shape == (3, 4)
    np.testing.assert_array_equal(logits, np.zeros(3))


@pytest.mark.parametrize("size", [1.0, 100.0, 1e4, -1e4])
def test_weights_sum_to_1(size):
    """Even where every p underflows to 0, or is 1."""
    weights = sentence_weights(tf.constant(LOGITS - 5) * size, DOCUMENT)
    assert np.isfinite(weights).all() and np.min(weights) >= 0
    np.testing.assert_allclose(
        tf.math.segment_sum(weights, DOCUMENT), np.ones(3), rtol=1e-12
    )


def test_tiny_probabilities_keep_their_ratio():
    logits = tf.constant([-800.0, -800.0 + np.log(3)], tf.float64)
    weights = sentence_weights(logits, tf.constant([0, 0]))
    np.testing.assert_allclose(weights, [0.25, 0.75], rtol=1e-10)
