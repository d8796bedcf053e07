"""Measures in expectation over ties, by enumeration of all orders."""

import itertools
import random

import numpy as np
import pytest

from keras_lstm_dssm.evaluation.measures import (
    evaluate_queries,
    expected_measures,
    mean,
    tie_groups,
)


def orders(scores: dict[str, float]) -> list[list[str]]:
    """Returns all rankings by score, with tied documents in each order."""
    groups: dict[float, list[str]] = {}
    for document_id, score in scores.items():
        groups.setdefault(score, []).append(document_id)
    return [
        list(itertools.chain(*parts))
        for parts in itertools.product(
            *(
                list(itertools.permutations(groups[score]))
                for score in sorted(groups, reverse=True)
            )
        )
    ]


@pytest.mark.parametrize(
    ("scores", "grades"),
    [
        ([1, 1, 1, 1, 1], [0, 0, 1, 0, 0]),
        ([3, 3, 2, 2, 2, 1], [0, 2, 1, 0, 3, 0]),
        ([3, 2, 2, 1, 1, 1], [0, 0, 1, 1, 0, 4]),
        ([5, 4, 4, 3], [1, 0, 2, 0]),
        ([2, 2, 1, 1], [0, 0, 0, 1]),
    ],
)
@pytest.mark.parametrize("min_relevant", [1, 2])
def test_equals_the_mean_over_all_orders(scores, grades, min_relevant):
    if max(grades) < min_relevant:
        grades = [2 * grade for grade in grades]
    ids = [f"d{i}" for i in range(len(scores))]
    of_id = dict(zip(ids, map(float, scores), strict=True))
    judged = dict(zip(ids, grades, strict=True)) | {"missed": 2}
    every = orders(of_id)
    run = {
        f"q{number}": {d: float(-rank) for rank, d in enumerate(order)}
        for number, order in enumerate(every)
    }
    enumerated = mean(
        evaluate_queries(run, dict.fromkeys(run, judged), min_relevant)
    )
    found = expected_measures(
        tie_groups(of_id, judged), judged.values(), min_relevant
    )
    assert len(every) > 1
    assert found.pop("mrr") == pytest.approx(enumerated["mrr@10"], abs=1e-12)
    assert found == pytest.approx(enumerated, abs=1e-9)


def test_mrr_has_no_cutoff():
    scores = {f"d{i}": -float(i) for i in range(12)}
    found = expected_measures(tie_groups(scores, {"d11": 1}), [1])
    assert found["mrr"] == pytest.approx(1 / 12)
    assert found["mrr@10"] == 0


def test_a_long_list_equals_simulation():
    rng = random.Random(0)
    ids = [f"d{i}" for i in range(60)]
    scores = {d: float(rng.randrange(4)) for d in ids}
    grades = {d: int(rng.random() < 0.2) for d in ids}
    first, precision = [], []
    for _ in range(4000):
        order = sorted(ids, key=lambda d: (-scores[d], rng.random()))
        hits = np.array([grades[d] for d in order])
        ranks = np.flatnonzero(hits) + 1
        first.append(1 / ranks[0])
        precision.append(np.mean(np.arange(1, len(ranks) + 1) / ranks))
    found = expected_measures(tie_groups(scores, grades), grades.values())
    assert found["mrr"] == pytest.approx(np.mean(first), abs=0.02)
    assert found["map"] == pytest.approx(np.mean(precision), abs=0.004)
