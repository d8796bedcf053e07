"""NDCG, MRR, MAP, precision and recall of a run, and of a random order."""

from collections.abc import Mapping

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

LARGEST_GRADE = 5
"""Larger grades raise `InputError`: they are probably numbers of clicks, and
with the gain 2^grade - 1 the best document alone would determine NDCG."""


def evaluate(run: Run, qrels: Qrels, min_relevant: int = 1) -> dict[str, float]:
    """Computes the measures of a run, averaged over its queries.

    Args:
        run: Query id -> document id -> score, best first, as `Ranker` makes
            them.
        qrels: Query id -> document id -> grade, at most `LARGEST_GRADE`.
        min_relevant: Grade from which a document counts as relevant.

    Returns:
        Measure -> mean over the queries, from 0 to 1; keys are `MEASURES`.

    Raises:
        InputError: No query has a relevant document, `min_relevant` is below
            1, or a grade is above `LARGEST_GRADE`.

    Example:
    >>> evaluate({"q": {"b": 2.0, "a": 1.0}}, {"q": {"a": 1}})["mrr@10"]
    0.5
    """
    return mean(evaluate_queries(run, qrels, min_relevant))


def evaluate_queries(
    run: Run, qrels: Qrels, min_relevant: int = 1
) -> QueryMeasures:
    """Computes the measures of each query with `ir_measures`.

    NDCG@k has gain 2^grade - 1 and discount log2(rank + 1) (Burges et al.
    2005), as in Table IV of Palangi et al. 2016. For all other measures a
    document is relevant if its grade is `min_relevant` or more.

    Args:
        run: See `evaluate`. A query that is not in it gets 0.
        qrels: See `evaluate`. A document that is not in it has grade 0.
        min_relevant: See `evaluate`.

    Returns:
        Query id -> measure -> value, for the queries with a relevant
        document.

    Raises:
        InputError: See `evaluate`.
    """
    import ir_measures

    qrels = with_relevant(qrels, min_relevant)
    grades = {grade for judged in qrels.values() for grade in judged.values()}
    gains = {grade: int(_gain(grade)) for grade in grades}
    graded_measures = {
        ir_measures.nDCG(gains=gains) @ k: f"ndcg@{k}" for k in NDCG_CUTOFFS
    }
    binary_measures = {
        ir_measures.RR @ 10: "mrr@10",
        ir_measures.AP: "map",
        ir_measures.P @ 1: "p@1",
        ir_measures.P @ 10: "p@10",
        ir_measures.R @ 10: "recall@10",
        ir_measures.R @ 100: "recall@100",
    }
    binary_qrels = {
        query_id: {d: int(g >= min_relevant) for d, g in judged.items()}
        for query_id, judged in qrels.items()
    }
    ranked = {q: run[q] for q in qrels if run.get(q)}
    values: QueryMeasures = {query_id: {} for query_id in qrels}
    for names, judgements in (
        (graded_measures, qrels),
        (binary_measures, binary_qrels),
    ):
        for metric in ir_measures.iter_calc(list(names), judgements, ranked):
            values[metric.query_id][names[metric.measure]] = metric.value
    return values


def mean(values: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Averages each measure over the queries.

    Raises:
        InputError: There is no query.
    """
    if not values:
        raise InputError(
            "no query has a relevant document: check the split and"
            " min_relevant, the grade from which a document is relevant"
        )
    return {
        name: float(np.mean([query[name] for query in values.values()]))
        for name in MEASURES
    }


def with_relevant(qrels: Qrels, min_relevant: int) -> Qrels:
    """Returns the qrels of the queries that have a relevant document.

    Raises:
        InputError: `min_relevant` is below 1, or a grade is above
            `LARGEST_GRADE`.
    """
    if min_relevant < 1:
        raise InputError(
            f"min_relevant is {min_relevant}: expected 1 or more, as grade 0"
            " and no grade mean not relevant"
        )
    for query_id, judged in qrels.items():
        for document_id, grade in judged.items():
            if grade > LARGEST_GRADE:
                raise InputError(
                    f"query {query_id}, document {document_id}: found grade"
                    f" {grade}, expected {LARGEST_GRADE} at most, as the gain"
                    " is 2^grade - 1; turn numbers of clicks into grades by"
                    " keras_lstm_dssm.data.click_grades"
                )
    return {
        query_id: judged
        for query_id, judged in qrels.items()
        if max(judged.values(), default=0) >= min_relevant
    }


def random_order(
    qrels: Qrels,
    candidates: Mapping[str, int],
    min_relevant: int = 1,
    depth: int | None = None,
) -> QueryMeasures:
    """Computes the expected measures of a uniformly random order exactly.

    With N candidates, R of them relevant, each rank holds each candidate with
    probability 1/N, which gives

    - NDCG@k, P@k, recall@k: the value with the mean gain at every rank, as
      they are linear in the gains;
    - RR@k: the sum over i of 1/i P(the first relevant document is at rank
      i), with documents drawn without replacement;
    - AP: 1/N sum over i of (1 + (i - 1)(R - 1)/(N - 1)) / i.

    Args:
        qrels: See `evaluate`; every judged document is a candidate.
        candidates: Query id -> number of candidates: the number of judged
            documents, or the size of the corpus.
        min_relevant: Grade from which a document counts as relevant.
        depth: Number of ranks in a run; `None` for all candidates.

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

    discounts = 1 / np.log2(np.arange(2, 2 + max(NDCG_CUTOFFS)))
    gains = np.array(sorted(map(_gain, judged.values()), reverse=True))
    top = np.zeros(len(discounts))
    top[: len(gains)] = gains[: len(discounts)]
    best_dcg = np.cumsum(top * discounts)
    mean_dcg = gains.sum() / size * np.cumsum(discounts)
    values = {
        f"ndcg@{k}": float(mean_dcg[min(k, last) - 1] / best_dcg[k - 1])
        for k in NDCG_CUTOFFS
    }

    none_before = 1.0  # P(no relevant document above rank i)
    reciprocal = 0.0
    for i in range(1, min(10, last) + 1):
        remaining = size - i + 1
        reciprocal += none_before * relevant / remaining / i
        none_before *= (remaining - relevant) / remaining
    ranks = np.arange(1, last + 1)
    others = (ranks - 1) * (relevant - 1) / max(size - 1, 1)
    values["mrr@10"] = reciprocal
    values["map"] = float(np.sum((1 + others) / ranks) / size)
    for k in (1, 10):
        values[f"p@{k}"] = share * min(k, last) / k
    for k in (10, 100):
        values[f"recall@{k}"] = min(k, last) / size
    return values


def _gain(grade: int) -> float:
    return 2.0 ** max(grade, 0) - 1
