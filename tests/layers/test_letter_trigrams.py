"""Texts to ids of letter trigrams, and ids to W l(t)."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm import LetterTrigrams, TrigramEmbedding
from keras_lstm_dssm.layers.letter_trigrams import gather_sum
from keras_lstm_dssm.text.word_hashing import distinct_words
from tests import reference

TEXTS = ["Hotels in Shanghai", "", "a  b", "上海 hotel", "hotels"]


def in_a_function(layer: Any) -> Any:
    signature = [tf.TensorSpec([None], tf.string)]
    return tf.function(layer, input_signature=signature)


def in_a_saved_model(layer: Any, folder: Path) -> Any:
    module = tf.Module()
    module.hash = in_a_function(layer)
    tf.saved_model.save(module, str(folder))
    return tf.saved_model.load(str(folder)).hash


@pytest.mark.parametrize("oov_buckets", [0, 8192])
def test_a_text_has_the_same_ids_wherever_it_is_hashed(oov_buckets, tmp_path):
    layer = LetterTrigrams(oov_buckets=oov_buckets)
    expected = layer(TEXTS).to_list()
    assert expected[2] == [[37], [74]]
    assert [len(text) for text in expected] == [3, 1, 2, 2, 1]
    assert expected[0][0] == expected[4][0]
    texts = tf.data.Dataset.from_tensor_slices(TEXTS)
    for batches in (
        texts.map(lambda text: layer(text[tf.newaxis])),
        texts.batch(2).map(layer),
        [in_a_function(layer)(tf.constant(TEXTS))],
        [in_a_saved_model(layer, tmp_path)(tf.constant(TEXTS))],
    ):
        assert [row for batch in batches for row in batch.to_list()] == expected
    assert in_a_function(layer)(tf.constant([], tf.string)).to_list() == []


def test_gradient_is_that_of_the_dense_product_and_touches_few_rows():
    words = ["go", "good"]
    layer = TrigramEmbedding(3)
    weights = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    with tf.GradientTape() as tape:
        rows = layer(distinct_words(tf.constant(words)))
        total = tf.reduce_sum(weights * rows)
    gradient = tape.gradient(total, layer.table.value)
    assert isinstance(gradient, tf.IndexedSlices)
    assert len(gradient.indices) == 5  # both words have #go, which is read once
    dense = np.array([reference.counts(word) for word in words])
    np.testing.assert_allclose(
        tf.convert_to_tensor(gradient), dense.T @ weights.numpy()
    )


def test_starts_with_small_random_numbers():
    table = TrigramEmbedding(8, 1000).table.numpy()
    assert -0.05 <= table.min() < -0.045 and 0.045 < table.max() <= 0.05
    ones = TrigramEmbedding(2, 4, initializer=keras.initializers.Ones())
    np.testing.assert_array_equal(ones.table, np.ones((4, 2)))


def test_of_no_words_has_no_rows():
    layer = TrigramEmbedding(3)
    assert layer(distinct_words(tf.constant([], tf.string))).shape == [0, 3]


VALUES = np.array([[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]])
WEIGHTS = np.array([[1.0, 3.0], [5.0, 7.0], [11.0, 13.0], [17.0, 19.0]])


@pytest.mark.parametrize("index", [[1, 0, 1, 1], [2, 2, 2, 2], [0, 1, 2, 0]])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("segment", [None, [0, 0, 1, 3], [0, 1, 2, 3]])
def test_gather_sum_equals_a_product_with_the_counts(index, segment, training):
    """Values and gradients, with unused rows and an empty segment."""
    counts = np.zeros((4, 3))
    for row, s in zip(index, segment or range(4), strict=True):
        counts[s, row] += 1
    values = tf.constant(VALUES)
    with tf.GradientTape() as tape:
        tape.watch(values)
        total = gather_sum(values, tf.constant(index), segment, 4, training)
        weighted = tf.reduce_sum(WEIGHTS * total)
    np.testing.assert_array_equal(total, counts @ VALUES)
    gradient = tf.convert_to_tensor(tape.gradient(weighted, values))
    np.testing.assert_array_equal(gradient, counts.T @ WEIGHTS)


def test_gather_sum_of_no_rows_is_empty():
    none = tf.constant([], tf.int32)
    assert gather_sum(tf.constant(VALUES), none, none).shape == [0, 2]
    assert gather_sum(tf.constant(VALUES), none).shape == [0, 2]
