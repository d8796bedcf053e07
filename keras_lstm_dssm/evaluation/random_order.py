"""What chance reaches: exact expectations for a random order."""

from collections.abc import Mapping

import numpy as np

from keras_lstm_dssm.evaluation.measures import (
    DISCOUNTS,
    NDCG_CUTOFFS,
    QueryMeasures,
    best_dcg,
    with_relevant,
)
from keras_lstm_dssm.evaluation.ranking import Qrels


def random_order(
    qrels: Qrels,
    candidates: Mapping[str, int],
    min_relevant: int = 1,
    depth: int | None = None,
) -> QueryMeasures:
    """Returns the expected measures of a uniformly random order.

    No sampling: with N candidates, R of them relevant, each rank holds each
    candidate with probability 1/N, which gives

    - NDCG@k, P@k, recall@k: linear, so the mean gain at every rank;
    - RR@k: sum over i of 1/i P(the first relevant one is at i), without
      replacement;
    - AP: 1/N sum over i of (1 + (i - 1)(R - 1)/(N - 1)) / i.

    Args:
        qrels: Query id -> document id -> grade; every judged document is
            one of the candidates.
        candidates: Query id -> number of candidates: the judged titles, or
            the size of the corpus.
        min_relevant: Grade from which a document counts as relevant.
        depth: Ranks that a run holds; `None` for all.

    Returns:
        Query id -> measure -> expectation, like `evaluate_queries`.

    Example:
    >>> random_order({"q": {"a": 1, "b": 0}}, {"q": 2})["q"]["mrr@10"]
    0.75
    """
    return {
        query_id: _expected(judged, candidates[query_id], min_relevant, depth)
        for query_id, judged in with_relevant(qrels, min_relevant).items()
    }


def _expected(
    judged: Mapping[str, int], size: int, min_relevant: int, depth: int | None
) -> dict[str, float]:
    relevant = sum(grade >= min_relevant for grade in judged.values())
    share = relevant / size
    last = min(size, depth or size)

    found, best = best_dcg(judged)
    dcg = found.sum() / size * np.cumsum(DISCOUNTS)
    values = {
        f"ndcg@{k}": float(dcg[min(k, last) - 1] / best[k - 1])
        for k in NDCG_CUTOFFS
    }

    before = 1.0  # P(no relevant one above rank i)
    reciprocal = 0.0
    for i in range(1, min(10, last) + 1):
        left = size - i + 1
        reciprocal += before * relevant / left / i
        before *= (left - relevant) / left
    ranks = np.arange(1, last + 1)
    others = (ranks - 1) * (relevant - 1) / max(size - 1, 1)
    values["mrr@10"] = reciprocal
    values["map"] = float(np.sum((1 + others) / ranks) / size)
    for k in (1, 10):
        values[f"p@{k}"] = share * min(k, last) / k
    for k in (10, 100):
        values[f"recall@{k}"] = min(k, last) / size
    return values
