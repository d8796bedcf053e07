"""Terms and postings of the titles in a hybrid retriever."""

import functools
import re
from collections.abc import Callable, Collection, Iterable, Sequence
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
    """Removes accents, but for a word that would be a stop word: "thé"."""
    plain = unaccented(word)
    return word if plain in STOP_WORDS else plain


def _stem_of(word: str) -> list[str]:
    if word in STOP_WORDS:
        return []
    return [ROMAN.get(word) or english_stem(_plain(word))]


STEMS, WORDS, TRIGRAMS = fields.BM25_TERMS

_TERMS_OF: dict[str, Callable[[str], list[str]]] = {
    **FORMS,
    STEMS: _stem_of,
    WORDS: lambda word: [ROMAN.get(word, _plain(word))],
}
"""Name of `BM25_TERMS` -> function from a word to its terms."""


@functools.cache
def term_tokenizer(kind: str, max_words: int | None = None) -> Tokenizer:
    """Returns a tokenizer by which `BM25System` scores as a hybrid retriever.

    `kind` is one of `BM25_TERMS`. Of queries, a retriever reads `MAX_WORDS`.
    """
    terms_of = _TERMS_OF[kind]
    return lambda text: [t for _, t in word_forms(terms_of, text, max_words)]


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


def inflections(stem: str) -> list[str]:
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
    return [form for form in forms if english_stem(form) == stem]


def stemmer_facts(settings: HybridSettings) -> dict[str, str]:
    """Returns the stemmer and its version, for the record of an export.

    The dictionary is empty if the BM25 of the export does not compare stems.
    """
    if not settings.bm25 or settings.bm25_words != STEMS:
        return {}
    return {"stemmer": stemmer_version()}


def title_postings(
    titles: Sequence[str],
    settings: HybridSettings,
    queries: Iterable[str] = (),
    fields: FieldTexts | None = None,
) -> Postings:
    """Computes the postings of titles, however long a title is.

    Args:
        titles: The titles.
        settings: `k1`, `b` and `bm25_words`, which is not `None`.
        queries: Texts whose words later queries may have, beside the words
            of the titles.
        fields: The fields of the titles, with weights; by default a title is
            one text.

    Returns:
        The postings; their forms are in the order of their code points.
    """
    assert settings.bm25_words, settings
    if fields is None:
        tokenized = TokenizedTitles(titles, alphanumeric)
        vocabulary, counted = tokenized.vocabulary, tokenized.counts
    else:
        vocabulary, counted = field_counts(tuple(titles), alphanumeric, fields)
    words = list(vocabulary)
    of_word = [_TERMS_OF[settings.bm25_words](word) for word in words]
    terms = sorted({term for terms in of_word for term in terms})
    number = {term: row for row, term in enumerate(terms)}
    numbers = [[number[term] for term in terms] for terms in of_word]
    counts = counted @ count_matrix(numbers, len(terms))
    term_of = dict(number)
    if settings.bm25_words != TRIGRAMS:
        romans = {r: number[n] for r, n in ROMAN.items() if n in number}
        term_of |= romans
    if settings.bm25_words == STEMS:
        known = {w for text in queries for w in alphanumeric(text)}
        forms = _forms_of_stems(known.union(words), number)
        term_of = {form: number[stem] for form, stem in forms.items()}
        term_of |= romans | dict.fromkeys(STOP_WORDS, STOP)
    postings = Postings.from_counts(term_of, counts, settings.k1, settings.b)
    return _with_numbers(postings, words, counted)


def _with_numbers(
    postings: Postings, words: Sequence[str], counts: Any
) -> Postings:
    """Adds a term for each number in the titles, and its forms.

    `counts` says how often each title has each of the words.
    """
    forms = [number_forms(word) for word in words]
    found = {_number(form) for of_word in forms for form in of_word}
    numbers = sorted(number for number in found if number is not None)
    row = {number: place for place, number in enumerate(numbers)}
    of_word = [
        [row[n] for form in of_word if (n := _number(form)) is not None]
        for of_word in forms
    ]
    of_title = (counts @ count_matrix(of_word, len(numbers))).tocsc()
    term_of = {
        NUMBER + form: postings.words + row[number]
        for form, number in [
            *zip(numbers, numbers, strict=True),
            *ROMAN.items(),
        ]
        if number in row
    }
    end = postings.bounds[-1]
    return postings._replace(
        term_of=dict(sorted({**postings.term_of, **term_of}.items())),
        bounds=np.append(postings.bounds, end + of_title.indptr[1:]),
        documents=np.append(
            postings.documents, of_title.indices.astype(np.int32)
        ),
        scores=np.append(postings.scores, np.ones(of_title.nnz, np.float32)),
    )


def _number(form: str) -> str | None:
    """Returns the number that a form of `number_forms` stands for, if any."""
    text = form.removeprefix(NUMBER)
    return text if text[0] in digits else ROMAN.get(text)


def _forms_of_stems(
    words: Iterable[str], stems: Collection[str]
) -> dict[str, str]:
    """Returns form -> stem: words, and inflected forms of the stems."""
    forms: dict[str, str] = {}
    for word in words:
        plain = _plain(word)
        if (stem := english_stem(plain)) in stems:
            forms |= {word: stem, plain: stem}
    for stem in stems:
        forms |= dict.fromkeys(inflections(stem), stem)
    return {form: s for form, s in forms.items() if form not in STOP_WORDS}
