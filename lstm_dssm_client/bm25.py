"""Computes the scores of query terms in NumPy: BM25, and a score for numbers.

A term is an entry of the inverted index `Postings`: a word, a stem, a letter
trigram or a number. A table maps forms of words to terms: with stems, the forms
"bolt" and "bolts" have the same term.

`keras_lstm_dssm` computes postings for evaluation and for exports. `LocalModel`
reads postings from a file.
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
"""Regular expression of one Chinese, Japanese or Korean letter, for RE2 too."""

_IS_PAIRED = re.compile(PAIRED)

NUMBER = "="
"""First character of the form of a number. No word contains this character."""

_DIGITS = re.compile("[0-9]+")

ROMAN = {
    "ii": "2", "iii": "3", "iv": "4", "vi": "6", "vii": "7", "viii": "8",
    "ix": "9", "xi": "11", "xii": "12", "xiii": "13", "xiv": "14", "xv": "15",
    "xvi": "16",
}  # fmt: skip
"""Roman numerals that count as numbers. The letters i, v and x alone are left
out: most often they are words, signs or units, as in "2 x 4" and "18 v"."""

UNKNOWN, STOP = -1, -2
"""`UNKNOWN` is the term of forms that occur in no document. `STOP` is the term
of stop words."""

MARKED = "([a-z])[\u0300-\u036f]+"
"""Regular expression of a Latin letter and its accents in Unicode's NFD."""

_MARKED = re.compile(MARKED)


def unaccented(word: str) -> str:
    """Removes the accents of Latin letters, because queries often omit them."""
    if word.isascii():
        return word
    plain = _MARKED.sub(r"\1", unicodedata.normalize("NFD", word))
    return unicodedata.normalize("NFC", plain)


def letter_grams(word: str) -> list[str]:
    """Lists the letter trigrams of a word: each letter with its neighbours.

    A Chinese, Japanese or Korean letter is paired with only the next letter.

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

    A word without digits also has a form, because the word may be a Roman
    numeral: `Postings.term_of` maps "=iv" to the term of the number 4.

    Example:
    >>> number_forms("2k12"), number_forms("007"), number_forms("iv")
    (['=2', '=12'], ['=7'], ['=iv'])
    """
    digits = _DIGITS.findall(word)
    return [NUMBER + (d.lstrip("0") or "0") for d in digits] or [NUMBER + word]


FORMS: dict[str, Callable[[str], list[str]]] = {
    # `Postings.term_of` maps each word to the term of the word's stem.
    "stems": lambda word: [word],
    "words": lambda word: [word],
    "trigrams": letter_grams,
}
"""Kind of the terms for BM25 -> function from a word to the word's forms."""


def word_forms(
    forms_of: Callable[[str], list[str]],
    text: str | bytes,
    max_words: int | None = MAX_WORDS,
) -> list[tuple[str, str]]:
    """Lists pairs (word, form of the word), in the order of the text."""
    words = split_words(text, SPLIT, max_words)
    return [(word, form) for word in words for form in forms_of(word)]


def idf(frequency: Any, count: int) -> np.ndarray:
    """Returns Lucene's IDF of terms; `frequency` of `count` texts have each."""
    return np.log1p((count - frequency + 0.5) / (frequency + 0.5))


def term_shares(
    counts: np.ndarray,  # how often a term occurs in a document
    lengths: np.ndarray,  # number of terms in the document
    mean_length: float,
    k1: float,
    b: float,
) -> np.ndarray:
    """Returns the BM25 scores of terms, divided by the terms' IDF."""
    return counts / (counts + k1 * (1 - b + b * lengths / mean_length))


class Postings(NamedTuple):
    """Inverted index: the documents of each term, and their scores."""

    size: int  # number of documents
    term_of: Mapping[str, int]  # form of a word -> index of a term, or `STOP`
    words: int  # number of BM25 terms; terms from this index on are numbers
    bounds: np.ndarray  # term t: `documents[bounds[t] : bounds[t + 1]]`, int64
    documents: np.ndarray  # the documents of each term, ascending, int32
    scores: np.ndarray  # BM25 scores of `documents`, float32; 1 for numbers

    @classmethod
    def from_counts(
        cls, term_of: Mapping[str, int], counts: Any, k1: float, b: float
    ) -> "Postings":
        """Computes BM25 postings from SciPy counts `[documents, terms]`."""
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
        """Renumbers the documents: document `order[i]` becomes document i."""
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
        """Returns a form's term; removes the accents if the form is unknown."""
        term = self.term_of.get(form, UNKNOWN)
        if term == UNKNOWN and not form.isascii():
            term = self.term_of.get(unaccented(form), UNKNOWN)
            return UNKNOWN if term == STOP else term
        return term

    def rows(self, term: int) -> slice:
        """Returns a term's slice of `documents` and `scores`."""
        return slice(*self.bounds[term : term + 2])

    def sums(self, forms: Iterable[str]) -> np.ndarray:
        """Sums the scores of all forms for each document, float32 `[size]`."""
        sums = np.zeros(self.size, np.float32)
        for form in forms:
            if (term := self.term(form)) >= 0:
                rows = self.rows(term)
                # `add.at` takes half the time of `sums[documents] += scores`.
                np.add.at(sums, self.documents[rows], self.scores[rows])
        return sums


class Match(NamedTuple):
    """A term of the query that occurs in at least one document."""

    word: str  # word of the query that has this term
    term: int  # index of the term in `Postings.bounds`
    # Factor of the term's scores. For a term of BM25: 1 / (sum of the query's
    # IDFs). For a number: 1 / (count of the query's numbers).
    scale: np.float32


TERM_PARTS = ("bm25", "numbers")
"""Names of the two parts of a document's score that `TermScores` computes."""


class TermScores:
    """Computes the weighted scores of documents for the terms of a query.

    A score is the weighted sum of two `TERM_PARTS`. For the terms t of a query
    and a document D, the parts without weights are

        bm25     sum_t BM25(t, D) / sum_t IDF(t)
        numbers  share of the query's numbers that occur in D
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
        # `UNKNOWN` is -1, the index of the last item.
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
        # The sum of the IDFs is an upper bound of BM25. Terms that no document
        # has also count, and so lower the scores of partial matches.
        max_bm25 = np.float32(sum(self.idf[term] for _, term in words))
        return [
            Match(word, term, np.float32(1) / np.float32(total))
            for terms, total in ((words, max_bm25), (numbers, len(numbers)))
            for word, term in terms
            if term != UNKNOWN
        ]

    def sums(self, matches: Iterable[Match]) -> np.ndarray:
        """Sums the scores of matches for each document, float32 `[size]`."""
        sums = np.zeros(self.postings.size, np.float32)
        for match in matches:
            rows = self.postings.rows(match.term)
            scores = self.postings.scores[rows] * match.scale
            np.add.at(sums, self.postings.documents[rows], scores)
        return sums

    def shares(
        self, match: Match, documents: np.ndarray
    ) -> tuple[str, np.ndarray]:
        """Returns a match's item of `TERM_PARTS`, and scores of `documents`."""
        rows = self.postings.rows(match.term)
        with_term = self.postings.documents[rows]
        indices = np.searchsorted(with_term, documents)
        indices = np.minimum(indices, len(with_term) - 1)
        has_term = with_term[indices] == documents
        share = self.postings.scores[rows][indices] * has_term * match.scale
        return TERM_PARTS[match.term >= self.postings.words], share
