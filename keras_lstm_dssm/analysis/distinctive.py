"""The words that one group has more than the others."""

from collections import Counter
from collections.abc import Iterable, Sequence


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
