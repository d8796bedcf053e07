"""Which words of the results are near to the words of a query.

Two words are compared by the cosine of their vectors, where the encoders are
served, too, and otherwise by the letter trigrams that they share.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

_WORDS = re.compile(r"\w{1,64}")
_MOST_QUERY_WORDS = 12
_MOST_TITLE_WORDS = 200
_NEAREST = 3
LEAST_COSINE = 0.3
LEAST_SHARED = 0.4
"""Words with lower cosines, or fewer trigrams in common, are not near."""


def words_of(texts: Iterable[str], most: int = _MOST_TITLE_WORDS) -> list[str]:
    """Returns the distinct words of texts in lower case, in order.

    Args:
        texts: The texts.
        most: Maximum number of words.

    Example:
    >>> words_of(["CSV writer", "csv file"])
    ['csv', 'writer', 'file']
    """
    words: dict[str, None] = {}
    for text in texts:
        words.update(dict.fromkeys(_WORDS.findall(text.lower())))
        if len(words) >= most:
            break
    return list(words)[:most]


def query_words_of(text: str) -> list[str]:
    """Returns the distinct words of a query, 12 at most."""
    return words_of([text], _MOST_QUERY_WORDS)


def trigrams(word: str) -> list[str]:
    """Returns the letter trigrams of a word.

    Example:
    >>> trigrams("aray")
    ['#ar', 'ara', 'ray', 'ay#']
    """
    marked = f"#{word}#"
    return [marked[i : i + 3] for i in range(len(marked) - 2)]


def letter_similarity(
    query_words: Sequence[str], title_words: Sequence[str]
) -> np.ndarray:
    """Returns the Dice coefficients of the words' trigrams.

    Args:
        query_words: n words.
        title_words: m words.

    Returns:
        float64 `[n, m]`, from 0 to 1.
    """
    title_counts = [Counter(trigrams(word)) for word in title_words]
    result = np.zeros((len(query_words), len(title_words)))
    for row, word in enumerate(query_words):
        counts = Counter(trigrams(word))
        for column, other in enumerate(title_counts):
            shared = (counts & other).total()
            result[row, column] = 2 * shared / (counts.total() + other.total())
    return result


def nearest_words(
    query_words: Sequence[str],
    title_words: Sequence[str],
    similarity: np.ndarray,
    least: float,
) -> list[dict[str, Any]]:
    """Returns the words of titles that are nearest to each word of a query.

    Args:
        query_words: n words.
        title_words: m words.
        similarity: `[n, m]`.
        least: The similarity from which on words are near.

    Returns:
        For each word of the query that is near to one `word`, `exact`
        (whether a title has it), and `nearest`, a list of `word`,
        `similarity` and `shared`, the trigrams that both have.
    """
    lines = [
        {
            "word": word,
            "exact": word in title_words,
            "nearest": [
                {
                    "word": title_words[column],
                    "similarity": round(float(row[column]), 3),
                    "shared": [
                        trigram
                        for trigram in trigrams(word)
                        if trigram in trigrams(title_words[column])
                    ],
                }
                for column in np.argsort(-row, kind="stable")[:_NEAREST]
                if row[column] >= least
            ],
        }
        for word, row in zip(query_words, similarity, strict=True)
    ]
    return [line for line in lines if line["nearest"]]


def strengths(
    title_words: Sequence[str], similarity: np.ndarray, least: float
) -> dict[str, float]:
    """Returns how near each word of the titles is to its nearest query word.

    Args:
        title_words: m words.
        similarity: `[n, m]`.
        least: The similarity from which on words are near.

    Returns:
        Word to similarity, of words that are near.
    """
    if not similarity.size:
        return {}
    best = similarity.max(axis=0)
    return {
        word: float(value)
        for word, value in zip(title_words, best, strict=True)
        if value >= least
    }


def marked_parts(
    title: str, strength: Mapping[str, float]
) -> list[dict[str, Any]]:
    """Divides a title into words that match the query, and the text between.

    Args:
        title: The title.
        strength: Word in lower case -> similarity, from `strengths`.

    Returns:
        `text` and `strength` (0 for none) of parts that give the title when
        joined.

    Example:
    >>> marked_parts("CSV writer", {"csv": 0.9})
    [{'text': 'CSV', 'strength': 0.9}, {'text': ' writer', 'strength': 0}]
    """
    parts: list[dict[str, Any]] = []
    end = 0
    for match in _WORDS.finditer(title):
        value = strength.get(match[0].lower(), 0)
        if value:
            if match.start() > end:
                parts.append(
                    {"text": title[end : match.start()], "strength": 0}
                )
            parts.append({"text": match[0], "strength": round(value, 3)})
            end = match.end()
    if end < len(title):
        parts.append({"text": title[end:], "strength": 0})
    return parts
