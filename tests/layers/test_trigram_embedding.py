import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm import TrigramEmbedding
from keras_lstm_dssm.text import TRIGRAMS, distinct_words
from tests import reference


def test_is_the_table_times_the_dense_counts(float64: None) -> None:
    """W l(t) for each distinct word, `aaaa` counting `aaa` twice."""
    words = ["good", "aaaa", "g", "go", "good2"]
    layer = TrigramEmbedding(TRIGRAMS, 5)
    dense = np.array([reference.counts(word) for word in words])
    assert dense.max() == 2
    np.testing.assert_allclose(
        layer(distinct_words(tf.constant(words))),
        dense @ layer.table.numpy(),
        rtol=1e-13,
        atol=1e-15,
    )


def test_gradient_is_that_of_the_dense_product_and_touches_few_rows() -> None:
    words = ["go", "good"]
    layer = TrigramEmbedding(TRIGRAMS, 3)
    weights = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    with tf.GradientTape() as tape:
        rows = layer(distinct_words(tf.constant(words)))
        total = tf.reduce_sum(weights * rows)
    gradient = tape.gradient(total, layer.table.value)
    assert isinstance(gradient, tf.IndexedSlices)
    assert len(gradient.indices) == 5  # #go is in both words, but once
    dense = np.array([reference.counts(word) for word in words])
    np.testing.assert_allclose(
        tf.convert_to_tensor(gradient), dense.T @ weights.numpy()
    )


def test_starts_with_small_random_numbers() -> None:
    table = TrigramEmbedding(1000, 8).table.numpy()
    assert -0.05 <= table.min() < -0.045 and 0.045 < table.max() <= 0.05
    ones = TrigramEmbedding(4, 2, initializer=keras.initializers.Ones())
    np.testing.assert_array_equal(ones.table, np.ones((4, 2)))


def test_of_no_words_has_no_rows() -> None:
    layer = TrigramEmbedding(TRIGRAMS, 3)
    assert layer(distinct_words(tf.constant([], tf.string))).shape == [0, 3]
