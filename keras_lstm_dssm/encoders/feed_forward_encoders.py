"""Encoders without recurrence: DSSM, CLSM, and sums of fixed word vectors."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.encoders.text_encoder import TextEncoder, sum_words
from keras_lstm_dssm.errors import InputError, check_at_least
from keras_lstm_dssm.layers.letter_trigrams import gather_sum
from keras_lstm_dssm.registration import register
from keras_lstm_dssm.text.word_hashing import WordBatch


@register
class DSSMEncoder(TextEncoder):
    """Applies dense layers to x, the trigram counts of the whole text.

        l1 = W1 x;  l_i = tanh(W_i l_{i-1} + b_i);  y = tanh(W_N l_{N-1} + b_N)

    The vector does not depend on the order of the words. The default is the
    baseline DSSM 288/96 of Table IV in Palangi et al. 2016.

    Args:
        units: Widths of the layers; the last layer computes the vector.
            Default 288 and 96.
        **kwargs: Arguments of `TextEncoder`.

    Example:
    >>> encoder = DSSMEncoder(units=[12, 8])
    >>> vectors = encoder.encode(["hex bolt", "bolt hex"])
    >>> bool(np.allclose(vectors[0], vectors[1], atol=1e-6))
    True
    """

    def __init__(self, units: Sequence[int] = (288, 96), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.units = list(units)
        if not self.units or min(self.units) < 1:
            raise InputError(f"units must be widths of layers, not {units}")
        self.dimension = self.units[-1]
        self.embedding = self._embedding(self.units[0], "embedding")
        self.dense = []
        for index, (inputs, outputs) in enumerate(pairwise(self.units), 1):
            layer = keras.layers.Dense(
                outputs, "tanh", dtype=self.dtype_policy, name=f"dense_{index}"
            )
            layer.build((None, inputs))
            self.dense.append(layer)

    def compose(self, words: WordBatch, training: bool = False) -> tf.Tensor:
        """Computes the output y of each distinct text."""
        y = sum_words(self.embedding, words, training)  # W1 x
        for layer in self.dense:
            y = layer(y)
        return y


@register
class CLSMEncoder(TextEncoder):
    """Applies a convolution over words, a maximum, and a dense layer.

        h_t = tanh(W_c [l_{t-w} .. l_{t+w}] + b_c)
        v = max over t of h_t;  y = tanh(W_s v + b_s)

    l_t are the trigram counts of word t, zero outside the text;
    w = (window - 1) / 2. The default is the baseline CLSM 288/96 of Table IV in
    Palangi et al. 2016.

    Args:
        window: Odd number of words, default 3. The paper uses 1, 3 and 5.
        filters: Width of h, default 288.
        units: Width of the vector, default 96.
        **kwargs: Arguments of `TextEncoder`.

    Example:
    >>> encoder = CLSMEncoder(window=3, filters=12, units=8)
    >>> encoder.encode(["hex bolt", "wood glue"]).shape
    (2, 8)
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
        check_at_least(1, filters=filters, units=units)
        self.window = window
        self.filters = filters
        self.units = self.dimension = units
        # A table row has a trigram's weights for all positions in the window.
        self.embedding = self._embedding(window * filters, "embedding")
        self.bias = self.add_weight(
            shape=(filters,), initializer="zeros", name="convolution_bias"
        )
        self.dense = keras.layers.Dense(
            units, "tanh", dtype=self.dtype_policy, name="dense"
        )
        self.dense.build((None, filters))

    def compose(self, words: WordBatch, training: bool = False) -> tf.Tensor:
        """Computes the output y of each distinct text."""
        word_index, text_index = words.flat()
        rows = self.embedding(words, training=training)
        # Row w * window + o belongs to distinct word w at window position o.
        rows = tf.reshape(rows, [-1, self.filters])
        first_row = self._windows(word_index) * self.window
        row_index = first_row + tf.range(self.window)
        texts = self._windows(text_index)
        same_text = tf.equal(texts, text_index[:, tf.newaxis])
        total = gather_sum(
            rows,
            tf.boolean_mask(row_index, same_text),
            tf.cast(tf.where(same_text)[:, 0], tf.int32),
            training=training,
        )
        v = tf.math.segment_max(tf.tanh(total + self.bias), text_index)
        return self.dense(v)

    def _windows(self, values: tf.Tensor) -> tf.Tensor:
        """Returns each value's window, `(n, window)`, with -1 past the ends."""
        half, size = self.window // 2, tf.size(values)
        padded = tf.pad(values, [[half, half]], constant_values=-1)
        return tf.stack(
            [padded[shift : shift + size] for shift in range(self.window)], 1
        )


@register
class WordSumEncoder(TextEncoder):
    """Sums a fixed vector of each word of a text.

        y = sum of r(w) over the words w of a text

    A teacher, such as a pretrained sentence encoder, computes vectors of whole
    texts. `fit_words` fits the word vectors r to the teacher's vectors, without
    clicks. Encoding then needs no teacher. The order of words has no effect.
    The vector of an unknown word is a sum over the word's trigrams, see
    `WordRows`.

    The encoder is not in the papers. docs/few_clicks.md has results.

    Args:
        known_words: Number of words with a vector. Default 1. `fit_words`
            returns a `FittedWords`. `FittedWords.config` has the values of
            `known_words`, `known_trigrams` and `units` for the fitted vectors.
        known_trigrams: Number of trigrams with a vector. Default 1.
        units: Width of the vectors, equal to the teacher's width. Default 1.
        split: `"alphanumeric"` (default), `"space"` or `"stems"`, the rule that
            separates words; see `normalize_texts`.
        **kwargs: Arguments of `TextEncoder`.

    Example:
    >>> encoder = WordSumEncoder(known_words=9, units=384)
    >>> encoder.dimension
    384
    """

    fitted = True

    def __init__(
        self,
        known_words: int = 1,
        known_trigrams: int = 1,
        units: int = 1,
        split: str = "alphanumeric",
        **kwargs: Any,
    ) -> None:
        super().__init__(split=split, **kwargs)
        self.known_words = known_words
        self.known_trigrams = known_trigrams
        self.dimension = self.units = units
        self.word_rows = self._word_rows(known_words, known_trigrams, units)

    def compose(self, words: WordBatch, training: bool = False) -> tf.Tensor:
        """Sums the vectors of each text's words."""
        return sum_words(self.word_rows, words)
