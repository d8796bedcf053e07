"""A click log of any size, for what must not depend on it."""

import itertools
import os
from collections.abc import Iterator

import numpy as np

_LINES = 50_000
_QUERY_WORDS = 3
_TITLE_WORDS = 12
_VOCABULARY = 100_000
_SYLLABLES = tuple(
    "".join(letters)
    for letters in itertools.product("bdfgklmnprstvz", "aeiou", ("", "n", "r"))
)


def synthetic_lines(pairs: int, seed: int = 0) -> Iterator[str]:
    r"""Yields blocks of lines, query TAB title.

    Words are drawn from 100,000 by Zipf's law, frequency 1 / rank. A query
    has 1 to 5 words, a title 6 to 18, the first of them the query's, so that
    there is something to learn. The first n lines do not depend on `pairs`.

    Args:
        pairs: Number of lines.
        seed: Of the draws.

    Example:
    >>> "".join(synthetic_lines(2)).count("\t")
    2
    """
    rng = np.random.default_rng(seed)
    words = _words(rng)
    total = np.cumsum(1 / np.arange(1, _VOCABULARY + 1))
    for start in range(0, pairs, _LINES):
        queries = rng.integers(1, 2 * _QUERY_WORDS, _LINES)
        titles = rng.integers(_TITLE_WORDS // 2, 3 * _TITLE_WORDS // 2 + 1,
                              _LINES)  # fmt: skip
        ends = np.cumsum(titles)
        drawn = words[
            np.searchsorted(total, rng.uniform(0, total[-1], ends[-1]))
        ].tolist()
        lines = [
            f"{' '.join(drawn[end - n : end - n + q])}\t"
            f"{' '.join(drawn[end - n : end])}\n"
            for q, n, end in zip(
                queries.tolist(), titles.tolist(), ends.tolist(), strict=True
            )
        ]
        yield "".join(lines[: pairs - start])


def write_log(path: str | os.PathLike[str], pairs: int) -> None:
    """Writes a synthetic log as a click file."""
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(synthetic_lines(pairs))


def _words(rng: np.random.Generator) -> np.ndarray:
    """Distinct words of two to four syllables, short ones first."""
    words: dict[str, None] = {}
    while len(words) < _VOCABULARY:
        for size in (1, 2, 3, 4):
            drawn = rng.choice(_SYLLABLES, (_VOCABULARY // 4, size))
            words.update(dict.fromkeys(map("".join, drawn.tolist())))
    return np.array(list(words)[:_VOCABULARY], object)
