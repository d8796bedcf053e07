import subprocess
import sys

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from keras_lstm_dssm.evaluation.runs import (
    TieBreaker,
    kth_largest,
    strictly_descending,
)
from tests.bare_package import BARE_PACKAGE

TINY = float(np.finfo(np.float32).tiny)
SCORES = st.lists(
    st.sampled_from([-2.0, -TINY, -0.0, 0.0, 1e-40, TINY, 0.5, 1.0])
    | st.floats(-(2.0**99), 2.0**99, width=32),
    min_size=1,
    max_size=20,
)


@given(SCORES)
@example([0.0] * 4)
@example([TINY, TINY, 0.0, -0.0, -TINY, -TINY])
def test_strictly_descending(values):
    scores = np.sort(np.array(values, np.float32))[::-1]
    strict = strictly_descending(scores)
    assert strict.dtype == np.float32
    assert (np.diff(strict.astype(np.float64)) < 0).all()
    # No subnormal numbers: some readers take them for zero.
    assert ((strict == 0) | (np.abs(strict) >= TINY)).all()
    normal = (np.abs(scores) >= TINY) | (scores == 0)
    if len(set(scores)) == len(scores) and normal.all():
        np.testing.assert_array_equal(strict, scores)


def test_strictly_descending_moves_by_single_steps():
    below = np.nextafter(np.float32(1), np.float32(0))
    lower = np.nextafter(below, np.float32(0))
    scores = np.array([1, 1, below, 0.5], np.float32)
    assert strictly_descending(scores).tolist() == [1, below, lower, 0.5]


@given(SCORES, st.randoms(), st.integers(1, 25))
def test_no_order_of_the_input_helps(values, random, depth):
    scores = {f"d{i}": score for i, score in enumerate(values)}
    shuffled = list(scores)
    random.shuffle(shuffled)
    ranked = TieBreaker(list(scores)).rank("q", values)
    again = TieBreaker(shuffled).rank("q", [scores[i] for i in shuffled], depth)
    assert list(ranked.items())[:depth] == list(again.items())
    single = {i: np.float32(score) for i, score in scores.items()}
    order = [single[i] for i in ranked]
    assert order == sorted(order, reverse=True)


def test_ties_have_one_fixed_order_for_each_query():
    ids = [f"d{i}" for i in range(6)]
    orders = [[*TieBreaker(ids).rank(q, [0.0] * 6)] for q in ("q1", "q2", "é")]
    assert [" ".join(order) for order in orders] == [
        "d5 d4 d3 d0 d1 d2",
        "d3 d0 d1 d4 d5 d2",
        "d0 d4 d3 d5 d2 d1",
    ]


def test_ties_are_fair():
    ranker = TieBreaker([f"d{i}" for i in range(4)])
    first = [next(iter(ranker.rank(f"q{i}", [1.0] * 4))) for i in range(4000)]
    counts = [first.count(f"d{i}") for i in range(4)]
    assert all(abs(count - 1000) < 110 for count in counts), counts


def test_positions_name_the_documents():
    ranked = TieBreaker(["a", "b", "c"]).rank(
        "q", [1.0, 2.0], positions=np.array([2, 0])
    )
    assert ranked == {"a": 2.0, "c": 1.0}
    assert list(ranked) == ["a", "c"]
    empty = TieBreaker(["a"]).rank("q", [], 5, np.array([], np.intp))
    assert empty == {}


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_scores_must_be_finite(bad):
    with pytest.raises(ValueError, match="query q7: a score is not finite"):
        TieBreaker(["a", "b"]).rank("q7", [0.0, bad])


def test_importing_evaluation_is_cheap():
    code = """
import keras_lstm_dssm.evaluation
heavy = {"bm25s", "ir_measures", "tensorflow", "keras"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", BARE_PACKAGE + code], check=True)


@pytest.mark.parametrize(("n", "k"), [(3, 5), (50, 7), (6403, 100), (20000, 3)])
def test_kth_largest(n, k):
    """Groups of many scores are compared first."""
    random = np.random.default_rng(n)
    for scores in (random.normal(size=n), random.integers(0, 9, n)):
        scores = scores.astype(np.float32)
        scores[random.integers(0, n, n // 3)] = -np.inf
        expected = -np.inf if k >= n else np.sort(scores)[-k]
        assert kth_largest(scores, k) == expected
        assert kth_largest(scores, None) == -np.inf
    scores[2:] = -np.inf
    assert kth_largest(scores, k) == -np.inf
