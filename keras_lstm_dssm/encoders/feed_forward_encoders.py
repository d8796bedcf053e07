"""Encoders without recurrence: DSSM (bag of trigrams), CLSM (convolution)."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.encoders.text_encoder import TextEncoder
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.layers import gather_sum
from keras_lstm_dssm.registration import register
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


@register
class CLSMEncoder(TextEncoder):
    """Convolution over word windows, max over the text, one dense layer.

        h_t = tanh(W_c [l_{t-w} .. l_{t+w}] + b_c)
        v = max over t of h_t;  y = tanh(W_s v + b_s)

    The window stands centred on word t; beyond the text's ends the trigram
    vectors are zero. The paper's baseline of 288/96 units (Table IV).

    Args:
        window: Words in a window, odd: the paper has 1, 3 and 5.
        filters: Width of h.
        units: Width of the vector.
        **kwargs: See `TextEncoder`.
    """

    def __init__(
        self,
        window: int = 3,
        filters: int = 288,
        units: int = 96,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if window < 1 or window % 2 == 0:
            raise InputError(f"window must be odd and positive, not {window}")
        self.window = window
        self.filters = filters
        self.units = self.dimension = units
        # W_c l for every place in the window, side by side.
        self.embedding = self._embedding(window * filters, "embedding")
        self.bias = self.add_weight(
            shape=(filters,), initializer="zeros", name="convolution_bias"
        )
        self.dense = keras.layers.Dense(
            units, "tanh", dtype=self.dtype_policy, name="dense"
        )
        self.dense.build((None, filters))
        self.built = True

    def compose(self, words: WordBatch, training: bool = False) -> tf.Tensor:
        """Slides the window over the words."""
        index, texts = words.flat()
        # One row for each distinct word at each place in the window.
        rows = self.embedding(words, training=training)
        rows = tf.reshape(rows, [-1, self.filters])
        places = self._around(index) * self.window + tf.range(self.window)
        inside = tf.equal(self._around(texts), texts[:, tf.newaxis])
        total = gather_sum(
            rows,
            tf.boolean_mask(places, inside),
            tf.cast(tf.where(inside)[:, 0], tf.int32),
            training=training,
        )
        best = tf.math.segment_max(tf.tanh(total + self.bias), texts)
        return self.dense(best)

    def _around(self, values: tf.Tensor) -> tf.Tensor:
        """Values of the words around each word, `(words, window)`."""
        half, size = self.window // 2, tf.size(values)
        padded = tf.pad(values, [[half, half]], constant_values=-1)
        return tf.stack(
            [padded[place : place + size] for place in range(self.window)], 1
        )

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "window": self.window,
            "filters": self.filters,
            "units": self.units,
        }
