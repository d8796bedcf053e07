"""Weights of the parts of a score, fitted on judged lists, and probabilities.

`fit_weights` finds weights by a listwise loss, `calibrate` turns a score into
the log-odds that a document is relevant, and `reliability` checks them.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_lstm_dssm.errors import InputError

L2 = 2e-4
"""Regularisation of the weights: the factor of their squared differences."""


class JudgedList(NamedTuple):
    """The candidates of a query.

    Attributes:
        parts: The parts of their scores, float `[candidates, parts]`.
        relevant: Which candidates are relevant, bool `[candidates]`.
    """

    parts: np.ndarray
    relevant: np.ndarray


def fit_weights(lists: Sequence[JudgedList]) -> np.ndarray:
    """Fits weights of 0 or more, with which relevant candidates come first.

    The loss is the mean over queries of -log of the softmax of the weighted
    sums over the candidates, averaged over the relevant ones, plus `L2` times
    the sum of the squared weights. It is convex.

    Args:
        lists: The candidates of each query. Lists without a relevant
            candidate, or without another one, have no effect.

    Returns:
        The weights, float `[parts]`.

    Raises:
        InputError: No list has a relevant candidate and another one.

    Reference: Cao et al. 2007, "Learning to Rank: From Pairwise Approach to
        Listwise Approach" (ListNet), for the loss.

    Example:
    >>> parts = np.array([[1.0, 0.0], [0.0, 0.9], [0.5, 0.1]])
    >>> lists = [JudgedList(parts, np.array([True, False, False]))]
    >>> weights = fit_weights(lists)
    >>> bool(weights[0] > 1), bool(weights[1] < 0.01)
    (True, True)
    """
    from scipy.optimize import minimize

    used = [each for each in lists if 0 < each.relevant.mean() < 1]
    if not used:
        raise InputError(
            "found no query with a relevant document among others: expected"
            " some on dev, to fit weights to"
        )
    parts = np.concatenate([each.parts for each in used]).astype(np.float64)
    sizes = [len(each.relevant) for each in used]
    first = np.cumsum([0, *sizes[:-1]])
    row = np.repeat(np.arange(len(used)), sizes)
    target = np.concatenate(
        [each.relevant / each.relevant.sum() for each in used]
    )

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        scores = parts @ weights
        scores -= np.maximum.reduceat(scores, first)[row]
        powers = np.exp(scores)
        totals = np.add.reduceat(powers, first)
        value = (np.log(totals).sum() - target @ scores) / len(used)
        error = (powers / totals[row] - target) / len(used)
        gradient = parts.T @ error + 2 * L2 * weights
        return value + L2 * weights @ weights, gradient

    begin = np.zeros(parts.shape[1])
    bounds = [(0, None)] * len(begin)
    found = minimize(loss, begin, jac=True, bounds=bounds, method="L-BFGS-B")
    weights: np.ndarray = found.x
    return weights


def calibrate(scores: np.ndarray, relevant: np.ndarray) -> tuple[float, float]:
    """Fits a scale above 0 and a base, so that they give log-odds.

    P(relevant) is the sigmoid of scale * score + base, fitted by maximum
    likelihood to targets slightly off 0 and 1, as in Platt 1999,
    "Probabilistic Outputs for Support Vector Machines".

    Args:
        scores: Scores of documents, float `[n]`.
        relevant: Whether they are relevant, bool `[n]`; some are and some are
            not.

    Returns:
        The scale and the base.

    Example:
    >>> scores = np.array([0.0, 1.0, 2.0, 3.0])
    >>> scale, base = calibrate(scores, scores > 1.5)
    >>> round(-base / scale, 3)
    1.5
    """
    from scipy.optimize import minimize

    count = relevant.sum()
    high, low = (count + 1) / (count + 2), 1 / (len(relevant) - count + 2)
    target = np.where(relevant, high, low)
    inputs = np.stack([scores, np.ones(len(scores))], axis=1).astype(np.float64)

    def loss(values: np.ndarray) -> tuple[float, np.ndarray]:
        log_odds = inputs @ values
        value = np.logaddexp(0, log_odds) - target * log_odds
        error = 1 / (1 + np.exp(-log_odds)) - target
        return value.mean(), inputs.T @ error / len(error)

    found = minimize(
        loss,
        [1.0, -float(np.mean(scores))],
        jac=True,
        bounds=[(1e-6, None), (None, None)],
        method="L-BFGS-B",
    )
    return float(found.x[0]), float(found.x[1])


class Reliability(NamedTuple):
    """How well probabilities agree with what was relevant.

    Attributes:
        error: Expected calibration error, from 0 to 1: the mean over all
            documents of |mean probability - share of relevant| of their bin.
        bins: Mean probability, share of relevant ones and number of documents
            in each bin that has some.
    """

    error: float
    bins: list[tuple[float, float, int]]


def reliability(
    probabilities: np.ndarray, relevant: np.ndarray, bins: int = 10
) -> Reliability:
    """Compares probabilities with what was relevant, in bins of equal width.

    Reference: Guo et al. 2017, "On Calibration of Modern Neural Networks",
        https://arxiv.org/abs/1706.04599, for the expected calibration error.

    Example:
    >>> found = reliability(np.array([0.2, 0.25]), np.array([True, False]))
    >>> round(found.error, 3), found.bins
    (0.275, [(0.225, 0.5, 2)])
    """
    number = np.minimum((probabilities * bins).astype(int), bins - 1)
    rows = []
    for each in np.unique(number):
        within = number == each
        rows.append(
            (
                float(probabilities[within].mean()),
                float(relevant[within].mean()),
                int(within.sum()),
            )
        )
    error = sum(size * abs(p - share) for p, share, size in rows)
    return Reliability(error / max(1, len(relevant)), rows)
