"""NDCG, MRR, MAP, precision and recall of rankings and of random order.

Tied scores are either broken before, or the measures are exact expectations
over all orders of the ties.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.runs import ListScores, Qrels, Run
from keras_lstm_dssm.settings.fields import MEASURES, NDCG_CUTOFFS


class TieGroup(NamedTuple):
    """The documents of one score, and the grades of those that are judged."""

    size: int
    grades: Sequence[int]


def tie_groups(
    scores: Mapping[str, float], grades: Mapping[str, int]
) -> list[TieGroup]:
    """Groups the documents of a list by their scores, best first."""
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

    In a group of n documents, r of them relevant, each rank holds each document
    with probability 1/n, which gives

    - NDCG@k, P@k, recall@k: the value with the mean gain of the group at
      each of its ranks, as they are linear in the gains;
    - RR: the sum over i of 1/i P(the first relevant document is at rank i),
      with documents drawn without replacement;
    - AP: for the j-th rank i of the group, with R relevant documents in the
      groups before, r/n (R + 1 + (j - 1)(r - 1)/(n - 1)) / i, summed over
      the ranks and divided by the number of relevant documents.

    `judged` are the grades of all judged documents of the query, one or more of
    them relevant. The measures are all of `MEASURES`, and `"mrr"`, the
    reciprocal rank without a cutoff.
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


QueryMeasures = dict[str, dict[str, float]]
"""Query id -> measure -> value from 0 to 1."""

LARGEST_GRADE = 5
"""Larger grades raise `InputError`: they are probably numbers of clicks, and
with the gain 2^grade - 1 the best document alone would determine NDCG."""


def evaluate_queries(
    run: Run,
    qrels: Qrels,
    min_relevant: int = 1,
    names: Sequence[str] = MEASURES,
) -> QueryMeasures:
    """Computes the measures of each query with `ir_measures`.

    NDCG@k has gain 2^grade - 1 and discount log2(rank + 1) (Burges et al.
    2005), as in Table IV of Palangi et al. 2016. For all other measures a
    document is relevant if its grade is `min_relevant` or more.

    Args:
        run: Query id -> document id -> score, best first, as `TieBreaker` makes
            them. A query that is not in it gets 0.
        qrels: Query id -> document id -> grade, at most `LARGEST_GRADE`. A
            document that is not in it has grade 0.
        min_relevant: Grade from which a document counts as relevant.
        names: The measures, some of `MEASURES` and `"mrr"`, the reciprocal
            rank without a cutoff. Default `MEASURES`.

    Returns:
        Query id -> measure -> value, for the queries with a relevant
        document.

    Raises:
        InputError: `min_relevant` is below 1, or a grade is above
            `LARGEST_GRADE`.

    Example:
    >>> run = {"q": {"d1": 0.9, "d2": 0.4}}
    >>> measured = evaluate_queries(run, {"q": {"d2": 1}})
    >>> measured["q"]["mrr@10"], measured["q"]["recall@10"]
    (0.5, 1.0)
    """
    import ir_measures

    qrels = with_relevant(qrels, min_relevant)
    grades = {grade for judged in qrels.values() for grade in judged.values()}
    gains = {grade: int(gain(grade)) for grade in grades}
    graded_measures = {
        ir_measures.nDCG(gains=gains) @ k: f"ndcg@{k}" for k in NDCG_CUTOFFS
    }
    binary_measures = {
        ir_measures.RR: "mrr",
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
    for all_measures, judgements in (
        (graded_measures, qrels),
        (binary_measures, binary_qrels),
    ):
        measures = {
            measure: name
            for measure, name in all_measures.items()
            if name in names
        }
        if not measures:  # which ir_measures does not support
            continue
        for metric in ir_measures.iter_calc(list(measures), judgements, ranked):
            values[metric.query_id][measures[metric.measure]] = metric.value
    return {
        query_id: {name: of_query[name] for name in names}
        for query_id, of_query in values.items()
    }


def expected_queries(
    scores: ListScores,
    qrels: Qrels,
    min_relevant: int = 1,
    names: Sequence[str] = MEASURES,
) -> QueryMeasures:
    """Computes the measures of each query in expectation over ties.

    It takes scores with ties, as `System.list_scores` returns them, where
    `evaluate_queries` takes a run. A score that is not finite raises
    `ValueError`.
    """
    values: QueryMeasures = {}
    for query_id, judged in with_relevant(qrels, min_relevant).items():
        of_query = scores.get(query_id)
        if not of_query:
            values[query_id] = dict.fromkeys(names, 0.0)
            continue
        if not np.isfinite(list(of_query.values())).all():
            raise ValueError(f"query {query_id}: a score is not finite")
        expected = expected_measures(
            tie_groups(of_query, judged), judged.values(), min_relevant
        )
        values[query_id] = {name: expected[name] for name in names}
    return values


def mean(
    values: Mapping[str, Mapping[str, float]],
    names: Sequence[str] | None = None,
) -> dict[str, float]:
    """Averages measures over the queries.

    Args:
        values: Query id -> measure -> value.
        names: The measures. Default: all that the queries have.

    Raises:
        InputError: There is no query.

    Example:
    >>> mean({"q1": {"map": 1.0}, "q2": {"map": 0.5}})
    {'map': 0.75}
    """
    if not values:
        raise InputError(
            "no query has a relevant document: check the split and"
            " min_relevant, the grade from which a document is relevant"
        )
    if names is None:
        names = list(next(iter(values.values())))
    return {
        # Exact, so that equal systems are equal in any order of the queries.
        name: fmean(query[name] for query in values.values())
        for name in names
    }


def with_relevant(qrels: Qrels, min_relevant: int) -> Qrels:
    """Returns the qrels of the queries that have a relevant document.

    A grade above `LARGEST_GRADE`, or `min_relevant` below 1, raises
    `InputError`.
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
    names: Sequence[str] = MEASURES,
) -> QueryMeasures:
    """Computes the expected measures of a uniformly random order exactly.

    A random order is one tie between all candidates, see `expected_measures`.
    `candidates` is query id -> their number: that of the judged documents, or
    the size of the corpus.
    """
    expected: QueryMeasures = {}
    for query_id, judged in with_relevant(qrels, min_relevant).items():
        grades = list(judged.values())
        values = expected_measures(
            [TieGroup(candidates[query_id], grades)],
            grades,
            min_relevant,
            depth,
        )
        expected[query_id] = {name: values[name] for name in names}
    return expected


MAX_GRADE = 4


def click_grades(clicks: Mapping[str, float]) -> dict[str, int]:
    """Grades the documents of one query by their clicks.

    NDCG has the gain 2^grade - 1, so a number of clicks must not be used as
    a grade: a document with 30 clicks would count a thousand times as much
    as one with 20. The grade here is the one whose gain, of at most 15, is
    nearest (in its logarithm) to the share of the clicks:

        grade = round(log2(1 + 15 * clicks / most clicks of the query))

    and at least 1 for a document that was clicked. So a document gets grade
    4 from 69 % of the clicks of the query's most clicked document, 3 from
    31 %, 2 from 12 %, 1 below; and 0 without clicks. NDCG is computed query
    by query, so the grades need not be comparable between queries.

    Args:
        clicks: Document id -> number of clicks for the query, or the sum of
            their weights.

    Returns:
        Document id -> grade, in the same order.

    Example:
    >>> click_grades({"d1": 30, "d2": 20, "d3": 10, "d4": 1, "d5": 0})
    {'d1': 4, 'd2': 3, 'd3': 3, 'd4': 1, 'd5': 0}
    """
    most = max(clicks.values(), default=0)
    return {
        document: max(
            1, round(math.log2(1 + (2**MAX_GRADE - 1) * count / most))
        )
        if count > 0
        else 0
        for document, count in clicks.items()
    }
