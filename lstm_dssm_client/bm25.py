"""BM25 in NumPy: the formula, postings that are added up, and their terms.

The package computes postings for evaluation and for exports; `LocalModel` reads
those in its file.

A text is split into words as the encoders split it. A term is a word, its stem,
or letters of it; `words.split_words` and `letter_grams` give the forms that a
table then maps to terms, in an exported graph and here alike.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from lstm_dssm_client.words import split_words

SPLIT = "alphanumeric"
"""The rule by which BM25 separates words."""

MAX_WORDS = 128
"""Number of words that are read of a query; of a title all are."""

EDGE = "#"
"""What stands before the first letter of a word and after the last one."""

PAIRED = (
    "[\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\U00020000-\U000323af]"
)
"""Letters of scripts that write a word in one to three of them: Chinese,
Japanese, Korean. A regular expression of Python and of RE2."""

_IS_PAIRED = re.compile(PAIRED)


def letter_grams(word: str) -> list[str]:
    """Lists a gram for each letter: the letter, and one before and one after.

    The gram of a letter of `PAIRED` is it and the letter after it: pairs are
    what Chinese is searched by, since words are not separated.

    Example:
    >>> letter_grams("good")
    ['#go', 'goo', 'ood', 'od#']
    >>> letter_grams("上海x")
    ['上海', '海x', '海x#']
    """
    letters = EDGE + word + EDGE
    return [
        letters[i + bool(_IS_PAIRED.match(letters[i + 1])) : i + 3]
        for i in range(len(word))
    ]


FORMS: dict[str, Callable[[str], list[str]]] = {
    "stems": lambda word: [word],
    "words": lambda word: [word],
    "trigrams": letter_grams,
}
"""What BM25 compares -> function from a word of a query to the forms of it that
a table maps to terms."""


def word_forms(
    forms_of: Callable[[str], list[str]],
    text: str | bytes,
    max_words: int | None = MAX_WORDS,
) -> list[tuple[str, str]]:
    """Lists pairs of a word of a text and a form of the word, in their order.

    `forms_of` is a value of `FORMS`: the form of "bolts" is "bolts", and with
    trigrams its forms are "#bo", "bol", and so on. Queries are read up to
    `MAX_WORDS` words; `None` reads all words, as of titles.
    """
    words = split_words(text, SPLIT, max_words)
    return [(word, form) for word in words for form in forms_of(word)]


def idf(frequency: Any, count: int) -> np.ndarray:
    """Returns Lucene's IDF, log(1 + (N - df + 1/2) / (df + 1/2)), float64.

    `frequency` is df, the number of the N = `count` texts that have a term.
    """
    return np.log1p((count - frequency + 0.5) / (frequency + 0.5))


def term_shares(
    counts: np.ndarray,
    lengths: np.ndarray,
    mean_length: float,
    k1: float,
    b: float,
) -> np.ndarray:
    """Returns tf / (tf + k1 (1 - b + b length / mean length)).

    It is the share of its IDF that a term adds to the score of a document in
    which it occurs tf times, see `counts`.
    """
    return counts / (counts + k1 * (1 - b + b * lengths / mean_length))


class Postings(NamedTuple):
    """An index from each term to its documents, with their scores of BM25.

    Attributes:
        size: Number of documents.
        term_of: Form of a word, see `FORMS` -> number of the term.
        bounds: Where the documents of each term begin, and the end, int64
            `[terms + 1]`.
        documents: The documents of each term, ascending, int32.
        scores: What an occurrence of the term in a query adds to the score of
            the document, float32.
    """

    size: int
    term_of: Mapping[str, int]
    bounds: np.ndarray
    documents: np.ndarray
    scores: np.ndarray

    @classmethod
    def of_counts(
        cls,
        term_of: Mapping[str, int],
        counts: Any,
        k1: float,
        b: float,
        idf_type: Any = np.float64,
    ) -> "Postings":
        """Computes the postings of documents.

        Args:
            term_of: See `Postings`.
            counts: How often each document has each term: a sparse matrix of
                SciPy, `[documents, terms]`.
            k1: Saturation of the term frequency.
            b: Influence of a document's length, from 0 to 1.
            idf_type: Precision of the IDF.
        """
        by_term = counts.tocsc()
        tf = by_term.data.astype(np.float64)
        lengths = np.asarray(counts.sum(axis=1, dtype=np.float64)).ravel()
        frequency = np.diff(by_term.indptr)
        shares = term_shares(
            tf, lengths[by_term.indices], lengths.mean() or 1.0, k1, b
        )
        weights = idf(frequency, len(lengths)).astype(idf_type)
        return cls(
            len(lengths),
            term_of,
            by_term.indptr.astype(np.int64),
            by_term.indices.astype(np.int32),
            (np.repeat(weights, frequency) * shares).astype(np.float32),
        )

    def in_order(self, order: np.ndarray) -> "Postings":
        """Returns the postings of the same documents in another order.

        `order` has the number of the document at each position, integers `[n]`.
        """
        position = np.empty(len(order), np.int32)
        position[order] = np.arange(len(order), dtype=np.int32)
        documents = position[self.documents]
        sizes = np.diff(self.bounds)
        term = np.repeat(np.arange(len(sizes)), sizes)
        ascending = np.lexsort((documents, term))
        return self._replace(
            documents=documents[ascending], scores=self.scores[ascending]
        )

    def rows(self, form: str) -> slice:
        """Returns where the documents and the scores of a form are."""
        term = self.term_of.get(form)
        if term is None:
            return slice(0)
        return slice(*self.bounds[term : term + 2])

    def sums(self, forms: Iterable[str]) -> np.ndarray:
        """Scores all documents for the forms of a query, float32 `[size]`."""
        sums = np.zeros(self.size, np.float32)
        for form in forms:
            if form in self.term_of:
                rows = self.rows(form)
                # Half the time of `sums[documents] += scores`.
                np.add.at(sums, self.documents[rows], self.scores[rows])
        return sums

    def scores_of(self, form: str, documents: np.ndarray) -> np.ndarray:
        """Returns what a form adds to the scores of some documents."""
        rows = self.rows(form)
        having = self.documents[rows]
        if not len(having):
            return np.zeros(len(documents), np.float32)
        places = np.searchsorted(having, documents)
        places = np.minimum(places, len(having) - 1)
        return self.scores[rows][places] * (having[places] == documents)
