"""Expected measures of rankings with ties, computed exactly.

A system that gives several documents the same score has no order among them.
The measures here are the means over all orders of tied documents, so that a
constant scorer gets exactly the values of a random order, whatever the order
of the input. (A stable sort would give it the values of the input order,
which are high where relevant documents are listed first.)

Source: McSherry and Najork 2008, "Computing Information Retrieval
Performance Measures Efficiently in the Presence of Tied Scores".
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from keras_lstm_dssm.settings.choices import NDCG_CUTOFFS


class TieGroup(NamedTuple):
    """Holds documents with one score.

    Attributes:
        size: Number of documents.
        grades: The grades of those that are judged; the others have 0.
    """

    size: int
    grades: Sequence[int]


def tie_groups(
    scores: Mapping[str, float], grades: Mapping[str, int]
) -> list[TieGroup]:
    """Groups the documents of a list by their scores, best first.

    Args:
        scores: Document id -> score; higher is better.
        grades: Document id -> grade; other documents have grade 0.

    Example:
    >>> tie_groups({"a": 1.0, "b": 2.0, "c": 1.0}, {"a": 1})
    [TieGroup(size=1, grades=[0]), TieGroup(size=2, grades=[1, 0])]
    """
    by_score: dict[float, list[int]] = {}
    for document_id, score in scores.items():
        by_score.setdefault(score, []).append(grades.get(document_id, 0))
    return [
        TieGroup(len(by_score[score]), by_score[score])
        for score in sorted(by_score, reverse=True)
    ]


def expected_measures(
    groups: Iterable[TieGroup],
    judged: Iterable[int],
    min_relevant: int = 1,
    depth: int | None = None,
) -> dict[str, float]:
    """Computes the expected measures of one query exactly.

    In a group of n documents, r of them relevant, each rank holds each
    document with probability 1/n, which gives

    - NDCG@k, P@k, recall@k: the value with the mean gain of the group at
      each of its ranks, as they are linear in the gains;
    - RR: the sum over i of 1/i P(the first relevant document is at rank i),
      with documents drawn without replacement;
    - AP: for the j-th rank i of the group, with R relevant documents in the
      groups before, r/n (R + 1 + (j - 1)(r - 1)/(n - 1)) / i, summed over
      the ranks and divided by the number of relevant documents.

    Args:
        groups: The ranked documents, groups of equal scores, best first.
        judged: The grades of all judged documents of the query, at least
            one of them relevant.
        min_relevant: Grade from which a document counts as relevant.
        depth: Number of ranks in a run; `None` for all.

    Returns:
        Measure -> expectation: all of `MEASURES`, and `"mrr"`, the
        reciprocal rank without a cutoff.

    Example:
    >>> expected_measures([TieGroup(5, [1, 0, 0, 0, 0])], [1])["mrr"]
    0.4566666666666666...
    """
    all_gains = sorted(map(gain, judged), reverse=True)
    all_relevant = sum(value >= gain(min_relevant) for value in all_gains)
    gains, relevance, first, precision = [], [], [], []
    none_before, ranks_before, relevant_before = 1.0, 0, 0
    for size, grades in groups:
        relevant = sum(grade >= min_relevant for grade in grades)
        last = size if depth is None else min(size, depth - ranks_before)
        position = np.arange(last)  # j - 1
        gains.append(np.full(last, sum(map(gain, grades)) / size))
        relevance.append(np.full(last, relevant / size))
        others = position * (relevant - 1) / max(size - 1, 1)
        precision.append(relevance[-1] * (relevant_before + 1 + others))
        # P(none of the group's relevant documents is above rank j).
        left = size - position
        above = np.concatenate([[1.0], np.cumprod((left - relevant) / left)])
        first.append(none_before * above[:-1] * relevant / left)
        none_before *= float(above[-1])
        ranks_before += last
        relevant_before += relevant
        if ranks_before == depth:
            break
    ranks = np.arange(1, ranks_before + 1)
    found = np.cumsum(np.concatenate(relevance))
    discounts = 1 / np.log2(np.arange(2, 2 + max(NDCG_CUTOFFS)))
    top = np.concatenate(gains)[: len(discounts)]
    dcg = np.cumsum(top * discounts[: len(top)])
    best = np.array(all_gains[: len(discounts)])
    best_dcg = np.cumsum(best * discounts[: len(best)])
    values = {
        f"ndcg@{k}": float(_up_to(dcg, k) / _up_to(best_dcg, k))
        for k in NDCG_CUTOFFS
    }
    reciprocal = np.cumsum(np.concatenate(first) / ranks)
    values["mrr@10"] = float(_up_to(reciprocal, 10))
    values["map"] = float(
        np.sum(np.concatenate(precision) / ranks) / all_relevant
    )
    for k in (1, 10):
        values[f"p@{k}"] = float(_up_to(found, k) / k)
    for k in (10, 100):
        values[f"recall@{k}"] = float(_up_to(found, k) / all_relevant)
    values["mrr"] = float(reciprocal[-1])
    return values


def gain(grade: int) -> float:
    """Returns 2^grade - 1, the gain of NDCG; 0 for negative grades."""
    return 2.0 ** max(grade, 0) - 1


def _up_to(sums: np.ndarray, k: int) -> float:
    """Returns the cumulative sum at rank k, or at the last one."""
    return float(sums[min(k, len(sums)) - 1])
