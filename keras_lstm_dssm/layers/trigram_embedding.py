"""TrigramEmbedding: W l(t), computed without the 50,653-wide vector l(t)."""

from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.layers.synced_weights import SyncedWeights
from keras_lstm_dssm.registration import register
from keras_lstm_dssm.text import WordBatch


def gather_sum(
    values: tf.Tensor,
    index: tf.Tensor,
    segment: tf.Tensor | None = None,
    segments: tf.Tensor | None = None,
    training: bool = True,
    order: tf.Tensor | None = None,
) -> tf.Tensor:
    """Sum rows of `values` by segment, with a fast gradient.

        y[s] = sum over j with segment[j] = s of values[index[j]]

    The encoders use it for words (the sum of the rows of a word's trigrams),
    for time steps (the row of the word at the step) and for bags of words.

    TensorFlow's gradients of a gather and of a sparse segment sum add rows
    one by one, in the order of `index`. After a sort by `index` the gradient
    is a segment sum, too, and three to four times faster.

    Args:
        values: Float tensor `(rows, width)`.
        index: int `(n,)`, rows of `values`.
        segment: int `(n,)`, ascending. Default `None` for a plain gather, in
            which each index is its own segment.
        segments: Number of segments. Default `None`: the last one in
            `segment` plus 1.
        training: Whether a gradient will be computed, default `True`. With
            `False` the gradient is TensorFlow's, slower but equal, and an
            exported graph has no custom gradient, about which loaders would
            warn.
        order: int `(n,)`, the order that sorts `index`. Default `None`: a
            gradient sorts it.

    Returns:
        Float tensor `(segments, width)`.

    Example:
    >>> gather_sum(tf.constant([[1.0], [10.0]]), [0, 1, 1], [0, 0, 1])
    <tf.Tensor: shape=(2, 1), dtype=float32, numpy=
    array([[11.],
           [10.]], dtype=float32)>
    """
    index = tf.convert_to_tensor(index)

    def sum_rows(values: tf.Tensor) -> tf.Tensor:
        if segment is None:
            return tf.gather(values, index)
        return tf.sparse.segment_sum(
            values, index, segment, num_segments=segments
        )

    if not training:
        return sum_rows(values)

    def gradient(error: tf.Tensor) -> tf.Tensor:
        sorting = tf.argsort(index) if order is None else order
        source = sorting if segment is None else tf.gather(segment, sorting)
        return tf.sparse.segment_sum(
            tf.convert_to_tensor(error),  # sparse if a gather follows
            source,
            tf.gather(index, sorting),
            num_segments=tf.shape(values)[0],
        )

    @tf.custom_gradient
    def forward(values: tf.Tensor) -> tuple[tf.Tensor, Any]:
        return sum_rows(values), gradient

    return forward(values)


@register
class TrigramEmbedding(SyncedWeights):
    """Multiplies each distinct word's trigram counts by the input weights.

    `W l(t)` is the sum of the rows of W for the word's trigrams. The layer
    gathers each distinct row once and sums the rows of each word. The columns
    of the table are the units of all gates side by side.

    Args:
        size: Number of rows of the table, see `LetterTrigrams.size`.
        units: Number of columns of the table.
        initializer: Initializer of the table. Default `None`: uniform in
            [-0.05, 0.05], the "small random numbers" of Algorithm 1.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        words: `WordBatch` with `n` distinct words.
        training: Whether a gradient will be computed, default `False`; see
            `gather_sum`.

    Returns:
        Float tensor `(n, units)`.

    Example:
    >>> trigrams = dssm.LetterTrigrams()
    >>> embedding = TrigramEmbedding(trigrams.size, units=4)
    >>> words = trigrams.distinct(["hex bolt", "bolt"])  # two distinct words
    >>> embedding(words).shape
    TensorShape([2, 4])
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
        self.initializer = keras.initializers.get(
            initializer or keras.initializers.RandomUniform(-0.05, 0.05)
        )
        self.table = self.add_weight(
            shape=(size, units), initializer=self.initializer, name="table"
        )
        self.build((None,))

    def build(self, input_shape: Any) -> None:
        """Do nothing: the constructor has created the table.

        Args:
            input_shape: `(words,)`, recorded by Keras for summaries.
        """

    def call(self, words: WordBatch, training: bool = False) -> tf.Tensor:
        """Sum the table's rows by word."""
        # `.value` is TensorFlow's variable, whose rows are gathered without
        # a copy of the table.
        rows = tf.gather(self.table.value, words.trigrams)
        return gather_sum(
            rows,
            words.trigram_index,
            words.word_index,
            training=training,
            order=words.trigram_order,
        )

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, int]:
        """Return `(words, units)`."""
        return input_shape[0], self.units

    def get_config(self) -> dict[str, Any]:
        """Return the constructor arguments as a dict, for `from_config`."""
        return {
            **super().get_config(),
            "size": self.size,
            "units": self.units,
            "initializer": keras.initializers.serialize(self.initializer),
        }
