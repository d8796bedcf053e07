"""NDCG, MRR, MAP, precision and recall of rankings and of random order."""

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.runs import ListScores, Qrels, Run
from keras_lstm_dssm.settings.fields import MEASURES, NDCG_CUTOFFS


class TieGroup(NamedTuple):
    """Documents of a ranking that have equal scores."""

    size: int  # number of documents
    grades: Sequence[int]  # grades of the documents; zeros may be left out


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
    groups: Iterable[TieGroup],  # groups of tied documents, best first
    judged: Iterable[int],  # all judged grades; at least one is relevant
    min_relevant: int = 1,
    depth: int | None = None,  # number of ranks that count; `None`: all ranks
) -> dict[str, float]:
    """Computes each measure's exact mean over all orders of tied documents.

    A group has n documents, and r of them are relevant. At each rank of the
    group, NDCG uses the mean gain of the group. Precision and recall use r/n.

    - RR: the sum of p_i / i over all ranks i. p_i is the probability that the
      first relevant document is at rank i.
    - AP: let rank i be the j-th rank of its group, and R the number of relevant
      documents in earlier groups. AP is the sum over all ranks i of
      (r/n) (R + 1 + (j - 1) (r - 1)/(n - 1)) / i, divided by the number of
      relevant documents.
    """
    all_gains = sorted(map(gain, judged), reverse=True)
    all_relevant = sum(value >= gain(min_relevant) for value in all_gains)
    gains, relevance, first_relevant, precision = [], [], [], []
    none_before, ranks_before, relevant_before = 1.0, 0, 0
    for size, grades in groups:
        relevant = sum(grade >= min_relevant for grade in grades)
        last = size if depth is None else min(size, depth - ranks_before)
        position = np.arange(last)  # j - 1
        gains.append(np.full(last, sum(map(gain, grades)) / size))
        relevance.append(np.full(last, relevant / size))
        relevant_above = position * (relevant - 1) / max(size - 1, 1)
        precision.append(relevance[-1] * (relevant_before + 1 + relevant_above))
        # `above[j - 1]` is the probability that no relevant document of the
        # group is above the group's rank j.
        remaining = size - position
        above = np.concatenate(
            [[1.0], np.cumprod((remaining - relevant) / remaining)]
        )
        first_relevant.append(none_before * above[:-1] * relevant / remaining)
        none_before *= float(above[-1])
        ranks_before += last
        relevant_before += relevant
        if ranks_before == depth:
            break
    ranks = np.arange(1, ranks_before + 1)
    relevant_sums = np.cumsum(np.concatenate(relevance))
    discounts = 1 / np.log2(np.arange(2, 2 + max(NDCG_CUTOFFS)))
    top = np.concatenate(gains)[: len(discounts)]
    dcg = np.cumsum(top * discounts[: len(top)])
    best = np.array(all_gains[: len(discounts)])
    best_dcg = np.cumsum(best * discounts[: len(best)])
    values = {
        f"ndcg@{k}": float(_up_to(dcg, k) / _up_to(best_dcg, k))
        for k in NDCG_CUTOFFS
    }
    reciprocal = np.cumsum(np.concatenate(first_relevant) / ranks)
    values["mrr@10"] = float(_up_to(reciprocal, 10))
    values["map"] = float(
        np.sum(np.concatenate(precision) / ranks) / all_relevant
    )
    for k in (1, 10):
        values[f"p@{k}"] = float(_up_to(relevant_sums, k) / k)
    for k in (10, 100):
        values[f"recall@{k}"] = float(_up_to(relevant_sums, k) / all_relevant)
    values["mrr"] = float(reciprocal[-1])
    return values


def gain(grade: int) -> float:
    """Returns 2^grade - 1, the gain of NDCG; 0 for negative grades."""
    return 2.0 ** max(grade, 0) - 1


def _up_to(sums: np.ndarray, k: int) -> float:
    return float(sums[min(k, len(sums)) - 1])


QueryMeasures = dict[str, dict[str, float]]
"""Query id -> measure -> value, at most 1."""

LARGEST_GRADE = 5
"""The largest grade that is allowed. Larger grades are probably numbers of
clicks, see `click_grades`."""


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
        run: Query id -> document id -> score, best first and without ties.
            The measures of a missing query are 0.
        qrels: Query id -> document id -> grade, at most `LARGEST_GRADE`. A
            missing document has grade 0.
        min_relevant: Grade from which a document is relevant.
        names: Names in `MEASURES`, or `"mrr"`, the reciprocal rank without
            a cutoff. Default `MEASURES`.

    Returns:
        Query id -> measure -> value. Queries without a relevant document are
        left out.

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
        measures = {m: n for m, n in all_measures.items() if n in names}
        if not measures:  # ir_measures does not support an empty list
            continue
        for metric in ir_measures.iter_calc(list(measures), judgements, ranked):
            values[metric.query_id][measures[metric.measure]] = metric.value
    return {
        query_id: {name: by_name[name] for name in names}
        for query_id, by_name in values.items()
    }


def expected_queries(
    scores: ListScores,
    qrels: Qrels,
    min_relevant: int = 1,
    names: Sequence[str] = MEASURES,
) -> QueryMeasures:
    """Averages each query's measures over all orders of tied documents."""
    values: QueryMeasures = {}
    for query_id, judged in with_relevant(qrels, min_relevant).items():
        query_scores = scores.get(query_id)
        if not query_scores:
            values[query_id] = dict.fromkeys(names, 0.0)
            continue
        if not np.isfinite(list(query_scores.values())).all():
            raise ValueError(f"query {query_id}: a score is not finite")
        expected = expected_measures(
            tie_groups(query_scores, judged), judged.values(), min_relevant
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
        names: The measures. Default: all measures of the first query.

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
        # `fmean` sums exactly: the order of the queries has no effect.
        name: fmean(query[name] for query in values.values())
        for name in names
    }


def with_relevant(qrels: Qrels, min_relevant: int) -> Qrels:
    """Checks qrels, and selects the queries with a relevant document."""
    if min_relevant < 1:
        raise InputError(
            f"min_relevant is {min_relevant}: expected 1 or more, because"
            " documents of grade 0 are not relevant"
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
    candidates: Mapping[str, int],  # query id -> number of candidates
    min_relevant: int = 1,
    depth: int | None = None,  # number of ranks that count; `None`: all ranks
    names: Sequence[str] = MEASURES,
) -> QueryMeasures:
    """Computes the exact expected measures of candidates in random order."""
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
"""The grade of the most clicked document of a query, see `click_grades`."""


def click_grades(clicks: Mapping[str, float]) -> dict[str, int]:
    """Grades the documents of one query by their clicks.

    The gain of NDCG is 2^grade - 1. So a number of clicks must not be used as a
    grade: a document with 30 clicks would count a thousand times as much as a
    document with 20 clicks. With this formula the gain, at most 15, is
    approximately proportional to the clicks:

        grade = round(log2(1 + 15 * clicks / most clicks of the query))

    A document has grade 4 if it has at least 69 % of the clicks of the most
    clicked document, grade 3 from 31 %, grade 2 from 12 %, grade 1 with fewer
    clicks, and grade 0 without clicks. Grades of different queries are not
    comparable.

    Args:
        clicks: Document id -> number of clicks on the document for the query,
            or the sum of the weights of these clicks.

    Returns:
        Document id -> grade, in the order of `clicks`.

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
