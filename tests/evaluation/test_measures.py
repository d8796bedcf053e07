"""Measures by hand, by formula, and in expectation over ties and orders."""

import random
from itertools import chain, permutations, product
from typing import Any

import numpy as np
import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import MEASURES, evaluate_queries, mean
from keras_lstm_dssm.evaluation.measures import (
    expected_measures,
    expected_queries,
    random_order,
    tie_groups,
)
from keras_lstm_dssm.evaluation.runs import Qrels, Run
from keras_lstm_dssm.evaluation.task import LIST_MEASURES

# Grades of the ranked documents: d0 3, d1 0, d2 1, d3 unjudged, d4 2; d5
# has grade 1 and is not in the run.
QRELS = {"q": {"d0": 3, "d1": 0, "d2": 1, "d4": 2, "d5": 1}}


def evaluate(run: Run, qrels: Qrels, *options: Any, **named: Any) -> Any:
    return mean(evaluate_queries(run, qrels, *options, **named))


def run_of(order: list[str] | tuple[str, ...]) -> dict[str, float]:
    return {d: float(len(order) - i) for i, d in enumerate(order)}


def numbered(values: list[Any]) -> dict[str, Any]:
    return {f"d{i}": value for i, value in enumerate(values)}


def test_values_by_hand():
    run = {"q": run_of(["d1", "d0", "d3", "d2", "d4"])}
    values = evaluate(run, QRELS)
    assert tuple(values) == MEASURES
    best3 = 7 + 3 / 1.584962500721156 + 1 / 2
    best10 = best3 + 1 / 2.321928094887362
    dcg3 = 7 / 1.584962500721156
    dcg10 = dcg3 + 1 / 2.321928094887362 + 3 / 2.584962500721156
    expected = {
        "ndcg@1": 0.0, "ndcg@3": dcg3 / best3, "ndcg@5": dcg10 / best10,
        "ndcg@10": dcg10 / best10, "mrr@10": 1 / 2,
        "map": (1 / 2 + 2 / 4 + 3 / 5) / 4, "p@1": 0.0, "p@10": 0.3,
        "recall@10": 0.75, "recall@100": 0.75,
    }  # fmt: skip
    assert values == pytest.approx(expected, abs=1e-12)


def test_cutoffs():
    order = [f"n{i}" for i in range(10)] + ["good"]
    run, qrels = {"q": run_of(order)}, {"q": {"good": 1}}
    # Reciprocal rank without a cutoff is not among the measures of titles.
    names = ("recall@100", "mrr", "mrr@10", "ndcg@10", "recall@10", "map")
    found = evaluate(run, qrels, names=names)
    assert tuple(found) == names
    values = (1, 1 / 11, 0, 0, 0, 1 / 11)
    assert tuple(found.values()) == pytest.approx(values)
    groups = tie_groups(run["q"], qrels["q"])
    tied = expected_measures(groups, [1])
    assert [tied["mrr"], tied["mrr@10"]] == [pytest.approx(1 / 11), 0]
    chance = random_order({"q": {"a": 1, "b": 0}}, {"q": 2}, names=("mrr",))
    assert chance == {"q": {"mrr": 0.75}}


def test_queries_that_count():
    qrels = {
        "found": {"a": 1}, "missed": {"a": 1}, "nothing": {"a": 1},
        "irrelevant": {"a": 0, "b": -1}, "unjudged": {},
    }  # fmt: skip
    run = {"found": {"a": 1.0}, "nothing": {}, "irrelevant": {"a": 1.0}}
    values = evaluate_queries(run, qrels)
    assert list(values) == ["found", "missed", "nothing"]
    for measure in ("map", "ndcg@3", "mrr@10"):
        assert [q[measure] for q in values.values()] == [1, 0, 0]
    assert all(set(q) == set(MEASURES) for q in values.values())
    assert mean(values)["mrr@10"] == pytest.approx(1 / 3)
    qrels = {"a": {"x": 1, "y": 0}, "b": {"x": 0}, "c": {"x": 1}}
    tied = expected_queries({"a": {"x": 1.0, "y": 1.0}}, qrels)
    assert {q: v["p@1"] for q, v in tied.items()} == {"a": 0.5, "c": 0.0}
    chance = random_order(qrels, {"a": 5, "b": 4, "c": 4})
    assert list(chance) == ["a", "c"]
    harmonic = [sum(1 / n for n in range(1, size + 1)) for size in (5, 4)]
    assert chance["a"]["mrr@10"] == pytest.approx(harmonic[0] / 5)
    assert chance["c"]["mrr@10"] == pytest.approx(harmonic[1] / 4)


@pytest.mark.parametrize(("use", "message"), [
    (lambda: evaluate({}, QRELS, min_relevant=0), "min_relevant is 0: exp"),
    (lambda: evaluate({}, QRELS, min_relevant=4), "no query has a relevan"),
    # Counts of clicks are not grades.
    (lambda: evaluate({}, {"q": {"a": 30, "b": 1}}),
     "query q, document a: found grad"),
    (lambda: random_order({"q": {"a": 30, "b": 1}}, {"q": 2}),
     "query q, document a: found grad"),
    (lambda: expected_queries({"q": {"d0": np.nan}}, QRELS),
     "query q: a score is not finite"),
])  # fmt: skip
def test_wrong_input(use, message):
    with pytest.raises(ValueError, match=message) as caught:
        use()
    assert isinstance(caught.value, InputError) or "finite" in message


@pytest.mark.parametrize(("scores", "precision", "reciprocal"), [
    ([0, 1, 2, 1, 0], 1, 1),
    ([3, 1, 2, 1, 0], 0, 1 / 2),
    ([7, 7, 7, 7, 7], 1 / 5, (1 + 1 / 2 + 1 / 3 + 1 / 4 + 1 / 5) / 5),
    ([2, 0, 2, 0, 0], 1 / 2, (1 + 1 / 2) / 2),
    ([3, 2, 2, 2, 0], 0, (1 / 2 + 1 / 3 + 1 / 4) / 3),
    ([1, 1, 0, 1, 0], 0, (1 / 4 + 1 / 5) / 2),
])  # fmt: skip
def test_tied_lists_by_hand(scores, precision, reciprocal):
    """The third of five titles answers the query."""
    judged = numbered([0, 0, 1, 0, 0])
    (found,) = expected_queries(
        {"q": numbered(scores)}, {"q": judged}, 1, LIST_MEASURES
    ).values()
    expected = {"p@1": precision, "mrr": reciprocal, "map": reciprocal}
    assert expected == pytest.approx(
        {name: found[name] for name in expected}, abs=1e-12
    )


def orders(scores: dict[str, float]) -> list[list[str]]:
    """Returns all rankings by score, with tied documents in each order."""
    groups: dict[float, list[str]] = {}
    for document_id, score in scores.items():
        groups.setdefault(score, []).append(document_id)
    parts = [permutations(groups[s]) for s in sorted(groups, reverse=True)]
    return [list(chain(*each)) for each in product(*map(list, parts))]


@pytest.mark.parametrize(("scores", "grades"), [
    ([1, 1, 1, 1, 1], [0, 0, 1, 0, 0]),
    ([3, 3, 2, 2, 2, 1], [0, 2, 1, 0, 3, 0]),
    ([3, 2, 2, 1, 1, 1], [0, 0, 1, 1, 0, 4]),
    ([5, 4, 4, 3], [1, 0, 2, 0]),
    ([2, 2, 1, 1], [0, 0, 0, 1]),
])  # fmt: skip
@pytest.mark.parametrize("min_relevant", [1, 2])
def test_tied_lists_are_the_mean_over_all_orders(scores, grades, min_relevant):
    if max(grades) < min_relevant:
        grades = [2 * grade for grade in grades]
    of_id, judged = numbered(scores), numbered(grades) | {"missed": 2}
    every = orders(of_id)
    assert len(every) > 1
    run = {f"q{number}": run_of(order) for number, order in enumerate(every)}
    enumerated = evaluate(run, dict.fromkeys(run, judged), min_relevant)
    found = expected_measures(
        tie_groups(of_id, judged), judged.values(), min_relevant
    )
    assert found.pop("mrr") == pytest.approx(enumerated["mrr@10"], abs=1e-12)
    assert found == pytest.approx(enumerated, abs=1e-9)


@pytest.mark.parametrize(("grades", "size", "min_relevant", "depth"), [
    ([1], 1, 1, None),
    ([3, 0], 2, 1, None),
    ([2, 2], 2, 1, None),
    ([4, 2, 1, 0, 0], 5, 1, None),
    ([4, 3, 1, 0, 0], 6, 3, None),
    ([2, 1], 6, 1, None),
    ([5, 1, 1], 6, 1, 2),
    ([1, 1, 1, 1, 1], 6, 1, 4),
])  # fmt: skip
def test_random_order_is_the_mean_over_all_orders(
    grades, size, min_relevant, depth
):
    judged, run = numbered(grades), {}
    for order in permutations(numbered([0] * size)):
        run[str(order)] = run_of(order[:depth])
    enumerated = evaluate(run, dict.fromkeys(run, judged), min_relevant)
    expected = random_order({"q": judged}, {"q": size}, min_relevant, depth)
    assert expected["q"] == pytest.approx(enumerated, abs=1e-9)


def test_random_order_equals_simulation_beyond_the_cutoffs():
    rng = np.random.default_rng(1)
    judged = numbered([4, 3, 2, 1, 0] * 3)
    ids = list(numbered([0] * 150))
    run = {
        f"q{number}": run_of(rng.permutation(ids)[:120].tolist())
        for number in range(1500)
    }
    simulated = evaluate(run, dict.fromkeys(run, judged))
    expected = random_order({"q": judged}, {"q": 150}, depth=120)["q"]
    assert expected == pytest.approx(simulated, abs=0.015)
    assert expected["recall@100"] == pytest.approx(100 / 150)
    assert expected["p@10"] == pytest.approx(12 / 150)


def test_a_long_tied_list_equals_simulation():
    rng = random.Random(0)
    scores = numbered([float(rng.randrange(4)) for _ in range(60)])
    grades = {d: int(rng.random() < 0.2) for d in scores}
    first, precision = [], []
    for _ in range(4000):
        order = sorted(scores, key=lambda d: (-scores[d], rng.random()))
        ranks = np.flatnonzero([grades[d] for d in order]) + 1
        first.append(1 / ranks[0])
        precision.append(np.mean(np.arange(1, len(ranks) + 1) / ranks))
    found = expected_measures(tie_groups(scores, grades), grades.values())
    assert found["mrr"] == pytest.approx(np.mean(first), abs=0.02)
    assert found["map"] == pytest.approx(np.mean(precision), abs=0.004)
