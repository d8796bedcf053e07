"""Groups of texts that may not be divided between training and test."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence


class Groups:
    """Joins items into groups (a union-find structure).

    Args:
        count: Number of items, each a group of its own at first.

    Example:
    >>> groups = Groups(3)
    >>> groups.join(2, 0)
    >>> [groups.of(item) for item in range(3)]
    [0, 1, 0]
    """

    def __init__(self, count: int) -> None:
        self._parent = list(range(count))

    def of(self, item: int) -> int:
        """Returns the smallest item of an item's group."""
        while self._parent[item] != item:
            self._parent[item] = self._parent[self._parent[item]]
            item = self._parent[item]
        return item

    def join(self, one: int, other: int) -> None:
        """Joins the groups of two items."""
        first, second = sorted((self.of(one), self.of(other)))
        self._parent[second] = first


def near_duplicates(
    texts: Sequence[str], share: float = 0.75
) -> Iterator[tuple[int, int]]:
    """Yields pairs of texts that have nearly the same words.

    Two texts are near if the words in both are at least `share` of the words
    in either (the Jaccard index of their sets of words).

    Args:
        texts: Words separated by spaces, such as `normalize` returns.
        share: The smallest Jaccard index, above 0.

    Yields:
        Positions of the two texts, the earlier one second.

    Source: Chaudhuri, Ganti and Kaushik 2006, "A Primitive Operator for
    Similarity Joins in Data Cleaning", for the prefixes: two sets that are
    near have one of their rarest words in common.

    Example:
    >>> list(near_duplicates(["a b c d", "e", "b c d"]))
    [(2, 0)]
    """
    counts = Counter(word for text in texts for word in set(text.split()))
    by_word: dict[str, list[int]] = {}
    sets: list[set[str]] = []
    for number, text in enumerate(texts):
        words = sorted(set(text.split()), key=lambda w: (counts[w], w))
        sets.append(set(words))
        prefix = words[: len(words) - math.ceil(share * len(words)) + 1]
        for other in sorted({o for w in prefix for o in by_word.get(w, ())}):
            both = len(sets[number] & sets[other])
            if both >= share * (len(sets[number]) + len(sets[other]) - both):
                yield number, other
        for word in prefix:
            by_word.setdefault(word, []).append(number)
