"""Computes the BM25 terms and postings of a hybrid retriever's titles."""

import functools
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import chain
from string import digits
from typing import Any

import numpy as np

from keras_lstm_dssm.evaluation.bm25 import (
    STOP_WORDS,
    FieldTexts,
    TokenizedTitles,
    Tokenizer,
    alphanumeric,
    count_matrix,
    english_stem,
    field_counts,
    stemmer_version,
)
from keras_lstm_dssm.settings import fields
from keras_lstm_dssm.settings.hybrid import HybridSettings
from lstm_dssm_client.bm25 import (
    FORMS,
    NUMBER,
    ROMAN,
    STOP,
    Postings,
    number_forms,
    unaccented,
    word_forms,
)


def _plain(word: str) -> str:
    """Removes accents, unless the result is a stop word: "thé" is kept."""
    plain = unaccented(word)
    return word if plain in STOP_WORDS else plain


def _stem_of(word: str) -> list[str]:
    if word in STOP_WORDS:
        return []
    return [ROMAN.get(word) or english_stem(_plain(word))]


STEMS, WORDS, TRIGRAMS = fields.BM25_TERMS

_WORD_TERMS: dict[str, Callable[[str], list[str]]] = {
    **FORMS,
    STEMS: _stem_of,
    WORDS: lambda word: [ROMAN.get(word, unaccented(word))],
}
"""Name in `BM25_TERMS` -> function from a word to its terms."""


@functools.cache
def term_tokenizer(kind: str, max_words: int | None = None) -> Tokenizer:
    """Returns a function from a text to its terms; see `_WORD_TERMS`."""
    terms_of = _WORD_TERMS[kind]
    return lambda text: [t for _, t in word_forms(terms_of, text, max_words)]


_SAMPLE = 10_000
_LATIN = re.compile("[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
# Thai, Lao, Burmese, Khmer, Chinese and Japanese have no spaces between words.
_UNSEPARATED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]"
)
_LETTER = re.compile(r"[^\W\d_]")


def default_terms(titles: Sequence[str]) -> str:
    """Chooses one of `BM25_TERMS` by the script of titles.

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
# Stems whose last letter may be doubled before an ending, as in "dropped".
_DOUBLES = re.compile("[aeiou][bdfglmnprt]$").search


def inflections(stem: str) -> list[str]:
    """Lists possible forms of an English stem; some are not words.

    Example:
    >>> inflections("drill")
    ['drill', 'drills', 'drilles', 'drille', 'drilled', 'drilling']
    """
    if not _ENGLISH(stem):
        return []
    # Endings replace a final i: the stem of "battery" is "batteri".
    base = stem[:-1] if stem[-1] == "i" else stem
    forms = [base + ending for ending in _ENDINGS]
    if base != stem:
        forms.append(stem)
    if _DOUBLES(base):
        forms += [base + base[-1] + ending for ending in _AFTER_DOUBLING]
    return [form for form in forms if english_stem(form) == stem]


def stemmer_facts(settings: HybridSettings) -> dict[str, str]:
    """Returns the stemmer's name and version, or {} if BM25 has no stems."""
    if not settings.bm25 or settings.bm25_words != STEMS:
        return {}
    return {"stemmer": stemmer_version()}


def title_postings(
    titles: Sequence[str],
    settings: HybridSettings,
    queries: Iterable[str] = (),
    fields: FieldTexts | None = None,
) -> Postings:
    """Computes the BM25 postings of a hybrid retriever's titles.

    If terms are stems, `Postings.term_of` also has each word of `queries` whose
    stem is in a title.
    """
    assert settings.bm25_words, settings
    if fields is None:
        tokenized = TokenizedTitles(titles, alphanumeric)
        vocabulary, word_counts = tokenized.vocabulary, tokenized.counts
    else:
        vocabulary, word_counts = field_counts(
            tuple(titles), alphanumeric, fields
        )
    words = list(vocabulary)
    word_terms = list(map(_WORD_TERMS[settings.bm25_words], words))
    terms = sorted(set(chain.from_iterable(word_terms)))
    term_ids = {term: i for i, term in enumerate(terms)}
    ids_of_words = [[term_ids[t] for t in terms] for terms in word_terms]
    counts = word_counts @ count_matrix(ids_of_words, len(term_ids))
    term_of = dict(term_ids)
    if settings.bm25_words != TRIGRAMS:
        romans = {r: term_ids[n] for r, n in ROMAN.items() if n in term_ids}
        term_of |= romans
    if settings.bm25_words == STEMS:
        known = {w for text in queries for w in alphanumeric(text)}
        forms = _forms_of_stems(known.union(words), term_ids)
        term_of = {form: term_ids[stem] for form, stem in forms.items()}
        term_of |= romans | dict.fromkeys(STOP_WORDS, STOP)
    postings = Postings.from_counts(term_of, counts, settings.k1, settings.b)
    return _with_numbers(postings, words, word_counts)


def _with_numbers(
    postings: Postings,
    words: Sequence[str],
    counts: Any,  # sparse matrix `[titles, words]`
) -> Postings:
    """Adds a term for each number in titles; "4" and "iv" share a term."""
    word_numbers = [
        [n for form in number_forms(word) if (n := _number(form)) is not None]
        for word in words
    ]
    numbers = sorted(set(chain.from_iterable(word_numbers)))
    number_ids = {number: i for i, number in enumerate(numbers)}
    ids_of_words = [
        [number_ids[n] for n in in_word] for in_word in word_numbers
    ]
    title_numbers = (counts @ count_matrix(ids_of_words, len(numbers))).tocsc()
    term_of = {
        NUMBER + form: postings.words + number_ids[number]
        for form, number in [
            *zip(numbers, numbers, strict=True),
            *ROMAN.items(),
        ]
        if number in number_ids
    }
    end = postings.bounds[-1]
    return postings._replace(
        term_of=dict(sorted({**postings.term_of, **term_of}.items())),
        bounds=np.append(postings.bounds, end + title_numbers.indptr[1:]),
        documents=np.append(
            postings.documents, title_numbers.indices.astype(np.int32)
        ),
        scores=np.append(
            postings.scores, np.ones(title_numbers.nnz, np.float32)
        ),
    )


def _number(form: str) -> str | None:
    """Returns the number that "=12" or "=iv" stands for; `None` for "=bolt"."""
    text = form.removeprefix(NUMBER)
    return text if text[0] in digits else ROMAN.get(text)


def _forms_of_stems(
    words: Iterable[str], stems: Collection[str]
) -> dict[str, str]:
    """Returns form -> stem, for the words and for inflections of the stems."""
    forms: dict[str, str] = {}
    for word in words:
        plain = _plain(word)
        if (stem := english_stem(plain)) in stems:
            forms |= {word: stem, plain: stem}
    for stem in stems:
        forms |= dict.fromkeys(inflections(stem), stem)
    return {form: s for form, s in forms.items() if form not in STOP_WORDS}
