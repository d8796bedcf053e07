"""Whether two systems differ by more than the choice of queries explains."""

import itertools
from collections.abc import Iterator

import numpy as np

_BATCH = 1000


def randomisation_test(
    differences: np.ndarray, resamples: int = 100_000, seed: int = 0
) -> np.ndarray:
    """Tests whether paired differences have mean zero, two-sided.

    Were two systems equal, each query's difference could as well have the
    other sign (Fisher's randomisation test): p is the share of the signings
    whose mean is at least as far from zero as the one found. All signings
    are taken where there are no more than `resamples` of them; else p is
    (1 + those found) / (1 + resamples), which never is 0.

    Args:
        differences: `[queries, systems]`, or `[queries]` for one system.
        resamples: Random signings; the same for all systems.
        seed: Of the signings.

    Returns:
        float64 `[systems]`: the p-values. Many of them want `holm`.

    Reference: Smucker, Allan and Carterette 2007, "A Comparison of
        Statistical Significance Tests for Information Retrieval Evaluation".

    Example:
    >>> randomisation_test(np.array([0.5, 0.25, 0.5])).tolist()
    [0.25]
    """
    differences = np.asarray(differences, np.float64)
    differences = differences.reshape(len(differences), -1)
    # Sums that rounding alone makes differ must count as equal.
    rounding = 1e-12 * np.abs(differences).sum(axis=0)
    found = np.abs(differences.sum(axis=0)) - rounding
    exact = 2 ** len(differences) <= resamples
    signings = (
        _all_signs(len(differences))
        if exact
        else _random_signs(len(differences), resamples, seed)
    )
    extreme = np.zeros(differences.shape[1])
    total = 0
    for signs in signings:
        extreme += (np.abs(signs @ differences) >= found).sum(axis=0)
        total += len(signs)
    return extreme / total if exact else (1 + extreme) / (1 + total)


def holm(p_values: np.ndarray) -> np.ndarray:
    """Corrects p-values for the number of tests (Holm 1979).

    Args:
        p_values: `[tests]`.

    Returns:
        `[tests]`: each may be compared with the level wanted for all.

    Example:
    >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    factors = len(order) - np.arange(len(order))
    adjusted = np.empty(len(order))
    adjusted[order] = np.maximum.accumulate(p_values[order] * factors)
    return np.minimum(adjusted, 1)


def _all_signs(count: int) -> Iterator[np.ndarray]:
    yield np.array(list(itertools.product((1.0, -1.0), repeat=count)))


def _random_signs(
    count: int, resamples: int, seed: int
) -> Iterator[np.ndarray]:
    draw = np.random.default_rng(seed)
    for start in range(0, resamples, _BATCH):
        size = (min(_BATCH, resamples - start), count)
        yield 1.0 - 2 * draw.integers(0, 2, size, np.int8)
