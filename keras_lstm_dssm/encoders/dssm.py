"""DSSMEncoder: the bag of trigrams, Huang et al. 2013."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.encoders.text_encoder import TextEncoder
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.layers import gather_sum
from keras_lstm_dssm.registry import register
from keras_lstm_dssm.text import WordBatch


@register
class DSSMEncoder(TextEncoder):
    """Feed-forward layers over the trigram counts of the whole text.

        l1 = W1 x;  l_i = tanh(W_i l_{i-1} + b_i);  y = tanh(W_N l_{N-1} + b_N)

    Order and distance of words are lost: the paper's baseline of 288/96
    units (Table IV).

    Args:
        units: Width of each layer, the last is the vector's.
        **kwargs: See `TextEncoder`.
    """

    def __init__(self, units: Sequence[int] = (288, 96), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.units = list(units)
        if not self.units or min(self.units) < 1:
            raise InputError(f"units must be widths of layers, not {units}")
        self.dimension = self.units[-1]
        self.embedding = self._embedding(self.units[0], "embedding")
        self.dense = []
        for place in range(1, len(self.units)):
            layer = keras.layers.Dense(
                self.units[place],
                "tanh",
                dtype=self.dtype_policy,
                name=f"dense_{place}",
            )
            layer.build((None, self.units[place - 1]))
            self.dense.append(layer)
        self.built = True

    def compose(self, words: WordBatch, training: bool = False) -> tf.Tensor:
        """Sums over the words; W1 x is the sum of their W1 l(t)."""
        rows = self.embedding(words, training=training)
        y = gather_sum(rows, *words.flat(), training=training)
        for layer in self.dense:
            y = layer(y)
        return y

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {**super().get_config(), "units": self.units}
