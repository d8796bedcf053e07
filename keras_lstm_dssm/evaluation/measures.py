"""NDCG, MRR, MAP, precision and recall of a run, and of a random order."""

from collections.abc import Mapping, Sequence

import numpy as np

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.ranking import Qrels, Run
from keras_lstm_dssm.evaluation.ties import (
    TieGroup,
    expected_measures,
    gain,
)
from keras_lstm_dssm.settings.choices import MEASURES, NDCG_CUTOFFS

QueryMeasures = dict[str, dict[str, float]]
"""Query id -> measure -> value from 0 to 1."""

LARGEST_GRADE = 5
"""Larger grades raise `InputError`: they are probably numbers of clicks, and
with the gain 2^grade - 1 the best document alone would determine NDCG."""


def evaluate(
    run: Run,
    qrels: Qrels,
    min_relevant: int = 1,
    names: Sequence[str] = MEASURES,
) -> dict[str, float]:
    """Computes the measures of a run, averaged over its queries.

    Args:
        run: Query id -> document id -> score, best first, as `Ranker` makes
            them.
        qrels: Query id -> document id -> grade, at most `LARGEST_GRADE`.
        min_relevant: Grade from which a document counts as relevant.
        names: The measures, some of `MEASURES` and `"mrr"`, the reciprocal
            rank without a cutoff. Default `MEASURES`.

    Returns:
        Measure -> mean over the queries, from 0 to 1; keys are `names`.

    Raises:
        InputError: No query has a relevant document, `min_relevant` is below
            1, or a grade is above `LARGEST_GRADE`.

    Example:
    >>> evaluate({"q": {"b": 2.0, "a": 1.0}}, {"q": {"a": 1}})["mrr@10"]
    0.5
    """
    return mean(evaluate_queries(run, qrels, min_relevant, names), names)


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
        run: See `evaluate`. A query that is not in it gets 0.
        qrels: See `evaluate`. A document that is not in it has grade 0.
        min_relevant: See `evaluate`.
        names: See `evaluate`.

    Returns:
        Query id -> measure -> value, for the queries with a relevant
        document.

    Raises:
        InputError: See `evaluate`.

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


def mean(
    values: Mapping[str, Mapping[str, float]],
    names: Sequence[str] = MEASURES,
) -> dict[str, float]:
    """Averages measures over the queries.

    Args:
        values: Query id -> measure -> value.
        names: The measures.

    Raises:
        InputError: There is no query.

    Example:
    >>> mean({"q1": {"map": 1.0}, "q2": {"map": 0.5}}, ["map"])
    {'map': 0.75}
    """
    if not values:
        raise InputError(
            "no query has a relevant document: check the split and"
            " min_relevant, the grade from which a document is relevant"
        )
    return {
        name: float(np.mean([query[name] for query in values.values()]))
        for name in names
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
    names: Sequence[str] = MEASURES,
) -> QueryMeasures:
    """Computes the expected measures of a uniformly random order exactly.

    A random order is one tie between all candidates, see
    `expected_measures`.

    Args:
        qrels: See `evaluate`; every judged document is a candidate.
        candidates: Query id -> number of candidates: the number of judged
            documents, or the size of the corpus.
        min_relevant: Grade from which a document counts as relevant.
        depth: Number of ranks in a run; `None` for all candidates.
        names: See `evaluate`.

    Returns:
        Query id -> measure -> expectation, like `evaluate_queries`.

    Example:
    >>> random_order({"q": {"a": 1, "b": 0}}, {"q": 2})["q"]["mrr@10"]
    0.75
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
