"""Layers of fixed word vectors: random signs, or rows of a table."""

from collections.abc import Iterable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import check_at_least
from keras_lstm_dssm.registration import Configured, register
from keras_lstm_dssm.text.many_texts import FIELD_SPECS
from keras_lstm_dssm.text.word_hashing import WordBatch
from lstm_dssm_client.bm25 import idf
from lstm_dssm_client.words import (
    PRIME,
    SKETCH_BUCKETS,
    SKETCH_FACTORS,
    SKETCH_ROWS,
    SKETCH_START,
    SKETCH_START_OFFSET,
    sketch_mix,
)

_SHIFT = tf.bitwise.right_shift

_SIGNS = 1 - 2 * np.unpackbits(
    np.arange(256, dtype=np.uint8)[:, np.newaxis], axis=1
).astype(np.float32)
"""The 8 signs of each byte, `[256, 8]`: 1 for a bit of 0, -1 for a bit of 1."""

_IDS = FIELD_SPECS[:6]


@register
class WordSketch(Configured, keras.layers.Layer):
    """Maps each word to a fixed vector, `w(word) r(word) + w(start) r(start)`.

    r is a row of random signs, chosen by a hash. w is the square root of the
    IDF. The start of a word is its first letters: `bracket` and `brackets` have
    the same start.

    The vector of a text is the sum of the vectors of the words. Let x and y be
    the bags of words of two texts. A bag has a number for each word and each
    start: the count in the text, times w. The inner product of the texts'
    vectors, divided by `units`, approximates x . y with an error of about
    |x| |y| / sqrt(units). If no word or start occurs twice in a text, x . y is
    the sum of the IDFs of the words and starts that both texts contain.

    The layer stores no vocabulary. No weight is trained; `adapt` sets w.

    Args:
        units: Width of a vector.
        buckets: Number of counters of document frequencies. Words that share
            a counter have the same w. Default 131,072.
        start: Number of trigrams in a word's start. Default 3: four letters, as
            in `#br`, `bra`, `rac` for `bracket`.
        seed: Random seed of the signs. A query encoder and its document encoder
            need the same seed. Default 0.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        words: `WordBatch` with `n` distinct words.

    Returns:
        Float tensor `(n, units)`.

    References: Charikar et al. 2002 (sketches of sums by random signs);
    Robertson and Zaragoza 2009 (IDF).

    Example:
    >>> words = dssm.LetterTrigrams().distinct(["hex bolt"])
    >>> WordSketch(units=8, buckets=64)(words).shape
    TensorShape([2, 8])
    """

    def __init__(
        self,
        units: int,
        buckets: int = SKETCH_BUCKETS,
        start: int = SKETCH_START,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.units = units
        self.buckets = buckets
        self.start = start
        self.seed = seed
        random = np.random.default_rng(seed)
        # The signs of a word are a row of the first table times a row of the
        # second table: two tables of 2,048 rows give 4 million products. A
        # third table would cost a fifth of the encoder's speed. Each sign is
        # stored as a bit.
        self._signs = [
            self.add_weight(
                shape=(SKETCH_ROWS, -(-units // 8)),
                initializer=np.packbits(
                    random.integers(0, 2, (SKETCH_ROWS, units)), axis=1
                ),
                dtype="uint8",
                trainable=False,
                name=f"signs_{table}",
            )
            for table in range(2)
        ]
        self.word_weight = self.add_weight(
            shape=(buckets,),
            initializer="ones",
            trainable=False,
            name="word_weight",
        )
        self.build((None,))

    def call(self, words: WordBatch) -> tf.Tensor:
        """Computes the vector of each word, `(n, units)`."""
        return tf.add_n([*map(self._weighted_signs, self._keys(words))])

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, int]:
        """Returns `(words, units)`."""
        return input_shape[0], self.units

    @property
    def needs_adapt(self) -> bool:
        """Whether all weights w are 1, as they are before `adapt`."""
        return bool(np.all(self.word_weight.numpy() == 1))

    def adapt(self, batches: Iterable[WordBatch]) -> None:
        """Counts the document frequencies df in N texts, and sets w.

            w = sqrt(IDF),  IDF = log(1 + (N - df + 1/2) / (df + 1/2))

        Args:
            batches: Hashed batches that contain each text once.
        """
        frequencies, texts = np.zeros(self.buckets), 0
        document_frequencies = tf.function(
            self._document_frequencies, autograph=False
        ).get_concrete_function(*_IDS)
        for words in batches:
            counts = document_frequencies(*words[: len(_IDS)])
            frequencies += counts.numpy()
            texts += len(words.lengths)
        self.word_weight.assign(np.sqrt(idf(frequencies, texts)))

    def _document_frequencies(self, *ids: tf.Tensor) -> tf.Tensor:
        """Counts texts with a word or start in each bucket, `(buckets,)`."""
        words = WordBatch(*ids)
        word, text = words.flat()
        offset = tf.cast(text, tf.int64) * self.buckets
        text_and_bucket = [
            offset + tf.gather(_hash(keys, 0, self.buckets), word)
            for keys in self._keys(words)
        ]
        distinct, _ = tf.unique(tf.concat(text_and_bucket, axis=0))
        return tf.math.bincount(
            tf.cast(distinct % self.buckets, tf.int32),
            minlength=self.buckets,
            maxlength=self.buckets,
        )

    def _weighted_signs(self, keys: tf.Tensor) -> tf.Tensor:
        bucket = _hash(keys, 0, self.buckets)
        weight = tf.gather(self.word_weight.value, bucket)[:, tf.newaxis]
        # The bit of a product of two signs is the `xor` of their bits.
        differ = tf.bitwise.bitwise_xor(
            *(
                tf.gather(table.value, _hash(keys, 1 + number, SKETCH_ROWS))
                for number, table in enumerate(self._signs)
            )
        )
        signs = tf.gather(
            tf.constant(_SIGNS, weight.dtype), tf.cast(differ, tf.int32)
        )
        return weight * tf.reshape(signs, [tf.size(keys), -1])[:, : self.units]

    def _keys(self, words: WordBatch) -> list[tf.Tensor]:
        mixed = _mixed_trigrams(words)
        position = tf.range(tf.size(words.word_index))
        first = tf.math.segment_min(position, words.word_index)
        in_start = position - tf.gather(first, words.word_index) < self.start
        word_hash = tf.math.segment_sum(mixed, words.word_index)
        start_hash = tf.math.segment_sum(
            tf.where(in_start, mixed, 0), words.word_index
        )
        return [word_hash % PRIME, (start_hash + SKETCH_START_OFFSET) % PRIME]


def word_keys(words: WordBatch) -> tf.Tensor:
    """Hashes each distinct word of a batch, int64 `(words,)`."""
    # Of a million words, a few hundred have the hash of another word.
    return tf.math.segment_sum(_mixed_trigrams(words), words.word_index)


def _mixed_trigrams(words: WordBatch) -> tf.Tensor:
    """Hashes each trigram of each word, int64."""
    return tf.gather(
        sketch_mix(tf.cast(words.trigrams, tf.int64), _SHIFT),
        words.trigram_index,
    )


def _hash(keys: tf.Tensor, which: int, values: int) -> tf.Tensor:
    """Hashes keys to 0 .. values - 1, by hash function 0, 1 or 2 (`which`)."""
    keys = keys * SKETCH_FACTORS[2 + which] % PRIME
    return sketch_mix(keys, _SHIFT) % values


NO_KEY = np.iinfo(np.int64).max
"""The key of an unused row; no word and no trigram has this key."""


class Rows(keras.layers.Layer):
    """Looks up fixed vectors by int64 keys: hashes of words, or trigram ids."""

    def __init__(self, count: int, units: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.count = count
        self.units = units

        def weight(name: str, initial: np.ndarray) -> Any:
            return self.add_weight(
                shape=initial.shape,
                initializer=initial,
                dtype=initial.dtype.name,
                trainable=False,
                name=name,
            )

        self.keys = weight("keys", np.full(count, NO_KEY))
        # A vector is a row of codes, from -127 to 127, times a scale.
        self.codes = weight("codes", np.zeros((count, units), np.int8))
        self.scales = weight("scales", np.zeros(count, np.float32))
        self.build((None,))

    def set_rows(self, keys: np.ndarray, rows: np.ndarray) -> None:
        """Stores rows `[count, units]` under distinct keys, int64 `[count]`."""
        order = np.argsort(keys)
        scales = np.abs(rows).max(axis=1) / 127
        codes = rows / np.where(scales > 0, scales, 1)[:, np.newaxis]
        self.keys.assign(keys[order])
        self.codes.assign(np.rint(codes[order]).astype(np.int8))
        self.scales.assign(scales[order])

    def call(self, keys: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns vectors (0 for unknown keys), and whether keys are known."""
        index = tf.minimum(
            tf.searchsorted(self.keys.value, keys), self.count - 1
        )
        is_known = tf.equal(tf.gather(self.keys.value, index), keys)
        scales = tf.gather(self.scales.value, index)
        scales = tf.where(is_known, scales, 0)[:, tf.newaxis]
        codes = tf.gather(self.codes.value, index)
        return tf.cast(codes, tf.float32) * scales, is_known


@register
class WordRows(Configured, keras.layers.Layer):
    """Maps every word, even an unknown or misspelled word, to a fixed vector.

    The vector of a known word is a row of a table. The vector of an unknown
    word is the sum of the rows of its known trigrams. `fit_words` fits all
    rows; no weight is trained.

    Args:
        words: Number of known words. Default 1.
        trigrams: Number of known trigrams. Default 1.
        units: Width of a vector. Default 1.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        words: `WordBatch` with `n` distinct words.

    Returns:
        Float tensor `(n, units)`; zero for an unknown word without a known
        trigram.

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
        """Returns word rows; for unknown words, the sums of trigram rows."""
        rows, known = self.of_words(word_keys(words))

        def with_unknown() -> tf.Tensor:
            trigrams, _ = self.of_trigrams(tf.cast(words.trigrams, tf.int64))
            sums = tf.sparse.segment_sum(
                trigrams, words.trigram_index, words.word_index
            )
            return tf.where(known[:, tf.newaxis], rows, sums)

        vectors = tf.cond(tf.reduce_all(known), lambda: rows, with_unknown)
        return tf.cast(vectors, self.compute_dtype)

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, int]:
        """Returns `(words, units)`."""
        return input_shape[0], self.units
