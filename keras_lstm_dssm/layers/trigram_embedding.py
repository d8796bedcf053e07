"""TrigramEmbedding: W l(t), without ever making the 50 k wide l(t)."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.registration import register
from keras_lstm_dssm.text import WordBatch


def gather_sum(
    values: tf.Tensor,
    index: tf.Tensor,
    segment: tf.Tensor | None = None,
    segments: tf.Tensor | None = None,
    training: bool = True,
) -> tf.Tensor:
    """Adds up rows of `values`: `y[s] = sum of values[index[j]]`.

    The sum runs over the places j whose `segment[j]` is s. The whole work
    with trigrams and words is made of it: a word's vector is the sum of its
    trigrams' rows, and a step of a sentence is the row of its word.

    TensorFlow's own gradients of a gather and of a sparse segment sum add
    rows one by one, in the order in which they come. Sorted by `index`, the
    gradient is a segment sum itself: three to four times faster.

    Args:
        values: Float tensor `(rows, width)`.
        index: int `(places,)`, rows of `values`.
        segment: int `(places,)`, ascending; `None` for a plain gather,
            where each place is a segment of its own.
        segments: Number of segments, for those at the end that have no
            place; `None` when there are none.
        training: Whether a gradient will be wanted. Without, it is still
            right, but TensorFlow's own; and a graph to export has no
            gradient of ours in it, which its readers would warn of.

    Returns:
        `(segments, width)`.

    Example:
    >>> gather_sum(tf.constant([[1.0], [10.0]]), [0, 1, 1], [0, 0, 1])
    <tf.Tensor: shape=(2, 1), dtype=float32, numpy=
    array([[11.],
           [10.]], dtype=float32)>
    """
    index = tf.convert_to_tensor(index)

    def total(values: tf.Tensor) -> tf.Tensor:
        if segment is None:
            return tf.gather(values, index)
        return tf.sparse.segment_sum(
            values, index, segment, num_segments=segments
        )

    if not training:
        return total(values)

    def gradient(error: tf.Tensor) -> tf.Tensor:
        order = tf.argsort(index)
        source = order if segment is None else tf.gather(segment, order)
        return tf.sparse.segment_sum(
            tf.convert_to_tensor(error),  # it may be that of a gather, sparse
            source,
            tf.gather(index, order),
            num_segments=tf.shape(values)[0],
        )

    @tf.custom_gradient
    def forward(values: tf.Tensor) -> tuple[tf.Tensor, Any]:
        return total(values), gradient

    return forward(values)


@register
class TrigramEmbedding(keras.layers.Layer):
    """Multiplies each distinct word's trigram counts by the input weights.

    `W l(t)` is the sum of the rows of W for the word's trigrams, so the
    layer gathers each distinct row once and adds rows by word. The columns
    of the table are the units of all gates side by side.

    Args:
        size: Rows of the table, see `LetterTrigrams.size`.
        units: Columns of the table.
        initializer: Of the table, by default uniform in [-0.05, 0.05]: "small
            random numbers" (Algorithm 1).

    Call arguments:
        words: `WordBatch` with `n` distinct words.
        training: See `gather_sum`.

    Returns:
        Float tensor `(n, units)`.

    Attributes:
        before_read: Called without arguments before the table is read or
            replaced as a whole: `get_weights`, `set_weights`, saving and
            loading. An optimizer that updates rows lazily sets it to a
            function that brings all rows up to date. Default `None`.
    """

    def __init__(
        self,
        size: int,
        units: int,
        initializer: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.size = size
        self.units = units
        self.before_read: Callable[[], None] | None = None
        self.initializer = keras.initializers.get(
            initializer or keras.initializers.RandomUniform(-0.05, 0.05)
        )
        self.table = self.add_weight(
            shape=(size, units), initializer=self.initializer, name="table"
        )
        self.built = True

    def call(self, words: WordBatch, training: bool = False) -> tf.Tensor:
        """Sums the table's rows by word."""
        # From the variable itself: a gather of its value would copy it.
        rows = tf.gather(self.table.value, words.trigrams)
        return gather_sum(
            rows, words.trigram_index, words.word_index, training=training
        )

    def sync_weights(self) -> None:
        """Brings lazily updated rows of the table up to date."""
        if self.before_read is not None:
            self.before_read()

    def get_weights(self) -> list[np.ndarray]:
        """Returns the table, up to date, see `keras.layers.Layer`."""
        self.sync_weights()
        return super().get_weights()

    def set_weights(self, weights: list[np.ndarray]) -> None:
        """Replaces the table, see `keras.layers.Layer`."""
        self.sync_weights()  # a pending update would change the new rows
        super().set_weights(weights)

    def save_own_variables(self, store: Any) -> None:
        """Saves the table, up to date, see `keras.layers.Layer`."""
        self.sync_weights()
        super().save_own_variables(store)

    def load_own_variables(self, store: Any) -> None:
        """Loads the table, see `keras.layers.Layer`."""
        self.sync_weights()
        super().load_own_variables(store)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "size": self.size,
            "units": self.units,
            "initializer": keras.initializers.serialize(self.initializer),
        }
