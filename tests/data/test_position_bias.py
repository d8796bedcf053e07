"""The share of users who look at a position."""

import re

import numpy as np
import pytest
from scipy.optimize import minimize

from keras_lstm_dssm.data import position_bias as module
from keras_lstm_dssm.data.click_pages import Page
from keras_lstm_dssm.data.position_bias import position_bias
from tests.data.pages import simulated

SHARES = np.array([1.0, 0.7, 0.5, 0.35, 0.25])


def test_shares_are_those_of_the_model_and_of_its_likelihood():
    """By scipy, the most likely shares with a relevance for each title."""
    pages = simulated(60_000, SHARES, queries=40)
    found = position_bias(pages)
    shares = np.array(list(found.shares.values()))
    np.testing.assert_allclose(shares, SHARES, rtol=0.05)
    assert 0 < found.errors[5] < 0.05 and found.reason is None
    shown, clicked = np.zeros((2, 40, 5, 5))
    for page in pages:
        query = int(page.query.split()[1])
        for place, (title, click) in enumerate(
            zip(page.titles, page.weights, strict=True)
        ):
            shown[query, int(title.split()[1]), place] += 1
            clicked[query, int(title.split()[1]), place] += click

    def cost(logits: np.ndarray) -> tuple[float, np.ndarray]:
        """-log likelihood of p_k r, both sigmoids, and its gradient."""
        sigmoid = 1 / (1 + np.exp(-logits))
        p, r = sigmoid[:5], sigmoid[5:].reshape(40, 5, 1)
        rate = p * r
        value = clicked * np.log(rate) + (shown - clicked) * np.log1p(-rate)
        slope = clicked - (shown - clicked) * rate / (1 - rate)
        of_p = (slope * (1 - p)).sum(axis=(0, 1))
        of_r = (slope * (1 - r)).sum(axis=2).reshape(-1)
        return -value.sum(), -np.concatenate([of_p, of_r])

    start = np.concatenate([np.full(5, 2.0), np.zeros(200)])
    best = minimize(cost, start, jac=True, method="L-BFGS-B").x[:5]
    oracle = 1 / (1 + np.exp(-best))
    np.testing.assert_allclose(shares, oracle / oracle[0], rtol=0.03)
    assert found.weights()[5] == pytest.approx(shares[4])
    rare = found._replace(shares={1: 1.0, 2: 0.001})
    assert rare.weights() == {1: 1.0, 2: 0.1}


@pytest.mark.parametrize(("pages", "reason"), [
    ([], "no click has a position"),
    ([Page("a", ["b"], [1.0], [0])], "no click has a position"),
    (simulated(2000, SHARES, moved=False), "no title was shown at two"),
    (simulated(200, SHARES), "only: too few clicks|are not joined"),
    (simulated(3000, SHARES, queries=1), "found 1 queries, expected 16"),
    # Titles move within the first three places, and within the others.
    ([
        Page(p.query, p.titles[:3] if n % 2 else p.titles[3:],
             p.weights[:3] if n % 2 else p.weights[3:],
             p.positions[:3] if n % 2 else p.positions[3:])
        for n, p in enumerate(simulated(4000, SHARES, queries=1))
    ], "are not joined"),
])  # fmt: skip
def test_no_estimate_is_better_than_a_wrong_one(pages, reason):
    if reason == "are not joined":  # no title in both parts
        pages = [
            page._replace(titles=[f"{t} {page.positions[0]}" for t in
                                  page.titles])
            for page in pages
        ]  # fmt: skip
    found = position_bias(pages)
    assert found.shares == {} == found.weights()
    assert re.search(reason, found.reason or "")
    assert "not estimated" in found.describe()


def test_errors_are_half_of_95_percent_intervals(monkeypatch):
    monkeypatch.setattr(module, "LARGEST_ERROR", 9)
    covered = []
    for seed in range(25):
        found = position_bias(simulated(3000, SHARES, queries=200, seed=seed))
        wrong = np.log(list(found.shares.values()) / SHARES)
        covered.append(np.abs(wrong) <= list(found.errors.values()))
    # Of 100 intervals; the first share is 1 by definition.
    assert 0.9 <= np.mean(covered, axis=0)[1:].mean() <= 0.99


def test_a_part_of_the_queries_is_used_of_a_large_log(monkeypatch):
    monkeypatch.setattr(module, "LARGEST_ERROR", 1)
    pages = simulated(20_000, SHARES)
    whole = position_bias(pages)
    monkeypatch.setattr("keras_lstm_dssm.data.position_bias._MOST_ROWS", 70_000)
    monkeypatch.setattr("keras_lstm_dssm.data.position_bias._AT_ONCE", 100)
    part = position_bias(pages)
    assert part.shares != whole.shares
    assert part.errors[5] > whole.errors[5]
    np.testing.assert_allclose(list(part.shares.values()), SHARES, rtol=0.1)
