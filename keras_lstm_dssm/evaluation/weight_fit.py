"""Fits the weights of a mixture of scores, and calibrates scores."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_lstm_dssm.errors import InputError

L2 = 2e-4  # factor of the squared weights in the loss of `fit_weights`


class JudgedList(NamedTuple):
    """The candidates of a query, with their scores and their relevance."""

    parts: np.ndarray  # scores of the systems, float `[candidates, parts]`
    relevant: np.ndarray  # bool `[candidates]`


def fit_weights(lists: Sequence[JudgedList]) -> np.ndarray:
    """Fits weights of 0 or more that rank relevant candidates first.

    The score of a candidate is the weighted sum of the parts' scores. The loss
    of a query is the cross-entropy between the softmax of the candidates'
    scores and a uniform distribution over the relevant candidates. This is the
    loss of ListNet (Cao et al. 2007, see `choose_weights`). A list has no
    effect if all its candidates are relevant, or none is.
    """
    from scipy.optimize import minimize

    used = [judged for judged in lists if 0 < judged.relevant.mean() < 1]
    if not used:
        raise InputError(
            "found no query with a relevant and a non-relevant candidate:"
            " expected one or more such queries, to fit weights to"
        )
    parts = np.concatenate([judged.parts for judged in used], dtype=np.float64)
    sizes = [len(judged.relevant) for judged in used]
    first = np.cumsum([0, *sizes[:-1]])
    row = np.repeat(np.arange(len(used)), sizes)
    target = np.concatenate(
        [judged.relevant / judged.relevant.sum() for judged in used]
    )

    # `L2` stops the growth of weights that rank all lists perfectly.
    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        scores = parts @ weights
        scores -= np.maximum.reduceat(scores, first)[row]
        powers = np.exp(scores)
        totals = np.add.reduceat(powers, first)
        value = (np.log(totals).sum() - target @ scores) / len(used)
        error = (powers / totals[row] - target) / len(used)
        gradient = parts.T @ error + 2 * L2 * weights
        return value + L2 * weights @ weights, gradient

    start = np.zeros(parts.shape[1])
    bounds = [(0, None)] * len(start)
    fit = minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B")
    weights: np.ndarray = fit.x
    return weights


def calibrate(scores: np.ndarray, relevant: np.ndarray) -> tuple[float, float]:
    """Fits scale and base of P(relevant) = sigmoid(scale * score + base).

    `relevant`, bool `[n]`, must contain true and false. The scale is above 0.
    """
    from scipy.optimize import minimize

    # Targets slightly off 0 and 1 avoid overfitting (Platt 1999, "Probabilistic
    # Outputs for Support Vector Machines").
    count = relevant.sum()
    high, low = (count + 1) / (count + 2), 1 / (len(relevant) - count + 2)
    target = np.where(relevant, high, low)
    inputs = np.stack([scores, np.ones(len(scores))], axis=1).astype(np.float64)

    def loss(values: np.ndarray) -> tuple[float, np.ndarray]:
        log_odds = inputs @ values
        value = np.logaddexp(0, log_odds) - target * log_odds
        error = 1 / (1 + np.exp(-log_odds)) - target
        return value.mean(), inputs.T @ error / len(error)

    fit = minimize(
        loss,
        [1.0, -float(np.mean(scores))],
        jac=True,
        bounds=[(1e-6, None), (None, None)],
        method="L-BFGS-B",
    )
    return float(fit.x[0]), float(fit.x[1])


class Reliability(NamedTuple):
    """How well predicted probabilities agree with relevance."""

    error: float  # expected calibration error, from 0 to 1
    # For each bin with documents: the mean probability, the share of relevant
    # documents, and the number of documents.
    bins: list[tuple[float, float, int]]


def reliability(
    probabilities: np.ndarray, relevant: np.ndarray, bins: int = 10
) -> Reliability:
    """Compares probabilities with relevance, in bins of equal width."""
    bin_numbers = np.minimum((probabilities * bins).astype(int), bins - 1)
    rows = []
    for number in np.unique(bin_numbers):
        within = bin_numbers == number
        rows.append(
            (
                float(probabilities[within].mean()),
                float(relevant[within].mean()),
                int(within.sum()),
            )
        )
    # The expected calibration error of Guo et al. 2017, "On Calibration of
    # Modern Neural Networks", https://arxiv.org/abs/1706.04599.
    error = sum(size * abs(p - share) for p, share, size in rows)
    return Reliability(error / max(1, len(relevant)), rows)
