"""The Keras peer of two towers, built from stock Keras layers.

A `tf.data` pipeline computes trigram ids with `LetterTrigrams`. For each word,
a tower sums the rows of an `Embedding` for the word's trigrams. `PaddedTower`
and `SegmentTower` compute the sum in different ways. `keras.layers.LSTM` reads
the words, and `keras.optimizers.SGD` has Nesterov momentum.
"""

from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from benchmarks.measure import fit_wall_and_cpu
from keras_lstm_dssm.layers import LetterTrigrams

GATES = 3
"""Embedding columns for each cell. `LSTMEncoder` has the same number: a column
for each of i, g and o, see `PeepholeLSTMCell`."""

HASHING = LetterTrigrams()


class PaddedTower(keras.Model):
    """Encodes texts; trigram ids are padded, `(batch, words, trigrams)`."""

    def __init__(self, cells: int) -> None:
        super().__init__()
        width = GATES * cells
        self.embedding = keras.layers.Embedding(HASHING.size + 1, width)
        self.lstm = keras.layers.LSTM(cells)

    def call(self, ids: tf.Tensor) -> tf.Tensor:
        """Encodes hashed texts into unit vectors, `(batch, cells)`."""
        real = ids > 0
        rows = ops.where(real[..., None], self.embedding(ids), 0.0)
        y = self.lstm(ops.sum(rows, axis=2), mask=ops.any(real, axis=2))
        return ops.normalize(y, axis=-1)

    @staticmethod
    def hash(texts: tf.Tensor) -> tf.Tensor:
        """Returns the trigram ids of strings, each plus 1, padded with 0."""
        return (HASHING(texts) + 1).to_tensor()


class SegmentTower(keras.Model):
    """Encodes texts; `segment_sum` adds the rows of unpadded trigram ids."""

    def __init__(self, cells: int) -> None:
        super().__init__()
        self.embedding = keras.layers.Embedding(HASHING.size, GATES * cells)
        self.lstm = keras.layers.LSTM(cells)

    def call(self, hashed: tuple[tf.Tensor, tf.Tensor, tf.Tensor]) -> tf.Tensor:
        """Encodes hashed texts into unit vectors, `(batch, cells)`."""
        ids, word, lengths = hashed
        words = ops.segment_sum(self.embedding(ids), word, sorted=True)
        steps = tf.RaggedTensor.from_row_lengths(words, lengths).to_tensor(
            shape=[None, None, words.shape[1]]
        )
        y = self.lstm(steps, mask=tf.sequence_mask(lengths))
        return ops.normalize(y, axis=-1)

    @staticmethod
    def hash(texts: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Returns trigram ids, the index of each id's word, and word counts."""
        ids = HASHING(texts)
        return ids.flat_values, ids.values.value_rowids(), ids.row_lengths()


class PairScores(keras.Model):
    """Computes 10 times the cosine of each query with each document."""

    def __init__(self, query: keras.Model, document: keras.Model) -> None:
        super().__init__()
        self.query = query
        self.document = document

    def call(self, inputs: tuple[Any, Any]) -> tf.Tensor:
        """Returns the scaled cosines, `(batch, batch)`."""
        query, document = inputs
        return 10.0 * ops.matmul(
            self.query(query), ops.transpose(self.document(document))
        )


class KerasTowers:
    """Trains and runs two towers of stock Keras layers."""

    def __init__(self, tower: Any, cells: int) -> None:
        self._hash = tower.hash
        self._document = tower(cells)
        # XLA would compile again for each new batch shape.
        self._document.compile(jit_compile=False)
        self.model = PairScores(tower(cells), self._document)
        self.model.compile(
            keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            jit_compile=False,
        )

    def train(self, batches: tf.data.Dataset, steps: int) -> np.ndarray:
        """Returns wall and processor seconds of a step, hashing included."""

        def prepare(query: tf.Tensor, document: tf.Tensor) -> Any:
            labels = tf.range(tf.shape(query)[0])
            return (self._hash(query), self._hash(document)), labels

        hashed = batches.map(prepare, tf.data.AUTOTUNE)
        return fit_wall_and_cpu(self.model, hashed.prefetch(2), steps)

    def encode(self, titles: list[str], batch_size: int) -> Any:
        """Encodes titles into unit vectors, `(len(titles), cells)`."""
        batches = tf.data.Dataset.from_tensor_slices(titles).batch(batch_size)
        hashed = batches.map(lambda t: (self._hash(t),), tf.data.AUTOTUNE)
        return self._document.predict(hashed.prefetch(2), verbose=0)
