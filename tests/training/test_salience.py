"""Salient sentences against hand-made examples."""

import numpy as np
import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.training.salience import (
    SalienceCounts,
    agreement,
    largest_salient,
    salience_threshold,
    salient_sentences,
)

NO_SUMMARY = np.full(9, np.nan)


@pytest.mark.parametrize(
    ("sentences", "largest"),
    [(1, 1), (3, 1), (7, 1), (8, 2), (39, 9), (40, 10), (5000, 10)],
)
def test_the_largest_number(sentences, largest):
    assert largest_salient(sentences) == largest


@pytest.mark.parametrize(
    ("similarity", "theta", "positions"),
    [
        # K is 2 for 8 sentences.
        ([0.1, 0.9, 0.2, 0.8, 0.7, 0.1, 0.1, 0.1], 0.75, [1, 3]),
        ([0.1, 0.9, 0.2, 0.8, 0.7, 0.1, 0.1, 0.1], 0.5, [1, 3]),
        ([0.1, 0.9, 0.2, 0.8, 0.7, 0.1, 0.1, 0.1], 0.85, [1]),
        # The threshold itself is not above the threshold.
        ([0.1, 0.9, 0.2, 0.8, 0.7, 0.1, 0.1, 0.1], 0.8, [1]),
        # None above: the most similar one, the first of equal ones.
        ([0.1, 0.3, 0.2, 0.3], 0.5, [1]),
        ([0.0, 0.0, 0.0, 0.0], 0.5, [0]),
        # Of equal ones the earlier are chosen.
        ([0.1, 0.6, 0.6, 0.9, 0.6, 0.6, 0.1, 0.1], 0.5, [1, 3]),
        ([0.2], 0.5, [0]),
        ([-0.5, -0.2], -np.inf, [1]),
        # Without a summary: the first K.
        (NO_SUMMARY, 0.5, [0, 1]),
    ],
)
def test_hand_made_sets(similarity, theta, positions):
    salient = salient_sentences(np.array(similarity), theta)
    assert salient.dtype == bool and salient.shape == (len(similarity),)
    assert np.flatnonzero(salient).tolist() == positions


def test_half_of_the_documents_have_half_of_k():
    rng = np.random.default_rng(0)
    similarities = [
        np.round(rng.random(size), 5) for size in rng.integers(1, 80, 401)
    ]
    theta = salience_threshold([*similarities, NO_SUMMARY])
    halves = [-(-largest_salient(len(one)) // 2) for one in similarities]

    def share(threshold: float) -> float:
        above = [(one > threshold).sum() for one in similarities]
        return np.mean(np.array(above) >= halves)

    assert 0.5 <= share(theta) < 0.505 and share(theta + 2e-5) < 0.5
    # K is 10: the median of the fifth largest; 1 document has it.
    ranked = np.linspace(0.99, 0.6, 40)
    assert salience_threshold([ranked]) == pytest.approx(ranked[4] - 5e-6)
    assert salient_sentences(ranked, salience_threshold([ranked])).sum() == 5


def test_sentences_of_the_summary_itself_are_above_the_threshold():
    extractive = [np.array([1.0, 1, 1, 0.3, 0.2, 0.1, 0, 0])] * 3
    theta = salience_threshold(extractive)
    assert theta == 0.999995
    assert np.flatnonzero(salient_sentences(extractive[0], theta)).tolist() == [
        0, 1
    ]  # fmt: skip


def test_without_any_summary_there_is_no_threshold():
    with pytest.raises(InputError, match="no training document with a summary"):
        salience_threshold([NO_SUMMARY])


def test_counts():
    similarities = [
        np.array([0.9, 0.8, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]),  # both of 2
        np.array([0.9, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]),  # one of 2
        np.array([0.4, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]),  # none
        np.array([0.4, 0.3]),  # none, which is 1 of 1
        NO_SUMMARY,
    ]
    counts = SalienceCounts(0.5)
    for similarity in similarities:
        counts.add(similarity, salient_sentences(similarity, counts.theta))
    assert counts == SalienceCounts(
        0.5, documents=5, sentences=35, salient=7, none=2, full=3, no_summary=1
    )
    assert counts.describe() == (
        "salient: 20.0% of 35 sentences, theta 0.5; of 5 documents 40.0% have"
        " none above theta and keep their most similar sentence, 60.0% have"
        " the largest number; 1 without a summary: the first ones"
    )


def test_agreement_of_two_teachers():
    salient = [
        np.array([True, False, True, False]),
        np.array([False, False, True]),
    ]
    scores = [np.array([0.9, 0.5, 0.1, 0.1]), np.array([0.2, 0.2, 0.2])]
    precision, average_precision, base_rate = agreement(salient, scores)
    # Ranks of the salient ones: 1 and 3; 3, since the earlier come first.
    assert precision == (1 / 2 + 0) / 2
    assert average_precision == pytest.approx(((1 + 2 / 3) / 2 + 1 / 3) / 2)
    assert base_rate == pytest.approx((1 / 2 + 1 / 3) / 2)
    perfect = agreement(salient, [mark.astype(float) for mark in salient])
    assert perfect[:2] == (1, 1)
