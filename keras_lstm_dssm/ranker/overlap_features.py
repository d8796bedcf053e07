"""OverlapFeatures: numbers of how the words of query and title overlap."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.ranker.equal_words import (
    EqualWords,
    gather_of_words,
    number_features,
    order_features,
)
from keras_lstm_dssm.ranker.overlap_words import (
    paired_ids,
    paired_trigrams,
    split_both_ways,
    stems,
)
from keras_lstm_dssm.text import Vocabulary, as_bytes

NAMES = (
    # The query's stems that the title has: BM25, share of IDF, share.
    "bm25",
    "idf_share",
    "stem_share",
    # Shares of the query's words, and of the first four letters of its stems.
    "word_share",
    "prefix_share",
    # Letter trigrams: share of the query's, share of the title's.
    "trigram_share",
    "title_trigram_share",
    # Share of the title's stems that the query has.
    "title_stem_share",
    # Numbers of stems.
    "query_length",
    "title_length",
    # The largest IDF of a missing stem, the smallest of a shared one.
    "rarest_missing",
    "commonest_shared",
    # Share of a query word's trigrams that the title has: mean, smallest.
    "spelling",
    "worst_spelling",
    # Order: longest run of stems in both texts; share of the query's pairs of
    # neighbouring stems that are neighbours in the title.
    "longest_run",
    "neighbours",
    # Numbers such as 12 that are shared, and those of the query.
    "numbers_shared",
    "numbers",
    # Positions in the title of the query's stems, from 0; -1 for none.
    "first_position",
    "last_position",
    # Whether the first and the last stem of the query are shared.
    "first_shared",
    "last_shared",
)
"""The names of the features, in their order."""

K1, B = 1.2, 0.75
"""k1 and b of the feature BM25: the defaults of `BM25System`."""

_PREFIX = 4
_TEXTS_AT_ONCE = 10_000

# Sums of the same numbers in another order differ in their last bits, and a
# threshold of a tree must not distinguish them.
_GRID = 2.0**12


def on_grid(numbers: Any) -> tf.Tensor:
    """Rounds numbers to multiples of 2^-12, float32.

    >>> on_grid(tf.constant([0.3000001, 0.3])).numpy().tolist()
    [0.300048828125, 0.300048828125]
    """
    return tf.round(tf.cast(numbers, tf.float32) * _GRID) / _GRID


class OverlapFeatures(tf.Module):
    """Computes how the words of a query and a title overlap.

    Texts are normalised as by encoders with `split="alphanumeric"`; at most
    64 words of a text are read. The features compare words; stems, which are
    words without English endings, where numbers are separated from letters
    (`stems`); the first four letters of stems; and letter trigrams. The same
    TensorFlow ops compute them in Python and in a served graph.

    Args:
        words: The distinct stems of the titles.
        counts: The number of titles with each of them.
        titles: The number of titles.
        mean_length: The mean number of stems of a title.

    Raises:
        InputError: There are no words, or not as many counts.

    Example:
    >>> overlap = OverlapFeatures.from_titles(["steel hex bolt", "wood glue"])
    >>> row = overlap(tf.constant(["hex bolts"]), tf.constant(["hex bolt 3"]))
    >>> dict(zip(NAMES, row[0].numpy().tolist()))["stem_share"]
    1.0
    """

    def __init__(
        self,
        words: list[str],
        counts: list[int],
        titles: int,
        mean_length: float,
    ) -> None:
        super().__init__()
        if len(words) != len(counts):
            raise InputError(
                f"found {len(words)} words and {len(counts)} counts, expected"
                " as many"
            )
        self.vocabulary = Vocabulary(words)
        self.titles = titles
        self.mean_length = mean_length
        self._counts = np.array(counts, np.int64)
        # Lucene's IDF; the first is that of all other words.
        frequency = np.concatenate([[0], self._counts])
        idf = np.log1p((titles - frequency + 0.5) / (frequency + 0.5))
        self._idf = tf.Variable(idf.astype(np.float32), trainable=False)

    @classmethod
    def from_titles(cls, titles: Iterable[str]) -> "OverlapFeatures":
        """Counts the stems of titles, each distinct title once.

        Raises:
            InputError: There is no word in the titles.
        """
        texts = list(dict.fromkeys(as_bytes(titles)))
        counts: Counter[bytes] = Counter()
        length = 0
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            some = tf.constant(texts[start : start + _TEXTS_AT_ONCE])
            parts = split_both_ways(some)[1]
            in_titles = stems(parts.flat_values).numpy()
            titles_of = parts.value_rowids().numpy()
            length += len(in_titles)
            pairs = set(
                zip(titles_of.tolist(), in_titles.tolist(), strict=True)
            )
            counts.update(word for _, word in pairs)
        if not counts:
            raise InputError(
                f"found no word in {len(texts)} titles, expected titles to"
                " count the words of"
            )
        words = sorted(counts)
        return cls(
            [word.decode() for word in words],
            [counts[word] for word in words],
            len(texts),
            length / len(texts),
        )

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor arguments as a dict."""
        return {
            "words": self.vocabulary.words,
            "counts": self._counts.tolist(),
            "titles": self.titles,
            "mean_length": self.mean_length,
        }

    def __call__(self, queries: tf.Tensor, titles: tf.Tensor) -> tf.Tensor:
        """Computes the features of pairs.

        Args:
            queries: Strings `[pairs]`.
            titles: Strings `[pairs]`.

        Returns:
            float32 `[pairs, 22]`, in the order of `NAMES`.
        """
        query_texts, query_rows = tf.unique(queries)
        title_texts, title_rows = tf.unique(titles)
        rows = query_rows, title_rows
        query_words, query_parts = split_both_ways(query_texts)
        title_words, title_parts = split_both_ways(title_texts)
        words = paired_ids(query_words, title_words, *rows)
        query_parts, title_parts = (
            parts.with_flat_values(stems(parts.flat_values))
            for parts in (query_parts, title_parts)
        )
        stem = paired_ids(query_parts, title_parts, *rows)
        query_prefixes, title_prefixes = (
            parts.with_flat_values(
                tf.strings.substr(
                    parts.flat_values, 0, _PREFIX, unit="UTF8_CHAR"
                )
            )
            for parts in (query_parts, title_parts)
        )
        prefix = paired_ids(query_prefixes, title_prefixes, *rows)
        trigrams = paired_trigrams(query_words, title_words, *rows)
        equal = EqualWords.of(stem.query, stem.title)
        columns = {
            **self._weighted(stem.distinct, stem.query, equal),
            "word_share": EqualWords.of(words.query, words.title).share,
            "prefix_share": EqualWords.of(prefix.query, prefix.title).share,
            **trigrams._asdict(),
            **order_features(equal),
            **number_features(stem.distinct, stem.query, equal),
        }
        return on_grid(tf.stack([columns[name] for name in NAMES], axis=1))

    def _weighted(
        self, distinct: tf.Tensor, query: tf.Tensor, equal: EqualWords
    ) -> dict[str, tf.Tensor]:
        """Returns the features of lengths and of the stems' IDF."""
        idf = tf.gather(self._idf, self.vocabulary.ids(distinct))
        idf = tf.where(equal.in_query, gather_of_words(idf, query), 0.0)
        shared = tf.cast(equal.shared, tf.float32)
        frequency = tf.reduce_sum(tf.cast(equal.equal, tf.float32), axis=2)
        title_length = tf.reduce_sum(tf.cast(equal.in_title, tf.float32), 1)
        norm = K1 * (1 - B + B * title_length / max(self.mean_length, 1e-9))
        missing = tf.where(equal.shared, 0.0, idf)
        # The IDF of padding and of missing stems must not be the smallest.
        largest = tf.reduce_max(idf) + 1
        smallest = tf.reduce_min(tf.where(equal.shared, idf, largest), axis=1)
        return {
            "bm25": tf.reduce_sum(
                idf * frequency / (frequency + norm[:, tf.newaxis]), axis=1
            ),
            "idf_share": tf.math.divide_no_nan(
                tf.reduce_sum(idf * shared, axis=1), tf.reduce_sum(idf, axis=1)
            ),
            "stem_share": equal.share,
            "title_stem_share": tf.math.divide_no_nan(
                tf.reduce_sum(
                    tf.cast(tf.reduce_any(equal.equal, axis=1), tf.float32), 1
                ),
                title_length,
            ),
            "query_length": equal.query_length,
            "title_length": title_length,
            "rarest_missing": tf.reduce_max(missing, axis=1),
            "commonest_shared": tf.where(
                tf.reduce_any(equal.shared, axis=1), smallest, 0.0
            ),
        }
