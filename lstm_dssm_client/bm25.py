"""Scores of terms in NumPy: BM25, and agreement of numbers.

The package computes postings for evaluation and for exports; `LocalModel` reads
the postings in its file.

A text is split into words as the encoders split it. A term is a word, its stem,
letters of it, or a number; `word_forms` gives the forms that a table then maps
to terms, in an exported graph and here alike.
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

NUMBER = "="
"""What the form of a number begins with: no word has it."""

_DIGITS = re.compile("[0-9]+")

ROMAN = {
    "ii": "2", "iii": "3", "iv": "4", "vi": "6", "vii": "7", "viii": "8",
    "ix": "9", "xi": "11", "xii": "12", "xiii": "13", "xiv": "14", "xv": "15",
    "xvi": "16",
}  # fmt: skip
"""Roman numerals that are read as numbers. The letters i, v and x are more
often words or signs, as in "2 x 4" and "18 v"."""

UNKNOWN, STOP = -1, -2
"""Terms of forms that no title has, and of words that BM25 leaves out."""


MARKED = "([a-z])[\u0300-\u036f]+"
"""A Latin letter and its accents, in Unicode's form NFD."""

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
    """Lists a gram for each letter: the letter, and one before and one after.

    Accents are left out. The gram of a letter of `PAIRED` is the letter and the
    next: pairs are what Chinese is searched by, since words are not separated.

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
    """Lists the forms of the numbers of a word; without digits, of the word.

    A table maps forms such as "=iv" to the term of "=4".

    Example:
    >>> number_forms("2k12"), number_forms("007"), number_forms("iv")
    (['=2', '=12'], ['=7'], ['=iv'])
    """
    digits = _DIGITS.findall(word)
    return [NUMBER + (d.lstrip("0") or "0") for d in digits] or [NUMBER + word]


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
    """An index from each term to its documents, with a value for each.

    Attributes:
        size: Number of documents.
        term_of: Form of a word -> number of the term, or `STOP`; see
            `word_forms` and `number_forms`.
        words: Number of terms of words, which come first; terms of numbers
            follow.
        bounds: Where the documents of each term begin, and the end, int64
            `[terms + 1]`.
        documents: The documents of each term, ascending, int32.
        scores: The BM25 score of a term in a document, float32; 1 for a number.
    """

    size: int
    term_of: Mapping[str, int]
    words: int
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
    ) -> "Postings":
        """Computes the postings of the words of documents.

        Args:
            term_of: See `Postings`.
            counts: How often each document has each term: a sparse matrix of
                SciPy, `[documents, terms]`.
            k1: Saturation of the term frequency.
            b: Influence of a document's length, from 0 to 1.
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

    def term(self, form: str) -> int:
        """Returns the term of a form or of the form without its accents."""
        term = self.term_of.get(form, UNKNOWN)
        if term == UNKNOWN:
            return self.term_of.get(unaccented(form), UNKNOWN)
        return term

    def rows(self, term: int) -> slice:
        """Returns where the documents and the scores of a term are."""
        return slice(*self.bounds[term : term + 2])

    def sums(self, forms: Iterable[str]) -> np.ndarray:
        """Adds up the scores of forms in all documents, float32 `[size]`."""
        sums = np.zeros(self.size, np.float32)
        for form in forms:
            if (term := self.term(form)) >= 0:
                rows = self.rows(term)
                # Half the time of `sums[documents] += scores`.
                np.add.at(sums, self.documents[rows], self.scores[rows])
        return sums


class Match(NamedTuple):
    """A term of a query that some document has.

    Attributes:
        word: The word of the query.
        term: Number of the term.
        scale: 1 / the IDF of all words of the query, or 1 / the number of its
            numbers: factor of what the term adds to a score.
    """

    word: str
    term: int
    scale: np.float32


TERM_PARTS = ("bm25", "numbers")
"""The parts of a score that terms give."""


class TermScores:
    """Weighted scores of documents for the terms of a query.

    With t for the words of a query that BM25 compares, the parts are

        bm25     sum_t BM25(t, D) / sum_t IDF(t)
        numbers  share of the query's numbers that D has

    both from 0 to 1. A word that no document has counts in sum_t IDF(t). BM25
    divided by what it could be at most, unlike BM25 divided by the query's
    best document, is small where only one of several words is found. With
    k1 = 0 it is the share of the query's IDF that D covers.

    Args:
        postings: The postings of the documents.
        kind: What is compared, a key of `FORMS`.
        weights: Name of a part -> its weight.

    Attributes:
        postings: The postings, whose scores are the weighted sums of the parts.
        idf: The IDF of each term, float32; 0 for a number. The last one is
            the IDF of words that no document has.
        kind: See above.
    """

    def __init__(
        self, postings: Postings, kind: str, weights: Mapping[str, float]
    ) -> None:
        bm25, numbers = (np.float32(weights[name]) for name in TERM_PARTS)
        self.kind = kind
        frequency = np.diff(postings.bounds)
        self.idf = np.zeros(len(frequency) + 1, np.float32)
        self.idf[: postings.words] = idf(
            frequency[: postings.words], postings.size
        )
        self.idf[UNKNOWN] = idf(0, postings.size)
        first = postings.bounds[postings.words]
        scores = bm25 * postings.scores
        scores[first:] = numbers
        self.postings = postings._replace(scores=scores)

    def matches(self, text: str | bytes) -> list[Match]:
        """Finds the terms of a query, read up to `MAX_WORDS` words."""
        words, numbers = [], []
        for word in split_words(text, SPLIT, MAX_WORDS):
            for form in FORMS[self.kind](word):
                if (term := self.postings.term(form)) != STOP:
                    words.append((word, term))
            for form in number_forms(word):
                term = self.postings.term_of.get(form, UNKNOWN)
                if term != UNKNOWN or form[1:].isdigit():
                    numbers.append((word, term))
        largest = np.float32(sum(self.idf[term] for _, term in words))
        found = []
        for terms, total in (words, largest), (numbers, len(numbers)):
            found += [
                Match(word, term, np.float32(1) / np.float32(total))
                for word, term in terms
                if term != UNKNOWN
            ]
        return found

    def sums(self, matches: Iterable[Match]) -> np.ndarray:
        """Scores all documents, float32 `[size]`."""
        sums = np.zeros(self.postings.size, np.float32)
        for match in matches:
            rows = self.postings.rows(match.term)
            scores = self.postings.scores[rows] * match.scale
            np.add.at(sums, self.postings.documents[rows], scores)
        return sums

    def shares(
        self, match: Match, documents: np.ndarray
    ) -> tuple[str, np.ndarray]:
        """Returns a term's part, and what it adds to some documents' scores."""
        rows = self.postings.rows(match.term)
        having = self.postings.documents[rows]
        places = np.searchsorted(having, documents)
        places = np.minimum(places, len(having) - 1)
        found = having[places] == documents
        share = self.postings.scores[rows][places] * found * match.scale
        return TERM_PARTS[match.term >= self.postings.words], share
