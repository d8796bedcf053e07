"""The interval of a mean over queries, against values by hand."""

import math

from keras_lstm_dssm.evaluation.significance import spread_of

MODEL = {"q": {"map": 1.0}, "r": {"map": 0.5}, "s": {"map": 0.0}}
BM25 = {"q": {"map": 0.5}, "r": {"map": 0.0}, "s": {"map": 0.0}}


def test_mean_and_half_width():
    # Standard deviation 1/2 of three values: the error is 0.5 / sqrt(3).
    (mean, half_width) = spread_of(MODEL)["map"]
    assert mean == 0.5
    assert half_width == round(1.959964 * 0.5 / math.sqrt(3), 6)


def test_differences_are_paired():
    mean, half_width = spread_of(MODEL, BM25)["map"]
    assert mean == round(1 / 3, 6)
    # 0.5, 0.5, 0: their deviation is sqrt(1/12).
    assert half_width == round(1.959964 * math.sqrt(1 / 12 / 3), 6)


def test_one_query_has_no_spread():
    assert spread_of({"q": {"map": 0.3}})["map"] == [0.3, 0.0]
    assert spread_of({}) == {}
