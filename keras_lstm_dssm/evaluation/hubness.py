"""Measures which titles are near many queries or on many result pages.

Such titles are hubs (Radovanovic, Nanopoulos and Ivanovic 2010, "Hubs in
Space"). The hubness of a title is its mean cosine with its nearest queries. A
hybrid retriever subtracts the weighted hubness from the score of the title,
like CSLS (Conneau et al. 2018, "Word Translation Without Parallel Data").
"""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from keras_lstm_dssm.evaluation.runs import Run

NEAREST = 10  # hubness is the mean cosine with this number of nearest queries
QUERIES = 2000  # largest number of training queries to compare titles with
_ROWS = 4096


def sample(queries: Iterable[str]) -> list[str]:
    """Sorts distinct queries, and returns at most `QUERIES`, evenly spaced."""
    distinct = sorted(set(queries))
    step = max(1, -(-len(distinct) // QUERIES))
    return distinct[::step]


def hubness(
    titles: np.ndarray,  # unit vectors `[n, d]`
    queries: np.ndarray,  # unit vectors `[m, d]`, m above 0
) -> np.ndarray:
    """Returns each title's mean cosine with its `NEAREST` nearest queries."""
    count = min(NEAREST, len(queries))
    result = np.empty(len(titles), np.float32)
    for start in range(0, len(titles), _ROWS):
        cosines = titles[start : start + _ROWS] @ queries.T
        largest = np.partition(cosines, -count, axis=1)[:, -count:]
        result[start : start + _ROWS] = largest.mean(axis=1)
    return result


class Occurrences(NamedTuple):
    """How often titles are on result pages."""

    title: str  # id of the most frequent title
    share: float  # share of pages with the most frequent title, from 0 to 1
    skewness: float  # skewness of the number of pages of each title


def occurrences(
    run: Run,
    documents: int,  # number of titles in the corpus
    k: int = 10,
) -> Occurrences:
    """Measures how often titles are among the first k results of queries."""
    counts = Counter(d for ranked in run.values() for d in [*ranked][:k])
    if not counts:
        return Occurrences("", 0.0, 0.0)
    page_counts = np.zeros(documents)
    page_counts[: len(counts)] = [*counts.values()]
    deviations = page_counts - page_counts.mean()
    sigma = np.sqrt((deviations**2).mean())
    skewness = float((deviations**3).mean() / sigma**3) if sigma else 0.0
    title, count = counts.most_common(1)[0]
    return Occurrences(title, count / len(run), skewness)
