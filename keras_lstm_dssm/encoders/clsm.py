"""CLSMEncoder: the bag of word windows, Shen et al. 2014."""

from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.encoders.text_encoder import TextEncoder
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.layers import gather_sum
from keras_lstm_dssm.registry import register
from keras_lstm_dssm.text import WordBatch


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
