"""Terms and postings of the BM25 in a hybrid retriever.

`WordCounts` are what an update needs of the titles; `Postings`, made of them,
are arrays from which a graph, and NumPy as well, adds up the scores of a query.
"""

import functools
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_lstm_dssm.evaluation.bm25 import (
    STOP_WORDS,
    TokenizedTitles,
    Tokenizer,
    count_matrix,
    english_stem,
)
from keras_lstm_dssm.settings import choices
from keras_lstm_dssm.settings.hybrid import HybridSettings
from lstm_dssm_client.terms import letter_grams, split_words


def _stem_of(word: str) -> list[str]:
    return [] if word in STOP_WORDS else [english_stem(word)]


STEMS, WORDS, TRIGRAMS = choices.BM25_TERMS

_TERMS_OF: dict[str, Callable[[str], list[str]]] = {
    STEMS: _stem_of,
    WORDS: lambda word: [word],
    TRIGRAMS: letter_grams,
}
"""Name of `BM25_TERMS` -> function from a word to its terms."""


def _terms(kind: str, text: str) -> list[str]:
    of_word = _TERMS_OF[kind]
    return [term for word in split_words(text) for term in of_word(word)]


TERM_TOKENIZERS: dict[str, Tokenizer] = {
    kind: functools.partial(_terms, kind) for kind in choices.BM25_TERMS
}
"""Name of `BM25_TERMS` -> tokenizer of `BM25System`, which scores as a hybrid
retriever with these terms does."""

_SAMPLE = 10_000
_LATIN = re.compile("[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
# Thai, Lao, Burmese, Khmer, and the scripts of Chinese and Japanese.
_UNSEPARATED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]"
)
_LETTER = re.compile(r"[^\W\d_]")


def default_terms(titles: Sequence[str]) -> str:
    """Chooses one of `BM25_TERMS` by the script of titles.

    Returns:
        `"stems"` if at least half of the letters are Latin, else `"trigrams"`
        if at least half are of scripts that do not separate words, else
        `"words"`.

    Example:
    >>> default_terms(["hex bolt"]), default_terms(["上海酒店"])
    ('stems', 'trigrams')
    """
    text = " ".join(titles[:: max(1, len(titles) // _SAMPLE)])
    letters = len(_LETTER.findall(text))
    if 2 * len(_LATIN.findall(text)) >= letters:
        return STEMS
    return TRIGRAMS if 2 * len(_UNSEPARATED.findall(text)) >= letters else WORDS


_ENDINGS = (
    "", "s", "es", "e", "ed", "er", "ers", "ing", "ly", "y", "ies", "ied",
)  # fmt: skip
_AFTER_DOUBLING = ("ed", "er", "ers", "ing")
_ENGLISH = re.compile("[a-z]{2,}").fullmatch
_DOUBLES = re.compile("[aeiou][bdfglmnprt]$").search


def inflections(
    stem: str, stem_of: Callable[[str], str | None] = english_stem
) -> list[str]:
    """Lists forms of an English word whose stem is this one.

    They are endings of plurals, verbs and adjectives, kept if the stemmer gives
    them back the stem.

    Example:
    >>> inflections("drill")
    ['drill', 'drills', 'drilles', 'drille', 'drilled', 'drilling']
    """
    if not _ENGLISH(stem):
        return []
    # The stem of "battery" ends with i.
    base = stem[:-1] if stem[-1] == "i" else stem
    forms = [base + ending for ending in _ENDINGS]
    if base != stem:
        forms.append(stem)
    if _DOUBLES(base):
        forms += [base + base[-1] + ending for ending in _AFTER_DOUBLING]
    return [form for form in forms if stem_of(form) == stem]


class WordCounts(NamedTuple):
    """The counts of the words of each title, as a sparse matrix.

    The entries of the first title come first, then those of the second.
    """

    words: list[str]  # distinct, in the order of their code points
    # Where the entries of each title begin, and the end, int64 `[titles + 1]`.
    bounds: np.ndarray
    numbers: np.ndarray  # the word of each entry, ascending in a title, int32
    counts: np.ndarray  # how often it occurs, int32

    @classmethod
    def of(cls, titles: Iterable[str]) -> "WordCounts":
        """Counts the words of titles, however long a title is."""
        counted = TokenizedTitles(titles, split_words)
        return cls._from_matrix(list(counted.vocabulary), counted.counts)

    @classmethod
    def _from_matrix(cls, words: Sequence[str], matrix: Any) -> "WordCounts":
        """Drops words without a title, and sorts the others."""
        matrix.sum_duplicates()
        used = np.unique(matrix.indices)
        order = sorted(used.tolist(), key=words.__getitem__)
        place = np.zeros(len(words), matrix.indptr.dtype)
        place[order] = np.arange(len(order))
        matrix.indices = place[matrix.indices]
        matrix.has_sorted_indices = False
        matrix.sort_indices()
        return cls(
            [words[number] for number in order],
            matrix.indptr.astype(np.int64),
            matrix.indices.astype(np.int32),
            matrix.data.astype(np.int32),
        )

    @property
    def matrix(self) -> Any:
        """The counts, float64 `scipy.sparse.csr_array` `[titles, words]`."""
        from scipy import sparse

        return sparse.csr_array(
            (self.counts.astype(np.float64), self.numbers, self.bounds),
            (len(self.bounds) - 1, len(self.words)),
        )

    def updated(self, rows: Sequence[int], new: Mapping[int, str]) -> Any:
        """Returns the counts of other titles, as if counted anew.

        Args:
            rows: The numbers of the titles to keep, in the new order; numbers
                beyond the old titles are those of new ones.
            new: Number -> title, of new titles and of changed ones.
        """
        from scipy import sparse

        added = WordCounts.of(new.values())
        words = [*self.words, *added.words]
        both = sparse.csr_array(
            sparse.block_diag([self.matrix, added.matrix], format="csr")
        )
        place = {row: len(self.bounds) - 1 + i for i, row in enumerate(new)}
        both = both[[place.get(row, row) for row in rows]]
        # A word of old and new titles has two columns.
        column = {word: number for number, word in enumerate(words)}
        same = np.array([column[w] for w in words], both.indptr.dtype)
        both.indices = same[both.indices]
        both.has_canonical_format = False
        return WordCounts._from_matrix(words, both)


class Postings(NamedTuple):
    """An index from each term to its titles, with their scores of BM25."""

    terms: list[str]  # distinct, in the order of their code points
    forms: list[str]  # words, or grams, that a query may have, ascending
    form_terms: np.ndarray  # the number of the term of each form, int32
    # Where the titles of each term begin, and the end, int64 `[terms + 1]`.
    bounds: np.ndarray
    documents: np.ndarray  # the titles of each term, ascending, int32
    # What an occurrence of the term in a query adds to the title's score, with
    # Lucene's IDF, float32.
    scores: np.ndarray

    @classmethod
    def of(
        cls,
        counts: WordCounts,
        settings: HybridSettings,
        further: Iterable[str] = (),
        before: "Postings | None" = None,
    ) -> "Postings":
        """Computes the postings of titles.

        Args:
            counts: The words of the titles.
            settings: `k1`, `b` and `bm25_words`, which is not `None`.
            further: Words that queries may have, beside those of the titles.
            before: Postings of other titles, from which the forms of stems
                are taken that are in them, too: the stemmer is slow.
        """
        assert settings.bm25_words, settings
        of_word = [_TERMS_OF[settings.bm25_words](w) for w in counts.words]
        terms = sorted({term for terms in of_word for term in terms})
        number = {term: row for row, term in enumerate(terms)}
        numbers = [[number[term] for term in terms] for terms in of_word]
        matrix = counts.matrix @ count_matrix(numbers, len(terms))
        lengths = np.asarray(matrix.sum(axis=1)).ravel()
        by_term = matrix.tocsc()
        frequency = np.diff(by_term.indptr)
        idf = np.log1p((len(lengths) - frequency + 0.5) / (frequency + 0.5))
        saturation = settings.k1 * (
            1 - settings.b + settings.b * lengths / (lengths.mean() or 1)
        )
        share = by_term.data / (by_term.data + saturation[by_term.indices])
        forms = dict(zip(terms, terms, strict=True))
        if settings.bm25_words == STEMS:
            forms = _forms_of_stems(counts.words, number, further, before)
        known = sorted(forms)
        return cls(
            terms,
            known,
            np.array([number[forms[form]] for form in known], np.int32),
            by_term.indptr.astype(np.int64),
            by_term.indices.astype(np.int32),
            (np.repeat(idf, frequency) * share).astype(np.float32),
        )


def _forms_of_stems(
    words: Sequence[str],
    stems: Collection[str],
    further: Iterable[str],
    before: Postings | None,
) -> dict[str, str]:
    """Returns form -> stem: words of titles and others, and inflected forms."""
    old: dict[str, str] = {}
    if before is not None:
        terms = map(before.terms.__getitem__, before.form_terms.tolist())
        old = dict(zip(before.forms, terms, strict=True))
    old_stems = {*old.values()}
    forms = {}
    for word in {*words, *further}:
        if (stem := english_stem(word)) in stems:
            forms[word] = stem
    for stem in stems:
        stem_of = old.get if stem in old_stems else english_stem
        forms |= dict.fromkeys(inflections(stem, stem_of), stem)
    return {form: s for form, s in forms.items() if form not in STOP_WORDS}
