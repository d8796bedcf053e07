"""Vectors of vocabulary words and of trigram words, also out of files."""

import json
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.layers import (
    TrigramVectors,
    VocabularyVectors,
    WordSequences,
    WordVectors,
)
from tests import reference

VOCABULARY = ["bolt", "hex", "上海", "x\0"]
TEXTS = [
    "Hex bolt hex", "", "zinc", "BOLT 上海 x\0 new zinc bolt", "hex  BOLT hex",
]  # fmt: skip


def vocabulary_vectors(**arguments: Any) -> VocabularyVectors:
    """A layer with the words above."""
    return VocabularyVectors(
        VOCABULARY, **{"dimension": 3, "split": "space", **arguments}
    )


def layers(max_words: int | None = 4) -> list[WordVectors]:
    return [
        vocabulary_vectors(max_words=max_words),
        TrigramVectors(3, max_words=max_words, split="space"),
    ]


def words_of(text: str) -> list[str]:
    return reference.split(text)[:4]


def id_of(word: str) -> int:
    return VOCABULARY.index(word) + 1 if word in VOCABULARY else 0


def expected_vector(layer: WordVectors, word: str) -> np.ndarray:
    """The vector of a word, out of the table, in NumPy."""
    (table,) = layer.get_weights()
    if isinstance(layer, TrigramVectors):
        return reference.counts(word) @ table
    return table[id_of(word)]


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("training", [False, True])
def test_vectors_of_ragged_texts(kind, training, float64):
    layer = layers()[kind]
    batch = layer.distinct(TEXTS)
    sequences = layer(batch, training=training)
    assert isinstance(sequences, WordSequences)
    assert sequences.vectors.dtype == tf.float64
    lengths = sequences.lengths.numpy()
    assert (np.diff(lengths) <= 0).all() and lengths.max() == 4
    assert sequences.vectors.shape == (len(lengths), 4, 3)
    for text, row in zip(TEXTS, batch.text_index.numpy(), strict=True):
        words = words_of(text)
        assert lengths[row] == len(words)
        want = [expected_vector(layer, word) for word in words]
        np.testing.assert_allclose(
            sequences.vectors[row, : len(words)], want, rtol=1e-14
        )
    mask = np.arange(4) < lengths[:, np.newaxis]
    assert not mask.all()
    np.testing.assert_array_equal(sequences.mask, mask)
    assert not sequences.vectors.numpy()[~mask].any()
    assert not sequences.words.numpy()[~mask].any()


def test_words_are_vocabulary_ids():
    layer = VocabularyVectors(["bolt", "hex"], 2)
    sequences = layer(layer.distinct(TEXTS))
    assert sequences.words.dtype == tf.int32
    assert sequences.words.numpy().tolist() == [
        [1, 0, 0, 0, 0, 1], [2, 1, 2, 0, 0, 0], [0] * 6, [0] * 6,
    ]  # fmt: skip
    assert sequences.lengths.numpy().tolist() == [6, 3, 1, 1]


def test_trigram_words_are_indices_in_the_batch():
    layer = TrigramVectors(2)
    batch = layer.distinct(["bolt hex bolt", "hex"])
    assert layer(batch).words.numpy().tolist() == [[0, 1, 0], [1, 0, 0]]


@pytest.mark.parametrize("kind", [0, 1])
def test_gradient_is_of_real_words_only(kind, float64):
    """Against the sum over all words, by NumPy; padding has none."""
    layer = layers()[kind]
    batch = layer.distinct(TEXTS)
    (table,) = layer.get_weights()
    with tf.GradientTape() as tape:
        vectors = layer(batch, training=True).vectors
        weights = np.arange(1.0, 1 + tf.size(vectors).numpy())
        weights = weights.reshape(vectors.shape)
        loss = tf.reduce_sum(weights * vectors)
    gradient = tape.gradient(loss, layer.embedding.table.value)
    assert isinstance(gradient, tf.IndexedSlices)
    indices = gradient.indices.numpy()
    assert len(set(indices)) == len(indices)  # each distinct row once
    want = np.zeros_like(table)
    rows = batch.text_index.numpy().tolist()
    for row, text in dict(zip(rows, TEXTS, strict=True)).items():
        for word, weight in zip(words_of(text), weights[row], strict=False):
            if kind:
                want += np.outer(reference.counts(word), weight)
            else:
                want[id_of(word)] += weight
    np.testing.assert_allclose(tf.convert_to_tensor(gradient), want)
    assert set(indices) == set(np.flatnonzero(want.any(axis=1)))


@pytest.mark.parametrize("kind", [0, 1])
def test_an_empty_batch_has_no_vectors(kind):
    layer = layers()[kind]
    for training in (False, True):
        sequences = layer(layer.distinct([]), training=training)
        assert sequences.vectors.shape == (0, 1, 3)
        assert sequences.mask.shape == (0, 1)


def test_start_of_the_vectors():
    words = [f"w{n}" for n in range(2000)]
    (table,) = VocabularyVectors(words).get_weights()
    assert table.shape == (2001, 50)
    assert -table.min() == pytest.approx(0.1, rel=0.01)
    assert table.max() == pytest.approx(0.1, rel=0.01)
    assert abs(table).max() <= np.float32(0.1)
    ones = VocabularyVectors(words, 2, initializer="ones")
    np.testing.assert_array_equal(ones.get_weights()[0], np.ones((2001, 2)))
    (table,) = TrigramVectors().get_weights()
    assert table.shape == (37**3, 50)
    assert -table.min() == pytest.approx(0.05, rel=0.02)
    assert table.max() == pytest.approx(0.05, rel=0.02)
    assert abs(table).max() <= np.float32(0.05)


def test_set_vectors():
    layer = vocabulary_vectors()
    (before,) = layer.get_weights()
    vectors = np.arange(12.0).reshape(4, 3)
    layer.set_vectors(vectors)
    (table,) = layer.get_weights()
    np.testing.assert_array_equal(table[1:], vectors)
    np.testing.assert_array_equal(table[0], before[0])  # unknown words
    got = layer(layer.distinct(["hex 上海"])).vectors
    np.testing.assert_array_equal(got, [vectors[1:3]])


@pytest.mark.parametrize(("vectors", "message"), [
    (np.zeros((5, 3)), r"found vectors of shape \(5, 3\), expected \(4, 3"),
    (np.zeros((4, 2)), r"found vectors of shape \(4, 2\), expected \(4, 3"),
    (np.zeros(12), r"found vectors of shape \(12,\), expected \(4, 3\)"),
    ([[1, 1, 1], [1, np.nan, 1], [1, 1, 1], [1, 1, 1]],
     "the vector of word 'hex', row 1, has a value that is not finite"),
])  # fmt: skip
def test_wrong_vectors_change_nothing(vectors, message):
    layer = vocabulary_vectors()
    (before,) = layer.get_weights()
    with pytest.raises(InputError, match=message):
        layer.set_vectors(vectors)
    np.testing.assert_array_equal(layer.get_weights()[0], before)


def test_configuration_holds_the_vocabulary():
    layer = vocabulary_vectors(max_words=None)
    config = json.loads(json.dumps(layer.get_config()))
    again = VocabularyVectors.from_config(config)
    assert again.vocabulary == VOCABULARY
    assert again.get_config() == layer.get_config()
    assert (again.max_words, again.split) == (None, "space")
