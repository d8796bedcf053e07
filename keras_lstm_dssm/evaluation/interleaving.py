"""Which of two rankings users prefer: team draft, and what its clicks say.

Source: Radlinski, Kurup and Joachims 2008, "How Does Clickthrough Data Reflect
Retrieval Quality?".
"""

from collections.abc import Iterable, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from keras_lstm_dssm.data.click_pages import Page

ATTRIBUTE = "interleaved"
"""The attribute of a page that was interleaved: its versions and teams."""


def team_draft(
    first: Sequence[str], second: Sequence[str], length: int, random: Random
) -> list[tuple[int, int]]:
    """Merges two rankings, each of which picks its best remaining document.

    In each round both pick one, in an order drawn at random.

    Args:
        first: Ids, best first.
        second: Those of the other ranking.
        length: Number of documents of the merged ranking.
        random: Draws who is the first to pick.

    Returns:
        Team, 0 or 1, and the row in its ranking of each document.

    Example:
    >>> team_draft(["a", "b"], ["a", "b"], 2, Random(1))
    [(0, 0), (1, 1)]
    """
    rankings = first, second
    rows, seen = [0, 0], set[str]()
    merged: list[tuple[int, int]] = []
    while True:
        start = random.randrange(2)
        for team in (start, 1 - start):
            ranking = rankings[team]
            while rows[team] < len(ranking) and ranking[rows[team]] in seen:
                rows[team] += 1
            if len(merged) == length or rows[team] == len(ranking):
                # A team that went on alone would gain clicks by that.
                return merged
            seen.add(ranking[rows[team]])
            merged.append((team, rows[team]))


class Verdict(NamedTuple):
    """Counts the pages that each of two versions of a model has won."""

    model: str
    versions: tuple[Any, Any]
    wins: tuple[int, int]  # pages with more clicks on the version's documents
    ties: int  # pages with clicks, as many on both
    p: float  # of the two-sided sign test without ties

    def describe(self) -> str:
        """Describes the verdict in one line."""
        (first, second), (a, b) = self.versions, self.wins
        text = (
            f"{self.model}: version {second} wins {b:,} pages, version {first}"
            f" wins {a:,}, {self.ties:,} ties; sign test p = {self.p:.3g}: "
        )
        if self.p >= 0.05:
            return text + "no difference is shown"
        return text + f"users prefer version {second if b > a else first}"


def verdicts(pages: "Iterable[Page]") -> list[Verdict]:
    """Compares the versions that pages have interleaved, by their clicks.

    Pages without a click, and those that were not interleaved, say nothing.
    """
    from scipy.stats import binomtest

    counts: dict[tuple[str, int, int], list[int]] = {}
    for page in pages:
        if not any(page.weights):
            continue
        clicks = [0, 0]
        try:
            drafted: Any = page.attributes[ATTRIBUTE]
            first, second = map(int, drafted["versions"])
            for weight, place in zip(page.weights, page.positions, strict=True):
                if weight and 0 < place <= len(drafted["teams"]):
                    clicks[drafted["teams"][place - 1]] += 1
        except (KeyError, TypeError, ValueError, IndexError):
            continue  # not interleaved, or not by this server
        key = (str(page.attributes.get("model")), first, second)
        of_pair = counts.setdefault(key, [0, 0, 0])
        won = 2 if clicks[0] == clicks[1] else int(clicks[1] > clicks[0])
        of_pair[won] += 1
    return [
        Verdict(
            model,
            (first, second),
            (a, b),
            ties,
            float(binomtest(a, a + b).pvalue) if a + b else 1.0,
        )
        for (model, first, second), (a, b, ties) in sorted(counts.items())
    ]
