"""Groups of texts that may not be divided between training and test."""

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence


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

    def divide(
        self, keys: Sequence[str], shares: Mapping[str, float]
    ) -> list[str]:
        """Divides the items between training and other splits, by group.

        The splits are filled with groups in the order of a hash. A group that
        would fill more than a fifth of a split is put into "train", so that
        one group cannot dominate dev or test.

        Args:
            keys: A text of each item; that of the smallest item of a group
                is hashed.
            shares: Split -> the largest share of the items that it gets; all
                other items are in "train".

        Returns:
            The split of each item.
        """
        groups = [self.of(item) for item in range(len(self._parent))]
        sizes = Counter(groups)
        limits = {name: share * len(groups) for name, share in shares.items()}
        filled = dict.fromkeys(limits, 0)
        split_of_group = dict.fromkeys(sizes, "train")
        for group in sorted(sizes, key=lambda group: _hash(keys[group])):
            for split, limit in limits.items():
                if sizes[group] <= min(limit / 5, limit - filled[split]):
                    split_of_group[group] = split
                    filled[split] += sizes[group]
                    break
        return [split_of_group[group] for group in groups]


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


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
