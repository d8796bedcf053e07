"""Features of how the words of a query and of a title overlap, in the graph."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.text.strings import as_bytes
from keras_lstm_dssm.text.vocabulary import Vocabulary
from keras_lstm_dssm.text.word_hashing import (
    EMPTY_TEXT,
    TRIGRAMS,
    normalize_texts,
    stem_words,
    trigram_ids,
)

MAX_WORDS = 64
"""Number of words of a text that are compared, from its start."""

# Trigrams with letters of other scripts must differ, too.
_OTHER_TRIGRAMS = 8192
_ALL_TRIGRAMS = TRIGRAMS + _OTHER_TRIGRAMS

_NO_QUERY_WORD, _NO_TITLE_WORD = -1, -2  # not equal to each other


def split_both_ways(
    texts: tf.Tensor,
) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
    """Splits texts into words, and into words without numbers in them.

    Both have at most `MAX_WORDS` words, and none for a text without letters and
    digits: `2x4 studs` has the words 2x4, studs, and 2, x, 4, studs.
    """
    normal = normalize_texts(texts, MAX_WORDS, "alphanumeric")
    normal = tf.where(tf.equal(normal, EMPTY_TEXT), "", normal)
    apart = normal
    for border in (r"(\pN)(\pL)", r"(\pL)(\pN)"):
        apart = tf.strings.regex_replace(apart, border, r"\1 \2")
    words, parts = (tf.strings.split(text) for text in (normal, apart))
    return words[:, :MAX_WORDS], parts[:, :MAX_WORDS]


def stems(words: tf.Tensor) -> tf.Tensor:
    """Removes English endings from normalised words."""
    distinct, index = tf.unique(words)
    return tf.gather(stem_words(distinct), index)


class PairedIds(NamedTuple):
    """The words of pairs of texts as ids, padded; at least one column each."""

    distinct: tf.Tensor  # the distinct words, strings [w]
    query: tf.Tensor  # rows of `distinct`, int32 [pairs, words]; -1: padding
    title: tf.Tensor  # as `query`, with -2 for padding


def paired_ids(
    queries: tf.RaggedTensor,
    titles: tf.RaggedTensor,
    query_rows: tf.Tensor,
    title_rows: tf.Tensor,
) -> PairedIds:
    """Numbers the words of pairs of distinct queries and titles.

    `query_rows` and `title_rows` are the rows of each pair, int32 `[pairs]`.
    """
    distinct, ids = tf.unique(
        tf.concat([queries.flat_values, titles.flat_values], axis=0)
    )
    of_queries, of_titles = _cut(ids, queries, titles)
    return PairedIds(
        distinct,
        tf.gather(_padded(of_queries, _NO_QUERY_WORD), query_rows),
        tf.gather(_padded(of_titles, _NO_TITLE_WORD), title_rows),
    )


def _cut(
    values: tf.Tensor, first: tf.RaggedTensor, second: tf.RaggedTensor
) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
    """Divides values into the rows of two ragged tensors, one after another."""
    size = tf.size(first.flat_values)
    return (
        first.with_flat_values(values[:size]),
        second.with_flat_values(values[size:]),
    )


def _padded(ids: tf.RaggedTensor, padding: int) -> tf.Tensor:
    dense = ids.to_tensor(padding)
    missing = tf.maximum(1 - tf.shape(dense)[1], 0)
    return tf.pad(dense, [[0, 0], [0, missing]], constant_values=padding)


class TrigramShares(NamedTuple):
    """How the letter trigrams of pairs overlap, each float32 `[pairs]`.

    A trigram that occurs twice in a text counts twice.
    """

    trigram_share: tf.Tensor  # share of the query's that the title has
    title_trigram_share: tf.Tensor  # share of the title's that the query has
    spelling: tf.Tensor  # mean over the query's words of a word's share
    worst_spelling: tf.Tensor  # the smallest of these; 0 without words


def paired_trigrams(
    queries: tf.RaggedTensor,
    titles: tf.RaggedTensor,
    query_rows: tf.Tensor,
    title_rows: tf.Tensor,
) -> TrigramShares:
    """Compares the letter trigrams of pairs; the arguments of `paired_ids`.

    Lists of (pair, trigram), not a table of all trigrams of the query and of
    the title, keep time and memory proportional to the lengths of the texts.
    """
    pairs = tf.shape(query_rows)[0]
    distinct, index = tf.unique(
        tf.concat([queries.flat_values, titles.flat_values], axis=0)
    )
    ids, word = trigram_ids(distinct, _OTHER_TRIGRAMS)
    of_words = tf.RaggedTensor.from_value_rowids(
        tf.cast(ids, tf.int64),
        tf.cast(word, tf.int64),
        tf.size(distinct, tf.int64),
        validate=False,
    )
    query_words, title_words = (
        tf.gather(side, rows)
        for side, rows in zip(
            _cut(index, queries, titles), (query_rows, title_rows), strict=True
        )
    )
    keys, words, pairs_of = [], [], []
    for side in (query_words, title_words):
        pair = side.value_rowids()
        trigrams = tf.gather(of_words, side.flat_values)
        words.append(trigrams.value_rowids())
        pairs_of.append(tf.gather(pair, words[-1]))
        keys.append(pairs_of[-1] * _ALL_TRIGRAMS + trigrams.flat_values)
    size = tf.size(keys[0])
    _, numbers = tf.unique(tf.concat(keys, axis=0))
    count = tf.reduce_max(tf.concat([numbers, [-1]], axis=0)) + 1
    of_query, of_title = numbers[:size], numbers[size:]
    in_title = _members(of_query, of_title, count)
    in_query = _members(of_title, of_query, count)
    by_word = tf.math.unsorted_segment_mean(
        in_title, words[0], tf.size(query_words.flat_values)
    )
    pair_of_word = query_words.value_rowids()
    smallest = tf.math.unsorted_segment_min(by_word, pair_of_word, pairs)
    return TrigramShares(
        tf.math.unsorted_segment_mean(in_title, pairs_of[0], pairs),
        tf.math.unsorted_segment_mean(in_query, pairs_of[1], pairs),
        tf.math.unsorted_segment_mean(by_word, pair_of_word, pairs),
        # The smallest of no numbers is the largest float.
        tf.where(smallest > 1, 0.0, smallest),
    )


def _members(
    numbers: tf.Tensor, others: tf.Tensor, count: tf.Tensor
) -> tf.Tensor:
    """Returns 1 for each number that is among others, else 0; float32."""
    ones = tf.ones_like(others, tf.float32)
    found = tf.math.unsorted_segment_max(ones, others, count)
    # The largest of no numbers is the smallest float.
    return tf.gather(tf.maximum(found, 0.0), numbers)


class EqualWords(NamedTuple):
    """Holds which words of the query and the title of a pair are equal."""

    equal: tf.Tensor  # bool [pairs, query words, title words]
    in_query: tf.Tensor  # whether the query has a word i, [pairs, words]
    in_title: tf.Tensor

    @classmethod
    def of(cls, query: tf.Tensor, title: tf.Tensor) -> "EqualWords":
        """Compares ids; see `PairedIds`."""
        equal = tf.equal(query[:, :, tf.newaxis], title[:, tf.newaxis])
        return cls(equal, query >= 0, title >= 0)

    @property
    def shared(self) -> tf.Tensor:
        """Whether the title has word i of the query."""
        return tf.reduce_any(self.equal, axis=2)

    @property
    def query_length(self) -> tf.Tensor:
        """The number of words of the query, float32 `[pairs]`."""
        return tf.reduce_sum(_float(self.in_query), axis=1)

    @property
    def share(self) -> tf.Tensor:
        """The share of the query's words that the title has."""
        shared = tf.reduce_sum(_float(self.shared), axis=1)
        return tf.math.divide_no_nan(shared, self.query_length)


def order_features(equal: EqualWords) -> dict[str, tf.Tensor]:
    """Returns the features of positions and of the order of words."""
    pairs, length, width = tf.unstack(tf.shape(equal.equal))

    def extend(
        word: tf.Tensor, run: tf.Tensor, longest: tf.Tensor
    ) -> tuple[tf.Tensor, ...]:
        """Runs that end at a word of the query and each word of the title."""
        before = tf.pad(run[:, :-1], [[0, 0], [1, 0]])
        run = tf.where(equal.equal[:, word], before + 1, 0.0)
        longest = tf.maximum(longest, tf.reduce_max(run, axis=1))
        return word + 1, run, longest

    start = [0, tf.zeros([pairs, width]), tf.zeros([pairs])]
    *_, longest = tf.while_loop(lambda word, *_: word < length, extend, start)
    neighbours = tf.reduce_any(
        equal.equal[:, :-1, :-1] & equal.equal[:, 1:, 1:], axis=2
    )
    number_of_pairs = tf.maximum(equal.query_length - 1, 0)
    in_order = tf.reduce_sum(_float(neighbours), axis=1)
    place = tf.range(width, dtype=tf.int32)
    at = tf.reduce_any(equal.equal, axis=1)
    last = tf.reduce_max(tf.where(at, place, -1), axis=1)
    first = tf.reduce_min(tf.where(at, place, MAX_WORDS), axis=1)
    ending = tf.cast(tf.maximum(equal.query_length - 1, 0), tf.int32)
    return {
        "longest_run": longest,
        "neighbours": tf.math.divide_no_nan(in_order, number_of_pairs),
        "first_position": _float(tf.where(last < 0, -1, first)),
        "last_position": _float(last),
        "first_shared": _float(equal.shared[:, 0]),
        "last_shared": _float(tf.gather(equal.shared, ending, batch_dims=1)),
    }


def number_features(
    distinct: tf.Tensor, query: tf.Tensor, equal: EqualWords
) -> dict[str, tf.Tensor]:
    """Returns the features of numbers such as 12; for words see `PairedIds`."""
    is_number = tf.strings.regex_full_match(distinct, r"\pN+")
    numbers = gather_of_words(is_number, query) & equal.in_query
    return {
        "numbers_shared": tf.reduce_sum(_float(numbers & equal.shared), 1),
        "numbers": tf.reduce_sum(_float(numbers), axis=1),
    }


def _float(values: tf.Tensor) -> tf.Tensor:
    return tf.cast(values, tf.float32)


def gather_of_words(values: tf.Tensor, ids: tf.Tensor) -> tf.Tensor:
    """Gathers the values of words; those of padding have no meaning."""
    # Without any word there is no value to gather.
    values = tf.pad(values, [[0, 1]])
    return tf.gather(values, tf.maximum(ids, 0))


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
    """Rounds numbers to multiples of 2^-12, float32."""
    return tf.round(tf.cast(numbers, tf.float32) * _GRID) / _GRID


class OverlapFeatures(tf.Module):
    """Computes how the words of a query and a title overlap.

    Texts are normalised as by encoders with `split="alphanumeric"`; at most 64
    words of a text are read. The features compare words; stems, which are words
    without English endings, where numbers are separated from letters (`stems`);
    the first four letters of stems; and letter trigrams. The same TensorFlow
    ops compute them in Python and in a served graph.
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
        """Counts the stems of titles, each distinct title once."""
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
        """Computes the features of pairs, float32 `[pairs, 22]`."""
        query_texts, query_rows = tf.unique(queries)
        title_texts, title_rows = tf.unique(titles)
        rows = query_rows, title_rows
        query_words, query_parts = split_both_ways(query_texts)
        title_words, title_parts = split_both_ways(title_texts)
        words = paired_ids(query_words, title_words, *rows)
        query_stems, title_stems = (
            tf.ragged.map_flat_values(stems, parts)
            for parts in (query_parts, title_parts)
        )
        stem = paired_ids(query_stems, title_stems, *rows)
        query_prefixes, title_prefixes = (
            tf.strings.substr(side, 0, _PREFIX, unit="UTF8_CHAR")
            for side in (query_stems, title_stems)
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
        frequency = tf.reduce_sum(_float(equal.equal), axis=2)
        title_length = tf.reduce_sum(_float(equal.in_title), axis=1)
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
                tf.reduce_sum(idf * _float(equal.shared), axis=1),
                tf.reduce_sum(idf, axis=1),
            ),
            "stem_share": equal.share,
            "title_stem_share": tf.math.divide_no_nan(
                tf.reduce_sum(_float(tf.reduce_any(equal.equal, axis=1)), 1),
                title_length,
            ),
            "query_length": equal.query_length,
            "title_length": title_length,
            "rarest_missing": tf.reduce_max(missing, axis=1),
            "commonest_shared": tf.where(
                tf.reduce_any(equal.shared, axis=1), smallest, 0.0
            ),
        }
