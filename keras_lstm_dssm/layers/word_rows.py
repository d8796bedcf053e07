"""WordRows: a fixed vector for each known word, and one for any other word."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import check_at_least
from keras_lstm_dssm.layers.word_sketch import word_keys
from keras_lstm_dssm.registration import Configured, register
from keras_lstm_dssm.text.word_hashing import WordBatch

NO_KEY = np.iinfo(np.int64).max
"""The key of a row that is not in use; no word and no trigram has it."""


class Rows(keras.layers.Layer):
    """Finds rows of numbers by their keys.

    A row is stored as integers from -127 to 127 and a scale, one byte a
    number. No weight is trained.

    Args:
        count: Number of rows.
        units: Width of a row.
        **kwargs: Arguments of `keras.layers.Layer`.
    """

    def __init__(self, count: int, units: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.count = count
        self.units = units

        def weight(name: str, start: np.ndarray) -> Any:
            return self.add_weight(
                shape=start.shape,
                initializer=start,
                dtype=start.dtype.name,
                trainable=False,
                name=name,
            )

        self.keys = weight("keys", np.full(count, NO_KEY))
        self.codes = weight("codes", np.zeros((count, units), np.int8))
        self.scales = weight("scales", np.zeros(count, np.float32))
        self.build((None,))

    def set_rows(self, keys: np.ndarray, rows: np.ndarray) -> None:
        """Replaces all rows.

        Args:
            keys: Distinct numbers, int64 `[count]`.
            rows: Float `[count, units]`.
        """
        order = np.argsort(keys)
        scales = np.abs(rows).max(axis=1) / 127
        codes = rows / np.where(scales > 0, scales, 1)[:, np.newaxis]
        self.keys.assign(keys[order])
        self.codes.assign(np.rint(codes[order]).astype(np.int8))
        self.scales.assign(scales[order])

    def call(self, keys: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Looks up keys, int64 `(n,)`.

        Returns:
            The rows, float32 `(n, units)`, and which keys were found; the row
            of another key is zero.
        """
        places = tf.minimum(
            tf.searchsorted(self.keys.value, keys), self.count - 1
        )
        found = tf.equal(tf.gather(self.keys.value, places), keys)
        scales = tf.gather(self.scales.value, places)
        scales = tf.where(found, scales, 0)[:, tf.newaxis]
        codes = tf.gather(self.codes.value, places)
        return tf.cast(codes, tf.float32) * scales, found


@register
class WordRows(Configured, keras.layers.Layer):
    """Maps each word to a fixed vector, that of any word to a sensible one.

    A known word has its own row. The vector of another word, such as a
    misspelled one, is the sum of the rows of its known trigrams, which
    `fit_words` chooses such that known words would get nearly their own
    vectors. No weight is trained.

    Args:
        words: Number of known words. Default 1.
        trigrams: Number of known trigrams. Default 1.
        units: Width of a vector. Default 1.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        words: `WordBatch` with `n` distinct words.

    Returns:
        Float tensor `(n, units)`; zero for a word without a known trigram.

    Raises:
        InputError: An argument is less than 1.

    Example:
    >>> layer = WordRows(words=2, trigrams=1, units=4)
    >>> layer(dssm.LetterTrigrams().distinct(["hex bolt"])).shape
    TensorShape([2, 4])
    """

    def __init__(
        self, words: int = 1, trigrams: int = 1, units: int = 1, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        check_at_least(1, words=words, trigrams=trigrams, units=units)
        self.words = words
        self.trigrams = trigrams
        self.units = units
        self.of_words = Rows(words, units, name="of_words")
        self.of_trigrams = Rows(trigrams, units, name="of_trigrams")
        self.build((None,))

    def call(self, words: WordBatch) -> tf.Tensor:
        """Computes a vector for each word: its row, or one by its trigrams."""
        rows, known = self.of_words(word_keys(words))

        def with_unknown() -> tf.Tensor:
            trigrams, _ = self.of_trigrams(tf.cast(words.trigrams, tf.int64))
            sums = tf.sparse.segment_sum(
                trigrams, words.trigram_index, words.word_index
            )
            return tf.where(known[:, tf.newaxis], rows, sums)

        found = tf.cond(tf.reduce_all(known), lambda: rows, with_unknown)
        return tf.cast(found, self.compute_dtype)

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, int]:
        """Returns `(words, units)`."""
        return input_shape[0], self.units
