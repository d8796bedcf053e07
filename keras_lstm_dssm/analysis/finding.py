"""Finding: a figure, what chance gives in its place, and the odds."""

from typing import NamedTuple

import numpy as np


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
