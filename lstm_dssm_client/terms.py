"""The terms of BM25 in a hybrid retriever, without TensorFlow.

A text is split into words as the encoders split it. A term is a word, its stem,
or letters of it; `words.split_words` and `letter_grams` give what a table then
maps to terms, in an exported graph and here alike.
"""

import re
from collections.abc import Callable

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
