"""WordSketch: the very words of a text, in a few hundred numbers."""

from collections.abc import Iterable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.registration import register
from keras_lstm_dssm.text import WordBatch

_LIST, _TABLE = (tf.TensorSpec([None] * rank, tf.int32) for rank in (1, 2))
_WORDS = WordBatch(_LIST, _LIST, _LIST, _TABLE, _LIST, _LIST)

_TABLES, _SIGNS = 2, 2048  # tables of signs, and rows of each

# Products of two numbers below the prime stay below 2**63.
_PRIME = 2**31 - 1
_FACTORS = (
    1_557_985_959, 2_028_178_513, 48_271, 742_938_285, 950_706_376,
)  # fmt: skip
_OF_START = 1_343_714_438  # `cat` is not the start of `cats`


@register
class WordSketch(keras.layers.Layer):
    """A fixed row of random signs for each word, as heavy as it is rare.

    Each distinct word gets `w(word) r(word) + w(start) r(start)`, where r is
    a row of signs drawn by a hash, w the square root of the idf, and the
    start is that of the word (`bracket` and `brackets` share one). The sum
    over a text's words is a random projection of its weighted bag of words:
    inner products of sums are those of the sparse vectors, but for an error
    of about 1 / sqrt(units) of their lengths. So one dense vector finds equal
    words, rare or never trained on, beside what it has learnt.

    The root, because a product has the weight of both texts: a word that they
    share then counts its idf, once, as in BM25.

    A word's hash is made of its trigrams, so no vocabulary is kept: document
    frequencies are counted in buckets (`adapt`). Nothing here is trained.

    Args:
        units: Width of a row.
        buckets: Counters of document frequencies; words that share one count as
            one.
        start: Trigrams at a word's start that make its start; 3 are its
            first four letters.
        seed: Of the signs; towers whose sketches are compared need one seed.

    Call arguments:
        words: `WordBatch` with `n` distinct words.

    Returns:
        Float tensor `(n, units)`, sums of two weights with random signs.

    References: Charikar et al. 2002 (a sketch of sums by random signs);
    Robertson and Zaragoza 2009 (idf).
    """

    def __init__(
        self,
        units: int,
        buckets: int = 2**17,
        start: int = 3,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.units = units
        self.buckets = buckets
        self.start = start
        self.seed = seed
        random = np.random.default_rng(seed)
        # Products of a row of each table: 4 million rows of signs. A third
        # table would give more, and cost a fifth of the encoder's speed.
        self._signs = [
            self.add_weight(
                shape=(_SIGNS, units),
                initializer=_constant(signs),
                trainable=False,
                name=f"signs_{place}",
            )
            for place, signs in enumerate(
                random.integers(0, 2, (_TABLES, _SIGNS, units)) * 2 - 1
            )
        ]
        self.word_weight = self.add_weight(
            shape=(buckets,),
            initializer="ones",
            trainable=False,
            name="word_weight",
        )
        self.built = True

    def call(self, words: WordBatch) -> tf.Tensor:
        """Adds the rows of each word and of its start."""
        return tf.add_n([self._row(key) for key in self._keys(words)])

    def adapt(self, batches: Iterable[WordBatch]) -> None:
        """Counts in how many of N texts each word is, and sets the weights.

            w = sqrt(idf),  idf = log(1 + (N - df + 1/2) / (df + 1/2))

        Args:
            batches: The texts, each of them once, batch by batch.
        """
        count, texts = np.zeros(self.buckets), 0
        for words in batches:
            count += self._frequencies(words).numpy()
            texts += len(words.lengths)
        idf = np.log1p((texts - count + 0.5) / (count + 0.5))
        self.word_weight.assign(np.sqrt(idf))

    @tf.function(input_signature=[_WORDS])
    def _frequencies(self, words: WordBatch) -> tf.Tensor:
        """In how many distinct texts each bucket is, `(buckets,)`."""
        word, text = words.flat()
        first = tf.cast(text, tf.int64) * self.buckets
        found = [
            first + tf.gather(_hash(key, 0, self.buckets), word)
            for key in self._keys(words)
        ]
        once, _ = tf.unique(tf.concat(found, axis=0))
        return tf.math.bincount(
            tf.cast(once % self.buckets, tf.int32),
            minlength=self.buckets,
            maxlength=self.buckets,
        )

    def _row(self, key: tf.Tensor) -> tf.Tensor:
        weight = tf.gather(self.word_weight.value, _hash(key, 0, self.buckets))
        row = weight[:, tf.newaxis]
        for place, table in enumerate(self._signs):
            row *= tf.gather(table.value, _hash(key, 1 + place, _SIGNS))
        return row

    def _keys(self, words: WordBatch) -> list[tf.Tensor]:
        """Two numbers below the prime for each word: of all, of its start."""
        # A sum leaves the trigrams' order out, which hardly any two words
        # differ in alone.
        mixed = tf.gather(
            _mix(tf.cast(words.trigrams, tf.int64)), words.trigram_index
        )
        place = tf.range(tf.size(words.word_index))
        first = tf.math.segment_min(place, words.word_index)
        early = place - tf.gather(first, words.word_index) < self.start
        whole = tf.math.segment_sum(mixed, words.word_index)
        start = tf.math.segment_sum(tf.where(early, mixed, 0), words.word_index)
        return [whole % _PRIME, (start + _OF_START) % _PRIME]

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        names = ("units", "buckets", "start", "seed")
        return {
            **super().get_config(),
            **{name: getattr(self, name) for name in names},
        }


def _mix(numbers: tf.Tensor) -> tf.Tensor:
    """Scatters numbers below the prime, so that their sums differ, too."""
    numbers = (numbers + 1) * _FACTORS[0] % _PRIME
    numbers = tf.bitwise.bitwise_xor(
        numbers, tf.bitwise.right_shift(numbers, 15)
    )
    return numbers * _FACTORS[1] % _PRIME


def _hash(keys: tf.Tensor, which: int, values: int) -> tf.Tensor:
    """One of three hashes of each key, below `values`."""
    return _mix(keys * _FACTORS[2 + which] % _PRIME) % values


def _constant(values: np.ndarray) -> Any:
    return lambda shape, dtype=None: keras.ops.cast(values, dtype)
