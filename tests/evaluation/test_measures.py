import random
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import MEASURES, evaluate_queries, mean
from keras_lstm_dssm.evaluation.measures import random_order
from keras_lstm_dssm.evaluation.runs import Qrels, Run, TieBreaker

# Grades of the ranked documents: d0 3, d1 0, d2 1, d3 unjudged, d4 2; d5
# has grade 1 and is not in the run.
QRELS = {"q": {"d0": 3, "d1": 0, "d2": 1, "d4": 2, "d5": 1}}


def evaluate(run: Run, qrels: Qrels, *options: Any, **named: Any) -> Any:
    return mean(evaluate_queries(run, qrels, *options, **named))


def run_of(order: list[str]) -> dict[str, float]:
    return {d: float(len(order) - i) for i, d in enumerate(order)}


def test_values_by_hand():
    run = {"q": run_of(["d1", "d0", "d3", "d2", "d4"])}
    values = evaluate(run, QRELS)
    assert tuple(values) == MEASURES
    best3 = 7 + 3 / 1.584962500721156 + 1 / 2
    best10 = best3 + 1 / 2.321928094887362
    dcg3 = 7 / 1.584962500721156
    dcg10 = dcg3 + 1 / 2.321928094887362 + 3 / 2.584962500721156
    assert values == pytest.approx(
        {
            "ndcg@1": 0.0,
            "ndcg@3": dcg3 / best3,
            "ndcg@5": dcg10 / best10,
            "ndcg@10": dcg10 / best10,
            "mrr@10": 1 / 2,
            "map": (1 / 2 + 2 / 4 + 3 / 5) / 4,
            "p@1": 0.0,
            "p@10": 0.3,
            "recall@10": 0.75,
            "recall@100": 0.75,
        },
        abs=1e-12,
    )


def test_min_relevant_moves_the_binary_measures():
    run = {"q": run_of(["d1", "d2", "d4", "d0"])}
    values = evaluate(run, QRELS, min_relevant=2)
    assert values["mrr@10"] == pytest.approx(1 / 3)
    assert values["recall@10"] == 1.0
    assert values["map"] == pytest.approx((1 / 3 + 2 / 4) / 2)
    assert values["ndcg@10"] == evaluate(run, QRELS)["ndcg@10"]


def test_cutoffs():
    order = [f"n{i}" for i in range(10)] + ["good"]
    values = evaluate({"q": run_of(order)}, {"q": {"good": 1}})
    assert values["mrr@10"] == values["ndcg@10"] == values["recall@10"] == 0
    assert values["map"] == pytest.approx(1 / 11)
    assert values["recall@100"] == 1


def test_named_measures():
    """Reciprocal rank without a cutoff is not among those of titles."""
    run = {"q": run_of([f"n{i}" for i in range(11)] + ["d0"])}
    names = ("recall@100", "mrr", "mrr@10")
    expected = {"recall@100": 0.25, "mrr": 1 / 12, "mrr@10": 0.0}
    found = evaluate(run, QRELS, names=names)
    assert tuple(found) == names
    assert found == pytest.approx(expected)
    chance = random_order({"q": {"a": 1, "b": 0}}, {"q": 2}, names=("mrr",))
    assert chance == {"q": {"mrr": 0.75}}


def ndcg_by_formula(ranked: list[str], judged: dict[str, int], k: int) -> float:
    """Burges et al. 2005: sum of (2^grade - 1) / log2(rank + 1), normalised."""
    discounts = 1 / np.log2(np.arange(2, k + 2))
    gains = [2.0 ** judged.get(d, 0) - 1 for d in ranked]
    best = sorted((2.0**g - 1 for g in judged.values()), reverse=True)
    dcg, best_dcg = (
        np.dot(values[:k], discounts[: len(values)]) for values in (gains, best)
    )
    return float(dcg / best_dcg)


def test_ndcg_equals_its_formula():
    rng = random.Random(0)
    ids = [f"d{i}" for i in range(30)]
    qrels = {
        f"q{q}": {d: rng.randrange(6) for d in rng.sample(ids, 20)} | {"d0": 5}
        for q in range(40)
    }
    run = {
        q: TieBreaker(ids).rank(q, [rng.randrange(4) for _ in ids], 25)
        for q in qrels
    }
    values = evaluate_queries(run, qrels)
    for query_id, ranked in run.items():
        for k in (1, 3, 5, 10):
            expected = ndcg_by_formula(list(ranked), qrels[query_id], k)
            found = values[query_id][f"ndcg@{k}"]
            assert found == pytest.approx(expected, abs=1e-14)


def test_click_counts_are_not_grades():
    for refusing in (
        lambda qrels: evaluate({}, qrels),
        lambda qrels: random_order(qrels, {"q": 2}),
    ):
        with pytest.raises(InputError, match="query q, document a: found grad"):
            refusing({"q": {"a": 30, "b": 1}})


def test_queries():
    qrels = {
        "found": {"a": 1},
        "missed": {"a": 1},
        "nothing": {"a": 1},
        "irrelevant": {"a": 0, "b": -1},
        "unjudged": {},
    }
    run = {"found": {"a": 1.0}, "nothing": {}, "irrelevant": {"a": 1.0}}
    values = evaluate_queries(run, qrels)
    assert list(values) == ["found", "missed", "nothing"]
    assert [q["map"] for q in values.values()] == [1, 0, 0]
    assert [q["ndcg@3"] for q in values.values()] == [1, 0, 0]
    assert all(set(q) == set(MEASURES) for q in values.values())
    assert evaluate(run, qrels)["mrr@10"] == pytest.approx(1 / 3)


def test_wrong_input():
    with pytest.raises(InputError, match="min_relevant is 0: expected 1"):
        evaluate({}, QRELS, min_relevant=0)
    with pytest.raises(InputError, match="no query has a relevant document"):
        evaluate({}, QRELS, min_relevant=4)


@pytest.mark.parametrize(
    ("grades", "size", "min_relevant", "depth"),
    [
        ([1], 1, 1, None),
        ([3, 0], 2, 1, None),
        ([2, 2], 2, 1, None),
        ([4, 2, 1, 0, 0], 5, 1, None),
        ([4, 3, 1, 0, 0], 6, 3, None),
        ([2, 1], 6, 1, None),
        ([5, 1, 1], 6, 1, 2),
        ([1, 1, 1, 1, 1], 6, 1, 4),
    ],
)
def test_random_order_is_the_mean_over_all_orders(
    grades, size, min_relevant, depth
):
    judged = {f"d{i}": grade for i, grade in enumerate(grades)}
    orders = list(permutations([f"d{i}" for i in range(size)]))
    run = {
        f"q{number}": {d: float(size - i) for i, d in enumerate(order[:depth])}
        for number, order in enumerate(orders)
    }
    enumerated = evaluate(run, dict.fromkeys(run, judged), min_relevant)
    expected = random_order({"q": judged}, {"q": size}, min_relevant, depth)
    assert expected["q"] == pytest.approx(enumerated, abs=1e-9)


def test_random_order_equals_simulation_beyond_the_cutoffs():
    rng = np.random.default_rng(1)
    judged = {f"d{i}": grade for i, grade in enumerate([4, 3, 2, 1, 0] * 3)}
    ids = np.array([f"d{i}" for i in range(150)])
    run = {
        f"q{number}": {
            d: 500.0 - i for i, d in enumerate(rng.permutation(ids)[:120])
        }
        for number in range(1500)
    }
    simulated = evaluate(run, dict.fromkeys(run, judged))
    expected = random_order({"q": judged}, {"q": 150}, depth=120)["q"]
    assert expected == pytest.approx(simulated, abs=0.015)
    assert expected["recall@100"] == pytest.approx(100 / 150)
    assert expected["p@10"] == pytest.approx(12 / 150)


def test_random_order_leaves_out_queries_without_a_relevant_document():
    qrels = {"a": {"d": 0}, "b": {"d": 1, "e": 0}}
    expected = random_order(qrels, {"a": 5, "b": 4})
    assert list(expected) == ["b"]
    assert mean(expected)["mrr@10"] == pytest.approx(
        (1 + 1 / 2 + 1 / 3 + 1 / 4) / 4
    )
