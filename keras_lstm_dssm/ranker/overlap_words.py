"""Words, stems and letter trigrams of pairs of texts, in the graph."""

from typing import NamedTuple

import tensorflow as tf

from keras_lstm_dssm.text import TRIGRAMS, normalize_texts, trigram_ids
from keras_lstm_dssm.text.stems import cut_endings
from keras_lstm_dssm.text.word_hashing import EMPTY_TEXT

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

    Args:
        texts: Strings `[texts]`, any bytes.

    Returns:
        Two ragged string tensors `[texts, (words)]`, of at most `MAX_WORDS`
        words each, none for a text without letters and digits: the words, as
        encoders with `split="alphanumeric"` read them; and these with
        numbers and letters as words of their own.

    Example:
    >>> [s.to_list() for s in split_both_ways(tf.constant(["2x4 Studs"]))]
    [[[b'2x4', b'studs']], [[b'2', b'x', b'4', b'studs']]]
    """
    normal = normalize_texts(texts, MAX_WORDS, "alphanumeric")
    normal = tf.where(tf.equal(normal, EMPTY_TEXT), "", normal)
    apart = normal
    for border in (r"(\pN)(\pL)", r"(\pL)(\pN)"):
        apart = tf.strings.regex_replace(apart, border, r"\1 \2")
    words, parts = (tf.strings.split(text) for text in (normal, apart))
    return words[:, :MAX_WORDS], parts[:, :MAX_WORDS]


def stems(words: tf.Tensor) -> tf.Tensor:
    """Removes English endings from words, from each distinct word once.

    Args:
        words: Normalised words, strings `[n]`; see `cut_endings`.

    >>> stems(tf.constant(["batteries", "boxes", "hinges", "lighting"])).numpy()
    array([b'battery', b'box', b'hinge', b'light'], dtype=object)
    """
    distinct, index = tf.unique(words)
    return tf.gather(cut_endings(distinct), index)


class PairedIds(NamedTuple):
    """The words of pairs of texts as ids, padded.

    Attributes:
        distinct: The distinct words, strings `[w]`.
        query: int32 `[pairs, query words]`, indices in `distinct`, -1 past
            the end of a query; at least one column.
        title: int32 `[pairs, title words]`, indices in `distinct`, -2 past
            the end of a title; at least one column.
    """

    distinct: tf.Tensor
    query: tf.Tensor
    title: tf.Tensor


def paired_ids(
    queries: tf.RaggedTensor,
    titles: tf.RaggedTensor,
    query_rows: tf.Tensor,
    title_rows: tf.Tensor,
) -> PairedIds:
    """Numbers the words of pairs of texts.

    Args:
        queries: The words of distinct queries, ragged strings.
        titles: The words of distinct titles, ragged strings.
        query_rows: The row of the query of each pair, int32 `[pairs]`.
        title_rows: The row of the title of each pair, int32 `[pairs]`.
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

    Attributes:
        trigram_share: Share of the query's trigrams that the title has.
        title_trigram_share: Share of the title's that the query has.
        spelling: Mean over the words of the query of the share of a word's
            trigrams that the title has.
        worst_spelling: The smallest of these shares; 0 without words.
    """

    trigram_share: tf.Tensor
    title_trigram_share: tf.Tensor
    spelling: tf.Tensor
    worst_spelling: tf.Tensor


def paired_trigrams(
    queries: tf.RaggedTensor,
    titles: tf.RaggedTensor,
    query_rows: tf.Tensor,
    title_rows: tf.Tensor,
) -> TrigramShares:
    """Compares the letter trigrams of pairs; the arguments of `paired_ids`.

    Trigrams are found in lists of (pair, trigram), not in a table of all
    trigrams of the query and of the title, so that time and memory are
    proportional to the lengths of the texts.
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
