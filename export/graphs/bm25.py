"""BM25 in a graph: the postings of titles, added up for the terms of queries.

`shares_as_json` writes what each word of a query adds to a score.
"""

from typing import NamedTuple

import tensorflow as tf

from keras_lstm_dssm.evaluation.postings import TRIGRAMS, Postings
from keras_lstm_dssm.text.strings import as_strings
from keras_lstm_dssm.text.word_hashing import split_words
from lstm_dssm_client.terms import EDGE, MAX_WORDS, PAIRED, SPLIT


class Matches(NamedTuple):
    """The words of some queries, and a posting of each title that has one."""

    words: tf.Tensor  # strings [words]
    rows: tf.Tensor  # the query of each word, int32 [words]
    word: tf.Tensor  # the word of each posting, int32 [postings]
    documents: tf.Tensor  # its title, int32 [postings]
    scores: tf.Tensor  # what it adds to the title's score, [postings]

    @property
    def cells(self) -> tf.Tensor:
        """The query of each posting."""
        return tf.gather(self.rows, self.word)


class BM25Graph(tf.Module):
    """The postings of `count` titles, and the table of forms, in a graph."""

    def __init__(self, postings: Postings, kind: str, count: int) -> None:
        super().__init__()
        self.count = count
        self._letters = kind == TRIGRAMS
        # A table may not be empty; no word is "".
        self._table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(
                as_strings(["", *postings.forms]),
                tf.constant([-1, *postings.form_terms], tf.int32),
            ),
            default_value=-1,
        )
        # Variables, not constants: a graph is limited to 2 GiB.
        self.bounds = tf.Variable(postings.bounds, trainable=False)
        self.documents = tf.Variable(postings.documents, trainable=False)
        self.scores = tf.Variable(postings.scores, trainable=False)

    def matches(self, texts: tf.Tensor) -> Matches:
        """Finds the postings of the terms of strings `[batch]`."""
        words, rows = flat_words(texts, SPLIT, MAX_WORDS)
        forms, word = words, tf.range(tf.size(words))
        if self._letters:
            forms, word = letter_grams(words)
        numbers = self._table.lookup(forms)
        known = tf.where(numbers >= 0)[:, 0]
        numbers, word = tf.gather(numbers, known), tf.gather(word, known)
        start = tf.gather(self.bounds, numbers)
        ends = tf.cumsum(tf.gather(self.bounds, numbers + 1) - start)
        total = tf.concat([[tf.constant(0, tf.int64)], ends], 0)[-1]
        # No term is without titles: each end but the last begins another one.
        begins = tf.scatter_nd(
            ends[:-1, tf.newaxis], tf.ones_like(numbers[1:]), total[tf.newaxis]
        )
        term = tf.cumsum(begins)
        first = tf.concat([[tf.constant(0, tf.int64)], ends[:-1]], 0)
        first = first[: tf.size(numbers)]
        position = tf.range(total) + tf.gather(start - first, term)
        return Matches(
            words,
            rows,
            tf.gather(word, term),
            tf.gather(self.documents, position),
            tf.gather(self.scores, position),
        )

    def sums(self, matches: Matches, batch: tf.Tensor) -> tf.Tensor:
        """Adds the scores up, float32 `[batch, count]`."""
        cells = matches.cells * self.count + matches.documents
        flat = tf.math.unsorted_segment_sum(
            matches.scores, cells, batch * self.count
        )
        return tf.reshape(flat, [batch, self.count])

    def shares(self, matches: Matches, numbers: tf.Tensor) -> tf.Tensor:
        """Adds the scores up by word, `[words, k]`, for titles `[batch, k]`."""
        batch, k = tf.unstack(tf.shape(numbers))
        first = tf.range(batch)[:, tf.newaxis] * self.count
        # The column of a title among the k, and one more for other titles.
        columns = tf.tensor_scatter_nd_update(
            tf.fill([batch * self.count], k),
            tf.reshape(first + numbers, [-1, 1]),
            tf.tile(tf.range(k), [batch]),
        )
        cells = matches.cells * self.count + matches.documents
        column = tf.gather(columns, cells)
        count = tf.size(matches.words)
        flat = tf.math.unsorted_segment_sum(
            matches.scores, matches.word * (k + 1) + column, count * (k + 1)
        )
        return tf.reshape(flat, [count, k + 1])[:, :k]


def flat_words(
    texts: tf.Tensor, split: str, max_words: int | None
) -> tuple[tf.Tensor, tf.Tensor]:
    """Splits strings `[batch]` into words, and the row of each, int32."""
    words = split_words(texts, max_words, split)
    # As `value_rowids`, by a third of the operations.
    rows = tf.where(tf.sequence_mask(words.row_lengths()))[:, 0]
    return words.flat_values, tf.cast(rows, tf.int32)


def letter_grams(words: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Lists the grams of words, see `terms`, and the word of each."""
    split = tf.strings.unicode_split(words, "UTF-8")
    letters = split.flat_values
    word = tf.where(tf.sequence_mask(split.row_lengths()))[:, 0]
    is_same = tf.equal(word[1:], word[:-1])
    edge = tf.constant([EDGE])
    size = tf.size(letters)  # an empty batch has no neighbours
    before = tf.concat([edge, tf.where(is_same, letters[:-1], EDGE)], 0)[:size]
    after = tf.concat([tf.where(is_same, letters[1:], EDGE), edge], 0)[:size]
    is_paired = tf.strings.regex_full_match(letters, PAIRED)
    before = tf.where(is_paired, "", before)
    return before + letters + after, tf.cast(word, tf.int32)


def shares_as_json(
    words: tf.Tensor, rows: tf.Tensor, shares: tf.Tensor, batch: tf.Tensor
) -> tf.Tensor:
    """Writes the shares of each query's words as JSON objects.

    Args:
        words: Strings `[words]`; a word of a query may occur twice.
        rows: The query of each word, int32 `[words]`.
        shares: Float32 `[words, k]`; those that round to 0 are left
            out.
        batch: Number of queries.

    Returns:
        Strings `[batch, k]`, such as `{"bolt": 0.2500}`.
    """
    keys = tf.strings.join([tf.strings.as_string(rows), words], " ")
    distinct, index = tf.unique(keys)
    count = tf.size(distinct)
    sums = tf.math.unsorted_segment_sum(shares, index, count)
    row = tf.math.unsorted_segment_max(rows, index, count)
    word = tf.strings.regex_replace(distinct, r"^[0-9]+ ", "")
    # Words that white space separates may have these.
    word = tf.strings.regex_replace(word, r'(["\\])', r"\\\1")
    word = tf.strings.regex_replace(word, r"[\x00-\x1f]", "")
    entries = tf.strings.join(
        [
            '"',
            tf.broadcast_to(word[:, tf.newaxis], tf.shape(sums)),
            '": ',
            tf.strings.as_string(sums, precision=4),
            ", ",
        ]
    )
    entries = tf.where(tf.abs(sums) > 5e-5, entries, "")
    joined = tf.strings.unsorted_segment_join(entries, row, batch)
    return "{" + tf.strings.regex_replace(joined, ", $", "") + "}"
