"""Scores of query terms in NumPy: BM25, and the share of matching numbers.

`keras_lstm_dssm` computes postings for evaluation and for exports. `LocalModel`
reads the postings from its file.

The encoders' rules split a text into words. A term is a word, a stem, a letter
trigram or a number. `word_forms` lists the forms of a word, and a table maps
each form to a term. Exported graphs use the same forms and the same table.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from lstm_dssm_client.words import split_words

SPLIT = "alphanumeric"
"""The rule by which BM25 separates words."""

MAX_WORDS = 128
"""Maximum number of words of a query. Documents have no maximum."""

EDGE = "#"
"""Marks the start and the end of a word in its letter trigrams."""

PAIRED = (
    "[\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\U00020000-\U000323af]"
)
"""Chinese, Japanese and Korean letters, of which one to three make a word: a
character class for Python's and RE2's regular expressions."""

_IS_PAIRED = re.compile(PAIRED)

NUMBER = "="
"""First character of the form of a number. No word contains it."""

_DIGITS = re.compile("[0-9]+")

ROMAN = {
    "ii": "2", "iii": "3", "iv": "4", "vi": "6", "vii": "7", "viii": "8",
    "ix": "9", "xi": "11", "xii": "12", "xiii": "13", "xiv": "14", "xv": "15",
    "xvi": "16",
}  # fmt: skip
"""Roman numerals that count as numbers. The single letters i, v and x are more
often words or signs, as in "2 x 4" and "18 v"."""

UNKNOWN, STOP = -1, -2
"""Term number of a form that occurs in no document, and of a stop word."""

MARKED = "([a-z])[\u0300-\u036f]+"
"""Regular expression of a Latin letter and its accents in Unicode's NFD."""

_MARKED = re.compile(MARKED)


def unaccented(word: str) -> str:
    """Removes the accents of Latin letters: people search without them.

    Example:
    >>> unaccented("béquille")
    'bequille'
    """
    if word.isascii():
        return word
    plain = _MARKED.sub(r"\1", unicodedata.normalize("NFD", word))
    return unicodedata.normalize("NFC", plain)


def letter_grams(word: str) -> list[str]:
    """Lists the letter trigrams of a word, each around one letter.

    Accents are left out. A Chinese, Japanese or Korean letter makes a pair with
    the next letter instead, because Chinese does not separate words.

    Example:
    >>> letter_grams("good")
    ['#go', 'goo', 'ood', 'od#']
    >>> letter_grams("上海x")
    ['上海', '海x', '海x#']
    """
    letters = EDGE + unaccented(word) + EDGE
    return [
        letters[i + bool(_IS_PAIRED.match(letters[i + 1])) : i + 3]
        for i in range(len(letters) - 2)
    ]


def number_forms(word: str) -> list[str]:
    """Lists the forms by which a word may match as a number.

    Each run of digits is a form. A word without digits is a form, too, because
    it may be a Roman numeral: `Postings.term_of` maps "=iv" to the term of 4.

    Example:
    >>> number_forms("2k12"), number_forms("007"), number_forms("iv")
    (['=2', '=12'], ['=7'], ['=iv'])
    """
    digits = _DIGITS.findall(word)
    return [NUMBER + (d.lstrip("0") or "0") for d in digits] or [NUMBER + word]


FORMS: dict[str, Callable[[str], list[str]]] = {
    # `Postings.term_of` maps a word to the term of its stem.
    "stems": lambda word: [word],
    "words": lambda word: [word],
    "trigrams": letter_grams,
}
"""What BM25 compares -> function from a word to its forms."""


def word_forms(
    forms_of: Callable[[str], list[str]],
    text: str | bytes,
    max_words: int | None = MAX_WORDS,
) -> list[tuple[str, str]]:
    """Lists pairs of a word and one of its forms, in the order of the text."""
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

    A term that occurs tf = `counts` times in a document adds its IDF, times
    this share, to the document's BM25 score.
    """
    return counts / (counts + k1 * (1 - b + b * lengths / mean_length))


class Postings(NamedTuple):
    """Inverted index: the documents of each term, each with a score.

    Attributes:
        size: Number of documents.
        term_of: Form of a word -> number of the term, or `STOP`; see
            `word_forms` and `number_forms`.
        words: Number of word terms. Word terms come first, then the terms of
            numbers.
        bounds: The index in `documents` of each term's first document, and
            then the length of `documents`; int64 `[terms + 1]`.
        documents: The documents of each term, ascending, int32.
        scores: The BM25 score of the term in the document, float32; 1 for a
            number.
    """

    size: int
    term_of: Mapping[str, int]
    words: int
    bounds: np.ndarray
    documents: np.ndarray
    scores: np.ndarray

    @classmethod
    def from_counts(
        cls, term_of: Mapping[str, int], counts: Any, k1: float, b: float
    ) -> "Postings":
        """Computes the postings of word terms.

        `counts` are the term frequencies, a sparse SciPy matrix
        `[documents, terms]`; k1 and b are the parameters of BM25.
        """
        by_term = counts.tocsc()
        tf = by_term.data.astype(np.float64)
        lengths = np.asarray(counts.sum(axis=1, dtype=np.float64)).ravel()
        frequency = np.diff(by_term.indptr)
        shares = term_shares(
            tf, lengths[by_term.indices], lengths.mean() or 1.0, k1, b
        )
        weights = idf(frequency, len(lengths))
        return cls(
            len(lengths),
            term_of,
            len(frequency),
            by_term.indptr.astype(np.int64),
            by_term.indices.astype(np.int32),
            (np.repeat(weights, frequency) * shares).astype(np.float32),
        )

    def in_order(self, order: np.ndarray) -> "Postings":
        """Renumbers the documents: number `order[i]` becomes number i."""
        position = np.empty(len(order), np.int32)
        position[order] = np.arange(len(order), dtype=np.int32)
        documents = position[self.documents]
        sizes = np.diff(self.bounds)
        term = np.repeat(np.arange(len(sizes)), sizes)
        ascending = np.lexsort((documents, term))
        return self._replace(
            documents=documents[ascending], scores=self.scores[ascending]
        )

    def term(self, form: str) -> int:
        """Returns the term of a form, or of the form without its accents."""
        term = self.term_of.get(form, UNKNOWN)
        if term == UNKNOWN and not form.isascii():
            term = self.term_of.get(unaccented(form), UNKNOWN)
            return UNKNOWN if term == STOP else term
        return term

    def rows(self, term: int) -> slice:
        """Returns the slice of `documents` and `scores` of a term."""
        return slice(*self.bounds[term : term + 2])

    def sums(self, forms: Iterable[str]) -> np.ndarray:
        """Sums the scores of forms in all documents, float32 `[size]`."""
        sums = np.zeros(self.size, np.float32)
        for form in forms:
            if (term := self.term(form)) >= 0:
                rows = self.rows(term)
                # Half the time of `sums[documents] += scores`.
                np.add.at(sums, self.documents[rows], self.scores[rows])
        return sums


class Match(NamedTuple):
    """A term of the query that occurs in at least one document.

    Attributes:
        word: The word of the query.
        term: Number of the term.
        scale: Factor of the term's scores: 1 / the sum of IDF of the query's
            words, or for a number 1 / the count of the query's numbers.
    """

    word: str
    term: int
    scale: np.float32


TERM_PARTS = ("bm25", "numbers")
"""Names of the parts of a score that `TermScores` computes."""


class TermScores:
    """Weighted scores of documents for the terms of a query.

    For the terms t of a query and a document D, the parts are

        bm25     sum_t BM25(t, D) / sum_t IDF(t)
        numbers  share of the query's numbers that occur in D

    Both are from 0 to 1, before their weights. sum_t IDF(t) is the maximum of
    BM25 and includes words that occur in no document. A document with only one
    of several words therefore has a small score.

    Args:
        postings: The postings of the documents.
        kind: What BM25 compares, a key of `FORMS`.
        weights: Name of a part -> its weight.

    Attributes:
        postings: The postings, with scores multiplied by the weights.
        idf: The IDF of each term, float32; 0 for a number. The last element is
            the IDF of words that occur in no document.
        kind: What BM25 compares, a key of `FORMS`.
    """

    def __init__(
        self, postings: Postings, kind: str, weights: Mapping[str, float]
    ) -> None:
        bm25_weight, number_weight = (
            np.float32(weights[name]) for name in TERM_PARTS
        )
        self.kind = kind
        frequency = np.diff(postings.bounds)
        self.idf = np.zeros(len(frequency) + 1, np.float32)
        self.idf[: postings.words] = idf(
            frequency[: postings.words], postings.size
        )
        self.idf[UNKNOWN] = idf(0, postings.size)
        first = postings.bounds[postings.words]
        scores = bm25_weight * postings.scores
        scores[first:] = number_weight
        self.postings = postings._replace(scores=scores)

    def matches(self, text: str | bytes) -> list[Match]:
        """Lists the terms of a query that occur in documents."""
        words, numbers = [], []
        for word in split_words(text, SPLIT, MAX_WORDS):
            for form in FORMS[self.kind](word):
                if (term := self.postings.term(form)) != STOP:
                    words.append((word, term))
            for form in number_forms(word):
                term = self.postings.term_of.get(form, UNKNOWN)
                if term != UNKNOWN or form[1:].isdigit():
                    numbers.append((word, term))
        max_bm25 = np.float32(sum(self.idf[term] for _, term in words))
        return [
            Match(word, term, np.float32(1) / np.float32(total))
            for terms, total in ((words, max_bm25), (numbers, len(numbers)))
            for word, term in terms
            if term != UNKNOWN
        ]

    def sums(self, matches: Iterable[Match]) -> np.ndarray:
        """Sums the scores of matches in all documents, float32 `[size]`."""
        sums = np.zeros(self.postings.size, np.float32)
        for match in matches:
            rows = self.postings.rows(match.term)
            scores = self.postings.scores[rows] * match.scale
            np.add.at(sums, self.postings.documents[rows], scores)
        return sums

    def shares(
        self, match: Match, documents: np.ndarray
    ) -> tuple[str, np.ndarray]:
        """Returns the name of a match's part, and its share of each score."""
        rows = self.postings.rows(match.term)
        with_term = self.postings.documents[rows]
        indices = np.searchsorted(with_term, documents)
        indices = np.minimum(indices, len(with_term) - 1)
        has_term = with_term[indices] == documents
        share = self.postings.scores[rows][indices] * has_term * match.scale
        return TERM_PARTS[match.term >= self.postings.words], share
