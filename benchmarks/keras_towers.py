"""Peer: the same towers from stock Keras parts.

What a practised Keras user would write: trigram ids are made in `tf.data`,
an `Embedding` of 288 columns is summed by word, `keras.layers.LSTM` reads the
words, Keras's `SGD` has Nesterov momentum, `fit` and `predict` run it. There
are two forms, since neither is the obvious one.
"""

from typing import Any

import keras
import tensorflow as tf
from keras import ops

from keras_lstm_dssm.benchmarks.measure import fit_seconds
from keras_lstm_dssm.layers import LetterTrigrams

CELLS, WIDTH = 96, 288
HASHING = LetterTrigrams()


class PaddedTower(keras.Model):
    """Sums `(batch, words, trigrams)` padded ids, 0 where there are none."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = keras.layers.Embedding(HASHING.size + 1, WIDTH)
        self.lstm = keras.layers.LSTM(CELLS)

    def call(self, ids: tf.Tensor) -> tf.Tensor:
        """Encodes hashed texts into unit vectors, `(batch, 96)`."""
        real = ids > 0
        rows = ops.where(real[..., None], self.embedding(ids), 0.0)
        y = self.lstm(ops.sum(rows, axis=2), mask=ops.any(real, axis=2))
        return ops.normalize(y, axis=-1)

    @staticmethod
    def hash(texts: tf.Tensor) -> tf.Tensor:
        """Hashes strings in the dataset."""
        return (HASHING(texts) + 1).to_tensor()


class SegmentTower(keras.Model):
    """Sums flat ids by word with `segment_sum`, then pads the words."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = keras.layers.Embedding(HASHING.size, WIDTH)
        self.lstm = keras.layers.LSTM(CELLS)

    def call(self, hashed: tuple[tf.Tensor, tf.Tensor, tf.Tensor]) -> tf.Tensor:
        """Encodes hashed texts into unit vectors, `(batch, 96)`."""
        ids, word, lengths = hashed
        words = ops.segment_sum(self.embedding(ids), word, sorted=True)
        steps = tf.RaggedTensor.from_row_lengths(words, lengths).to_tensor(
            shape=[None, None, WIDTH]
        )
        y = self.lstm(steps, mask=tf.sequence_mask(lengths))
        return ops.normalize(y, axis=-1)

    @staticmethod
    def hash(texts: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Hashes strings in the dataset: ids, word of each, words a text."""
        ids = HASHING(texts)
        return ids.flat_values, ids.values.value_rowids(), ids.row_lengths()


class PairScores(keras.Model):
    """Scaled cosines of all queries with all documents of the batch."""

    def __init__(self, query: keras.Model, document: keras.Model) -> None:
        super().__init__()
        self.query = query
        self.document = document

    def call(self, inputs: tuple[Any, Any]) -> tf.Tensor:
        """Returns 10 R of each query with each document, `(batch, batch)`."""
        query, document = inputs
        return 10.0 * ops.matmul(
            self.query(query), ops.transpose(self.document(document))
        )


class KerasTowers:
    """Two towers of stock Keras parts.

    XLA is left off: batches differ in shape, and it would compile each anew.
    Padded to one shape, it made the padded form some 15 % faster.

    Args:
        tower: `PaddedTower` or `SegmentTower`.
    """

    def __init__(self, tower: Any) -> None:
        self._hash = tower.hash
        self._document = tower()
        self._document.compile(jit_compile=False)
        self.model = PairScores(tower(), self._document)
        self.model.compile(
            keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            jit_compile=False,
        )

    def train(self, batches: tf.data.Dataset, steps: int) -> float:
        """Seconds a step, from batches of strings to updated weights."""

        def prepare(query: tf.Tensor, document: tf.Tensor) -> Any:
            labels = tf.range(tf.shape(query)[0])
            return (self._hash(query), self._hash(document)), labels

        hashed = batches.map(prepare, tf.data.AUTOTUNE)
        return fit_seconds(self.model, hashed.prefetch(2), steps)

    def encode(self, titles: list[str], batch_size: int) -> Any:
        """Encodes titles, `[len(titles), 96]`."""
        batches = tf.data.Dataset.from_tensor_slices(titles).batch(batch_size)
        hashed = batches.map(
            lambda texts: (self._hash(texts),), tf.data.AUTOTUNE
        )
        return self._document.predict(hashed.prefetch(2), verbose=0)
