"""What the baselines take for a word."""

import functools
import re
import unicodedata
from collections.abc import Callable
from typing import Any

from keras_lstm_dssm.errors import import_optional

Tokenizer = Callable[[str], list[str]]
"""String -> words; hashable, and the same for the same string."""

STOP_WORDS = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such"
    " that the their then there these they this to was will with".split()
)
"""The 33 English stop words of Lucene's `EnglishAnalyzer`."""


def words(text: str) -> list[str]:
    """Splits on white space after NFKC and case folding.

    These are the words that the encoders see (`text.split_words`), but for
    invisible code points, which those drop.

    >>> words("Angle-Bracket, 12 Gauge")
    ['angle-bracket,', '12', 'gauge']
    """
    return unicodedata.normalize("NFKC", text).casefold().split()


def alphanumeric(text: str) -> list[str]:
    """Finds runs of letters and digits, case folded.

    >>> alphanumeric("Angle-Bracket, 12 Gauge")
    ['angle', 'bracket', '12', 'gauge']
    """
    return re.findall(r"[^\W_]+", " ".join(words(text)))


def stemmed(text: str) -> list[str]:
    """Stems English words (Porter2); `STOP_WORDS` are left out.

    Raises:
        InputError: snowballstemmer is not installed.

    Source: https://snowballstem.org/algorithms/english/stemmer.html

    >>> stemmed("Brackets for the hanging of 2 shelves")
    ['bracket', 'hang', '2', 'shelv']
    """
    return [_stem(w) for w in alphanumeric(text) if w not in STOP_WORDS]


@functools.lru_cache(2**18)  # the stemmer is slow, and words repeat
def _stem(word: str) -> str:
    return _stemmer().stemWord(word)


@functools.cache
def _stemmer() -> Any:
    module = import_optional("snowballstemmer", "baselines")
    return module.stemmer("english")


TOKENIZERS: dict[str, Tokenizer] = {
    "words": words,
    "alphanumeric": alphanumeric,
    "stemmed": stemmed,
}
