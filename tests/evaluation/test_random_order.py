from itertools import permutations

import pytest

from keras_lstm_dssm.evaluation import evaluate, random_order
from keras_lstm_dssm.evaluation.measures import mean


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
def test_equals_the_mean_over_all_orders(
    grades: list[int], size: int, min_relevant: int, depth: int | None
) -> None:
    judged = {f"d{i}": grade for i, grade in enumerate(grades)}
    orders = list(permutations([f"d{i}" for i in range(size)]))
    run = {
        f"q{number}": {d: float(size - i) for i, d in enumerate(order[:depth])}
        for number, order in enumerate(orders)
    }
    enumerated = evaluate(run, dict.fromkeys(run, judged), min_relevant)
    expected = random_order({"q": judged}, {"q": size}, min_relevant, depth)
    assert expected["q"] == pytest.approx(enumerated, abs=1e-9)


def test_equals_simulation_beyond_the_cutoffs() -> None:
    import numpy as np

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


def test_queries_without_a_relevant_document_are_left_out() -> None:
    qrels = {"a": {"d": 0}, "b": {"d": 1, "e": 0}}
    expected = random_order(qrels, {"a": 5, "b": 4})
    assert list(expected) == ["b"]
    assert mean(expected)["mrr@10"] == pytest.approx(
        (1 + 1 / 2 + 1 / 3 + 1 / 4) / 4
    )
