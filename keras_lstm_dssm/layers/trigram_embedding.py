"""TrigramEmbedding: W l(t), without ever making the 50 k wide l(t)."""

from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.layers.gather_sum import gather_sum
from keras_lstm_dssm.registry import register
from keras_lstm_dssm.text import WordBatch


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
        self.built = True

    def call(self, words: WordBatch, training: bool = False) -> tf.Tensor:
        """Sums the table's rows by word."""
        # From the variable itself: a gather of its value would copy it.
        rows = tf.gather(self.table.value, words.trigrams)
        return gather_sum(
            rows, words.trigram_index, words.word_index, training=training
        )

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "size": self.size,
            "units": self.units,
            "initializer": keras.initializers.serialize(self.initializer),
        }
