import itertools
import math

import numpy as np
import pytest
from scipy import stats

from keras_lstm_dssm.evaluation import compare_systems
from keras_lstm_dssm.evaluation.significance import (
    holm,
    randomisation_test,
    spread_of,
)


def draw(queries: int, systems: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.2, 1.0, (queries, systems))


def test_few_queries_are_enumerated():
    differences = draw(9, 3)
    signs = np.array(list(itertools.product([1, -1], repeat=9)))
    sums = np.abs(signs @ differences)
    share = np.mean(sums >= np.abs(differences.sum(axis=0)) - 1e-12, axis=0)
    assert randomisation_test(differences) == pytest.approx(share, abs=1e-12)
    # The scale of the figures has no influence.
    tiny = randomisation_test(1e-20 * differences)
    assert tiny == pytest.approx(share, abs=1e-12)


def test_many_queries_are_sampled():
    differences = draw(200, 3, seed=2)
    p_values = randomisation_test(differences, 5_000)
    by_t_test = stats.ttest_1samp(differences, 0.0).pvalue
    assert p_values == pytest.approx(by_t_test, abs=0.02)
    assert (randomisation_test(differences, 5_000) == p_values).all()
    # An assignment that was not drawn is rare, not impossible.
    # 2^2000 is no float: SciPy 1.15 warned, and a warning fails a test.
    for queries in (200, 2000):
        assert randomisation_test(np.ones(queries), 999)[0] == 1 / 1000


def test_equal_systems_do_not_differ():
    assert randomisation_test(np.zeros((50, 2)), 99).tolist() == [1.0, 1.0]
    # Sums of such numbers depend on the order of the additions.
    values = np.array([0.1, 0.2, 0.3, -0.3, -0.2, -0.1])
    assert randomisation_test(values).tolist() == [1.0]


def test_holm():
    corrected = holm(np.array([0.01, 0.04, 0.03, 0.005, 0.9]))
    assert corrected == pytest.approx([0.04, 0.09, 0.09, 0.025, 0.9])


def test_systems_are_compared_with_references():
    values = np.random.default_rng(0).normal(size=(3, 12))
    names = ("bm25", "lsa", "mine")
    by_query = {
        name: {f"q{i}": float(v) for i, v in enumerate(row)}
        for name, row in zip(names, values, strict=True)
    }
    found = compare_systems(by_query, ["bm25", "mine"])
    assert {name: list(tests) for name, tests in found.items()} == {
        "bm25": ["mine"], "lsa": ["bm25", "mine"], "mine": ["bm25"],
    }  # fmt: skip
    differences = (values[1:] - values[0]).T
    p_values = randomisation_test(differences)
    for name, p, corrected, difference in zip(
        names[1:],
        p_values,
        holm(p_values),
        differences.mean(axis=0),
        strict=True,
    ):
        assert found[name]["bm25"] == pytest.approx(
            {"difference": difference, "p": p, "p_holm": corrected}
        )
    assert found["bm25"]["mine"]["p"] == found["mine"]["bm25"]["p"]
    assert compare_systems(by_query, []) == dict.fromkeys(names, {})


def test_the_interval_of_a_mean_over_queries():
    model = {"q": {"map": 1.0}, "r": {"map": 0.5}, "s": {"map": 0.0}}
    bm25 = {"q": {"map": 0.5}, "r": {"map": 0.0}, "s": {"map": 0.0}}
    # Standard deviation 1/2 of three values: the error is 0.5 / sqrt(3).
    half_width = round(1.959964 * 0.5 / math.sqrt(3), 6)
    assert spread_of(model)["map"] == [0.5, half_width]
    # Differences are paired. 0.5, 0.5, 0: their deviation is sqrt(1/12).
    half_width = round(1.959964 * math.sqrt(1 / 12 / 3), 6)
    assert spread_of(model, bm25)["map"] == [round(1 / 3, 6), half_width]
    assert spread_of({"q": {"map": 0.3}})["map"] == [0.3, 0.0]
    assert spread_of({}) == {}
