"""CLSMEncoder: the bag of word windows, Shen et al. 2014."""

from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.encoders.text_encoder import TextEncoder
from keras_lstm_dssm.errors import InputError
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
        time = tf.shape(words.words)[1]
        steps = tf.gather(self.embedding(words), words.words)
        real = tf.sequence_mask(words.lengths, time)[:, :, tf.newaxis]
        steps = tf.where(real, steps, 0.0)
        half = self.window // 2
        padded = tf.pad(steps, [[0, 0], [half, half], [0, 0]])
        total = self.bias + tf.add_n(
            [
                padded[
                    :,
                    place : place + time,
                    place * self.filters : (place + 1) * self.filters,
                ]
                for place in range(self.window)
            ]
        )
        lowest = steps.dtype.min
        best = tf.reduce_max(tf.where(real, tf.tanh(total), lowest), axis=1)
        return self.dense(best)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "window": self.window,
            "filters": self.filters,
            "units": self.units,
        }
