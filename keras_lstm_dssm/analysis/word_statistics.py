"""Statistics of words beside chance: stop words, distinctive words."""

import string
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from bm25s.stopwords import STOPWORDS_EN_PLUS


class Finding(NamedTuple):
    """What was measured.

    Attributes:
        found: The figure.
        chance: Its mean when the thing in question is drawn at random.
        p: How often chance is as far off as what was found, two-sided.
        number: Texts, words or pairs that it is of.
    """

    found: float
    chance: float
    p: float
    number: int


NOTHING = Finding(0.0, 0.0, 1.0, 0)
"""Where there is nothing to measure."""


def against(draws: np.ndarray, found: float, number: int) -> Finding:
    """Compares a figure with random draws of it (a Monte Carlo test).

    Args:
        draws: `[draws]`.
        found: The figure.
        number: See `Finding`.

    Example:
    >>> against(np.array([1.0, 2.0, 1.0]), 3.0, 10)
    Finding(found=3.0, chance=1.3333333333333333, p=0.5, number=10)
    """
    above = (1 + np.sum(draws >= found)) / (1 + len(draws))
    below = (1 + np.sum(draws <= found)) / (1 + len(draws))
    p = min(1.0, 2 * float(min(above, below)))
    return Finding(found, float(draws.mean()), p, number)


def distinctive(
    groups: Sequence[Iterable[str]], most: int
) -> list[list[tuple[str, int]]]:
    """Picks the words that stand for each group.

    Words are ordered by count^2 / (count everywhere + 5): those that a group
    has often, and the others seldom. Counts alone would name every group
    after the same stop words; without the 5, after words that occur once.

    Args:
        groups: The words of each, repeated as often as they occur.
        most: Words wanted of each.

    Returns:
        For each group its words and how often it has them, the best first.

    Example:
    >>> distinctive([["the", "fft", "fft"], ["the", "csv"]], 1)
    [[('fft', 2)], [('csv', 1)]]
    """
    counts = [Counter(group) for group in groups]
    everywhere: Counter[str] = sum(counts, Counter())
    return [
        sorted(
            own.items(),
            key=lambda one: (-(one[1] ** 2) / (everywhere[one[0]] + 5), one[0]),
        )[:most]
        for own in counts
    ]


_STOP = frozenset(STOPWORDS_EN_PLUS)


def is_stop(words: Sequence[str]) -> np.ndarray:
    """Tells which words are English stop words, bool `[words]`.

    The 179 of NLTK's list, as bm25s has it; punctuation at a word's ends
    does not count.

    Example:
    >>> is_stop(["the", "array,", "of"]).tolist()
    [True, False, True]
    """
    bare = (word.strip(string.punctuation) for word in words)
    return np.array([word in _STOP for word in bare], bool)


def stop_share(
    stop: Sequence[np.ndarray],
    chosen: Sequence[np.ndarray],
    judged: Sequence[np.ndarray],
    draws: int = 2000,
    seed: int = 0,
) -> Finding:
    """Measures how many of the chosen words are stop words.

    Chance chooses as many of each text's judged words.

    Args:
        stop: bool `[words]` for each text.
        chosen: The same: words that the model dropped, or kept.
        judged: The same: words that it could choose from, all of `chosen`
            among them.
        draws: Random choices.
        seed: Of these.

    Returns:
        Shares of the chosen words, from 0 to 1; counted are chosen words.

    Example:
    >>> one = np.array([True, False])
    >>> stop_share([one], [one], [one | True])[:2]
    (1.0, 0.5)
    """
    sizes = np.array(
        [
            [np.sum(s & j), np.sum(~s & j), np.sum(c), np.sum(s & c)]
            for s, c, j in zip(stop, chosen, judged, strict=True)
            if c.any()
        ]
    ).reshape(-1, 4)
    good, bad, taken, found = sizes.T
    total = int(taken.sum())
    if not total:
        return NOTHING
    random = np.random.default_rng(seed)
    drawn = random.hypergeometric(good, bad, taken, (draws, len(sizes)))
    return against(drawn.sum(axis=1) / total, found.sum() / total, total)
