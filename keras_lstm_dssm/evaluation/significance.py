"""Computes confidence intervals of means, and tests differences of systems."""

from collections.abc import Mapping, Sequence

import numpy as np

_NORMAL_95 = 1.959964  # half width of a 95 % interval, in standard errors


def spread_of(
    values: Mapping[str, Mapping[str, float]],
    reference: Mapping[str, Mapping[str, float]] | None = None,
) -> dict[str, list[float]]:
    """Returns measure -> [mean over queries, half width of 95 % interval].

    If `reference` is given, its values are subtracted first. The interval does
    not cover the variation between seeds of training.
    """
    spreads = {}
    for measure in next(iter(values.values()), {}):
        column = np.array(
            [
                by_measure[measure]
                - (reference[query][measure] if reference else 0.0)
                for query, by_measure in values.items()
            ]
        )
        error = 0.0
        if len(column) > 1:
            error = column.std(ddof=1) / np.sqrt(len(column))
        mean_and_half_width = float(column.mean()), float(_NORMAL_95 * error)
        spreads[measure] = [round(number, 6) for number in mean_and_half_width]
    return spreads


_SIGNS = 2**20  # number of random signs in memory at once


def randomisation_test(
    differences: np.ndarray,  # float `[queries, systems]` or `[queries]`
    resamples: int = 100_000,
    seed: int = 0,
) -> np.ndarray:
    """Tests if mean differences are 0; returns p-values, float `[systems]`.

    The test is two-sided (Smucker et al. 2007), see `compare_systems`.
    """
    from scipy import stats

    differences = np.asarray(differences, np.float64)
    differences = differences.reshape(len(differences), -1)
    scale = np.abs(differences).max(axis=0, initial=0)
    differences = differences / np.where(scale > 0, scale, 1)

    def absolute_sums(signs: np.ndarray, axis: int) -> np.ndarray:
        # Sums that differ only by floating-point error are equal when rounded.
        return np.round(np.abs(signs @ differences), 9)

    # SciPy flips the signs of an array of ones; `absolute_sums` applies the
    # signs to the differences of all systems.
    # SciPy 1.15, the last version for Python 3.10, computes 2^n, the number of
    # sign patterns of n queries. For large n, 2^n overflows, with a warning.
    with np.errstate(over="ignore"):
        return stats.permutation_test(
            (np.ones(len(differences)),),
            absolute_sums,
            permutation_type="samples",
            vectorized=True,
            n_resamples=resamples,
            batch=max(1, _SIGNS // max(1, len(differences))),
            alternative="greater",
            rng=np.random.default_rng(seed),
        ).pvalue


def holm(p_values: np.ndarray) -> np.ndarray:
    """Corrects p-values to bound the family-wise error rate (Holm 1979)."""
    order = np.argsort(p_values, kind="stable")
    factors = len(order) - np.arange(len(order))
    adjusted = np.empty(len(order))
    adjusted[order] = np.maximum.accumulate(p_values[order] * factors)
    return np.minimum(adjusted, 1)


def compare_systems(
    values: Mapping[str, Mapping[str, float]], references: Sequence[str]
) -> dict[str, dict[str, dict[str, float]]]:
    """Tests whether systems differ significantly from reference systems.

    Args:
        values: System -> query id -> value of one measure; all systems have
            the same queries.
        references: Names of the systems that other systems are compared with.

    Returns:
        System -> reference -> `difference`, the system's mean value minus the
        reference's; `p` of a two-sided randomisation test; and `p_holm`, which
        is p corrected for the number of systems compared with the reference.
        The test gives the difference of each query a random sign. p is the
        probability that the mean is then at least as far from zero as
        `difference`. p is exact if there are at most 100,000 assignments of
        signs. Otherwise p is estimated from 100,000 random assignments and the
        observed assignment.

    Reference: Smucker, Allan and Carterette 2007, "A Comparison of
        Statistical Significance Tests for Information Retrieval Evaluation";
        Holm 1979, "A Simple Sequentially Rejective Multiple Test Procedure".

    Example:
    >>> values = {"bm25": {"q": 0.5, "r": 1.0}, "mine": {"q": 1.0, "r": 1.0}}
    >>> compare_systems(values, ["bm25"])["mine"]["bm25"]["difference"]
    0.25
    """
    pairs = [
        (name, reference)
        for reference in references
        for name in values
        if name != reference
    ]
    tests: dict[str, dict[str, dict[str, float]]] = {n: {} for n in values}
    if not pairs:
        return tests
    differences = np.array(
        [
            [values[name][query] - values[ref][query] for name, ref in pairs]
            for query in values[pairs[0][1]]
        ]
    )
    by_reference = randomisation_test(differences).reshape(len(references), -1)
    for (name, reference), difference, p, corrected in zip(
        pairs,
        differences.mean(axis=0).tolist(),
        by_reference.ravel().tolist(),
        np.concatenate([holm(p) for p in by_reference]).tolist(),
        strict=True,
    ):
        tests[name][reference] = {
            "difference": difference,
            "p": p,
            "p_holm": corrected,
        }
    return tests
