"""NDCG, MRR, MAP, precision and recall of a run, and of a random order."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.ranking import Qrels, Run

NDCG_CUTOFFS = (1, 3, 5, 10)
MEASURES = (
    *(f"ndcg@{k}" for k in NDCG_CUTOFFS),
    "mrr@10",
    "map",
    "p@1",
    "p@10",
    "recall@10",
    "recall@100",
)
"""All measures, in the order in which they are shown."""

QueryMeasures = dict[str, dict[str, float]]
"""Query id -> measure -> value from 0 to 1."""

DISCOUNTS = 1 / np.log2(np.arange(2, 2 + max(NDCG_CUTOFFS)))


def evaluate(run: Run, qrels: Qrels, min_relevant: int = 1) -> dict[str, float]:
    """Measures a run: the means of `evaluate_queries`.

    Args:
        run: Query id -> document id -> score; as `Ranker` makes them.
        qrels: Query id -> document id -> grade.
        min_relevant: Grade from which a document counts as relevant.

    Returns:
        Measure -> mean over the queries, from 0 to 1; keys are `MEASURES`.

    Raises:
        InputError: No query has a relevant document, or `min_relevant` < 1.

    Example:
    >>> evaluate({"q": {"b": 2.0, "a": 1.0}}, {"q": {"a": 1}})["mrr@10"]
    0.5
    """
    return mean(evaluate_queries(run, qrels, min_relevant))


def evaluate_queries(
    run: Run, qrels: Qrels, min_relevant: int = 1
) -> QueryMeasures:
    """Measures each query, as significance tests want it.

    NDCG@k has gain 2^grade - 1 and discount log2(rank + 1) (Burges et al.
    2005; spec of Table IV in Palangi et al. 2016). The other measures call
    a document relevant from `min_relevant` on and come from `ir_measures`.

    Args:
        run: See `evaluate`. A query that it lacks gets 0.
        qrels: See `evaluate`. Unjudged documents have grade 0.
        min_relevant: See `evaluate`.

    Returns:
        Query id -> measure -> value, for the queries with a relevant
        document.
    """
    import ir_measures

    binary_measures = {
        ir_measures.RR @ 10: "mrr@10",
        ir_measures.AP: "map",
        ir_measures.P @ 1: "p@1",
        ir_measures.P @ 10: "p@10",
        ir_measures.R @ 10: "recall@10",
        ir_measures.R @ 100: "recall@100",
    }
    qrels = with_relevant(qrels, min_relevant)
    # Two grades only: trec_eval allocates by the highest one.
    binary = {
        query_id: {d: int(g >= min_relevant) for d, g in judged.items()}
        for query_id, judged in qrels.items()
    }
    ranked = {q: run[q] for q in qrels if run.get(q)}
    values = {q: _ndcg(run.get(q, {}), qrels[q]) for q in qrels}
    for found in ir_measures.iter_calc(list(binary_measures), binary, ranked):
        values[found.query_id][binary_measures[found.measure]] = found.value
    return values


def mean(values: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Averages each measure over the queries.

    Raises:
        InputError: There is no query.
    """
    if not values:
        raise InputError(
            "no query has a relevant document: check the split and"
            " min_relevant, the grade from which one counts"
        )
    return {
        name: float(np.mean([query[name] for query in values.values()]))
        for name in MEASURES
    }


def with_relevant(qrels: Qrels, min_relevant: int) -> Qrels:
    """Keeps the queries that have a relevant document.

    Raises:
        InputError: `min_relevant` < 1.
    """
    if min_relevant < 1:
        raise InputError(
            f"min_relevant is {min_relevant}: expected 1 or more, as grade 0"
            " and unjudged mean not relevant"
        )
    return {
        query_id: judged
        for query_id, judged in qrels.items()
        if max(judged.values(), default=0) >= min_relevant
    }


def gains(grades: Iterable[int], largest: int) -> np.ndarray:
    """Returns (2^grade - 1) / 2^largest, which no grade makes overflow."""
    exponents = np.maximum(np.fromiter(grades, float), 0) - largest
    return np.exp2(exponents) - np.exp2(-float(largest))


def best_dcg(judged: Mapping[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """Returns the gains of all judged documents and the best DCG@1..10."""
    found = gains(judged.values(), max(judged.values()))
    return found, _dcg(np.sort(found)[::-1])


def _ndcg(
    ranked: Mapping[str, float], judged: Mapping[str, int]
) -> dict[str, float]:
    _, best = best_dcg(judged)
    top = list(ranked)[: len(DISCOUNTS)]
    grades = (judged.get(document_id, 0) for document_id in top)
    dcg = _dcg(gains(grades, max(judged.values())))
    return {f"ndcg@{k}": float(dcg[k - 1] / best[k - 1]) for k in NDCG_CUTOFFS}


def _dcg(found: np.ndarray | Sequence[float]) -> np.ndarray:
    """DCG@1..10 of gains in rank order."""
    padded = np.zeros(len(DISCOUNTS))
    padded[: len(found)] = found[: len(DISCOUNTS)]
    return np.cumsum(padded * DISCOUNTS)


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
