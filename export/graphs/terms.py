"""Scores documents in a TensorFlow graph, by BM25 and by a query's numbers.

A term is a word, a stem, a letter trigram or a number. A posting of a term is a
document that has the term, and the document's score for the term.
`lstm_dssm_client.bm25` computes the same scores in NumPy.
"""

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf
import tensorflow_text as tf_text

from keras_lstm_dssm.evaluation.postings import TRIGRAMS
from keras_lstm_dssm.text.word_hashing import as_strings, normalize_and_split
from lstm_dssm_client.bm25 import (
    EDGE,
    MARKED,
    MAX_WORDS,
    NUMBER,
    PAIRED,
    SPLIT,
    STOP,
    UNKNOWN,
    TermScores,
)

POSTINGS = 2**21
"""Number of postings to read at once, which take about 100 MB. A batch of long
queries may have billions of postings. All postings of one term are read at
once, even if there are more than `POSTINGS`. Therefore documents with the same
words get exactly equal sums, because scores are added in the same order."""


class Matches(NamedTuple):
    """The words and terms of a batch of queries, and their postings."""

    # The postings of all `terms` together are numbered from 0, term by term.
    words: tf.Tensor  # strings [words]
    rows: tf.Tensor  # index of each word's query, int32 [words]
    word_of: tf.Tensor  # index of each term's word, int32 [terms]
    terms: tf.Tensor  # indices of terms in `TermGraph.bounds`, int32 [terms]
    scale: tf.Tensor  # factor of each term's scores, float32 [terms]
    ends: tf.Tensor  # 1 + the number of each term's last posting, int64 [terms]
    # What to add to the number of a term's posting to get the posting's index
    # in `TermGraph.documents` and `TermGraph.scores`, int64 [terms].
    shift: tf.Tensor


class TermGraph(tf.Module):
    """Computes the scores of `TermScores` in a TensorFlow graph."""

    def __init__(self, scores: TermScores) -> None:
        super().__init__()
        postings = scores.postings
        self.count = postings.size
        self._letters = scores.kind == TRIGRAMS
        self._words = postings.words
        # TensorFlow needs at least one key, so the key "" is always added.
        self._table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(
                as_strings(["", *postings.term_of]),
                tf.constant([UNKNOWN, *postings.term_of.values()], tf.int32),
            ),
            default_value=UNKNOWN,
        )
        # Variables, because a graph with its constants is limited to 2 GiB.
        self.bounds = tf.Variable(postings.bounds, trainable=False)
        self.documents = tf.Variable(postings.documents, trainable=False)
        self.scores = tf.Variable(postings.scores, trainable=False)
        self.idf = tf.Variable(scores.idf, trainable=False)

    def matches(self, texts: tf.Tensor) -> Matches:
        """Finds the terms of queries, strings `[batch]`."""
        words, rows = flat_words(texts, SPLIT, MAX_WORDS)
        batch = tf.size(texts)
        plain = unaccented(words)
        if self._letters:
            forms, word_of = letter_grams(plain)
            terms = self._table.lookup(forms)
        else:
            word_of, terms = tf.range(tf.size(words)), self._table.lookup(words)
            plain_terms = self._table.lookup(plain)
            plain_terms = tf.where(plain_terms == STOP, UNKNOWN, plain_terms)
            terms = tf.where(terms == UNKNOWN, plain_terms, terms)
        unknown = tf.size(self.idf) - 1
        idf = tf.gather(self.idf, tf.where(terms < 0, unknown, terms))
        idf = tf.where(terms == STOP, 0.0, idf)
        row_of = tf.gather(rows, word_of)
        max_bm25 = tf.math.unsorted_segment_sum(idf, row_of, batch)
        numbers, number_words, is_number = self._numbers(words)
        number_rows = tf.gather(rows, number_words)
        counts = tf.math.unsorted_segment_sum(is_number, number_rows, batch)
        terms = tf.concat([terms, numbers], 0)
        word_of = tf.concat([word_of, number_words], 0)
        totals = [tf.gather(max_bm25, row_of), tf.gather(counts, number_rows)]
        scale = 1.0 / tf.concat(totals, 0)
        known = tf.where(terms >= 0)[:, 0]
        terms, word_of, scale = (
            tf.gather(values, known) for values in (terms, word_of, scale)
        )
        start = tf.gather(self.bounds, terms)
        lengths = tf.gather(self.bounds, terms + 1) - start
        ends = tf.cumsum(lengths)
        shift = start - (ends - lengths)
        return Matches(words, rows, word_of, terms, scale, ends, shift)

    def _numbers(self, words: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Looks up the numbers in words: runs of digits, and Roman numerals.

        Each run of digits is a candidate, and so is each word without digits.
        Returns the term of each candidate, the index of the candidate's word,
        and 1.0 if the candidate counts as a number, else 0.0. A word without
        digits counts only if the word is a Roman numeral that has a term.
        """
        runs = tf.strings.regex_replace(words, "[^0-9]+", " ")
        digits = tf.strings.split(runs)
        lengths = digits.row_lengths()
        with_digits = tf.where(tf.sequence_mask(lengths))[:, 0]
        without_digits = tf.where(lengths == 0)[:, 0]
        forms = tf.strings.regex_replace(
            digits.flat_values, "^0+([0-9])", r"\1"
        )
        forms = tf.concat([forms, tf.gather(words, without_digits)], 0)
        terms = self._table.lookup(NUMBER + forms)
        word_of = tf.cast(tf.concat([with_digits, without_digits], 0), tf.int32)
        has_digits = tf.range(tf.size(word_of)) < tf.size(with_digits)
        is_number = tf.cast(has_digits | (terms >= 0), tf.float32)
        return terms, word_of, is_number

    def sums(self, matches: Matches, batch: tf.Tensor) -> tf.Tensor:
        """Sums term scores by query and document, `[batch, documents]`."""
        first = tf.gather(matches.rows, matches.word_of) * self.count
        flat = self._cell_sums(
            matches,
            lambda term, documents: tf.gather(first, term) + documents,
            batch * self.count,
        )
        return tf.reshape(flat, [batch, self.count])

    def shares(self, matches: Matches, indices: tf.Tensor) -> list[tf.Tensor]:
        """Returns what the terms of one query add to the scores of k documents.

        `indices` are the indices of the k documents. The result is an array
        `[terms, k]` of the BM25 scores, and an array `[terms, k]` of the scores
        for the query's numbers.
        """
        k = tf.size(indices)
        # Columns 0 to k - 1 are the k documents; other documents get column k.
        columns = tf.tensor_scatter_nd_update(
            tf.fill([self.count], k), indices[:, tf.newaxis], tf.range(k)
        )
        count = tf.size(matches.terms)
        flat = self._cell_sums(
            matches,
            lambda term, documents: (
                term * (k + 1) + tf.gather(columns, documents)
            ),
            count * (k + 1),
        )
        shares = tf.reshape(flat, [count, k + 1])[:, :k]
        is_word = (matches.terms < self._words)[:, tf.newaxis]
        return [tf.where(is_word, shares, 0.0), tf.where(is_word, 0.0, shares)]

    def _cell_sums(
        self,
        matches: Matches,
        # Returns the cell of each posting, an index in the result. The
        # arguments are, for each posting, the index of the posting's term in
        # `matches.terms`, and the posting's document.
        cells_of: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
        size: tf.Tensor,
    ) -> tf.Tensor:
        """Adds each posting's score to a cell; returns all cells, `[size]`."""

        def add_terms(
            start: tf.Tensor, before: tf.Tensor, sums: tf.Tensor
        ) -> tuple[tf.Tensor, ...]:
            limit = [before + POSTINGS]
            stop = tf.searchsorted(matches.ends, limit, side="right")[0]
            stop = tf.maximum(stop, start + 1)
            ends = matches.ends[start:stop]
            number = tf.range(before, ends[-1])
            # `begins` is 1 at the first posting of each term except the first
            # term. The first posting of term i has the index
            # ends[i - 1] - before. All these indices differ, because every
            # term has postings.
            begins = tf.scatter_nd(
                ends[:-1, tf.newaxis] - before,
                tf.ones_like(ends[1:], tf.int32),
                tf.shape(number, tf.int64),
            )
            term = start + tf.cumsum(begins)
            position = number + tf.gather(matches.shift, term)
            cells = cells_of(term, tf.gather(self.documents, position))
            scores = tf.gather(self.scores, position)
            scores *= tf.gather(matches.scale, term)
            new_sums = tf.math.unsorted_segment_sum(scores, cells, size)
            return stop, ends[-1], sums + new_sums

        _, _, sums = tf.while_loop(
            lambda start, *_: start < tf.size(matches.ends),
            add_terms,
            [tf.constant(0), tf.constant(0, tf.int64), tf.zeros([size])],
            parallel_iterations=1,
        )
        return sums


def flat_words(
    texts: tf.Tensor, split: str, max_words: int | None
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns words of strings `[batch]`, and the index of each word's text."""
    words = normalize_and_split(texts, max_words, split)
    # Equals `words.value_rowids()`, with a third of the operations.
    rows = tf.where(tf.sequence_mask(words.row_lengths()))[:, 0]
    return words.flat_values, tf.cast(rows, tf.int32)


def unaccented(words: tf.Tensor) -> tf.Tensor:
    """Removes the accents of Latin letters, as `bm25.unaccented` does."""
    letters = tf_text.normalize_utf8(words, "NFD")
    letters = tf.strings.regex_replace(letters, MARKED, r"\1")
    return tf_text.normalize_utf8(letters, "NFC")


def letter_grams(words: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Lists the letter trigrams of unaccented words.

    Returns the trigrams, and the index of each trigram's word.
    `bm25.letter_grams` lists the same trigrams.
    """
    split = tf.strings.unicode_split(words, "UTF-8")
    letters = split.flat_values
    word_of = tf.where(tf.sequence_mask(split.row_lengths()))[:, 0]
    is_same = tf.equal(word_of[1:], word_of[:-1])
    edge = tf.constant([EDGE])
    size = tf.size(letters)
    # Without letters, `concat` returns only an EDGE, which `[:size]` drops.
    before = tf.concat([edge, tf.where(is_same, letters[:-1], EDGE)], 0)[:size]
    after = tf.concat([tf.where(is_same, letters[1:], EDGE), edge], 0)[:size]
    is_paired = tf.strings.regex_full_match(letters, PAIRED)
    before = tf.where(is_paired, "", before)
    return before + letters + after, tf.cast(word_of, tf.int32)


def shares_as_json(words: tf.Tensor, shares: tf.Tensor) -> tf.Tensor:
    """Returns JSON for each column of `shares`, such as `{"bolt": 0.2500}`.

    `shares`, `[words, k]`, are the contributions of words to the scores of k
    documents. Contributions of equal words are added. A contribution that would
    be rounded to 0 is left out.
    """
    distinct, index = tf.unique(words)
    sums = tf.math.unsorted_segment_sum(shares, index, tf.size(distinct))
    escaped = tf.strings.regex_replace(distinct, r'(["\\])', r"\\\1")
    escaped = tf.strings.regex_replace(escaped, r"[\x00-\x1f]", "")
    entries = tf.strings.join(
        [
            '"',
            tf.broadcast_to(escaped[:, tf.newaxis], tf.shape(sums)),
            '": ',
            tf.strings.as_string(sums, precision=4),
            ", ",
        ]
    )
    entries = tf.where(tf.abs(sums) > 5e-5, entries, "")
    joined = tf.strings.reduce_join(entries, axis=0)
    return "{" + tf.strings.regex_replace(joined, ", $", "") + "}"
