"""How sure a mean over queries is, alone and as a difference."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

_NORMAL_95 = 1.959964
"""Half the width of the central 95 % of a normal distribution, in sigmas."""


class Spread(NamedTuple):
    """A mean over queries, with its 95 % interval.

    Attributes:
        mean: The mean.
        half_width: Half the width of the interval: 1.96 standard errors of
            the mean (normal approximation); 0 for one query.
    """

    mean: float
    half_width: float


def spread_of(
    values: Mapping[str, Mapping[str, float]],
    reference: Mapping[str, Mapping[str, float]] | None = None,
) -> dict[str, Spread]:
    """Returns mean and interval of each measure over queries.

    The interval says how much the mean would vary with other queries of the
    same kind. It does not cover other seeds of a training.

    Args:
        values: Query id -> measure -> value, of one system.
        reference: The same of another system, for its paired differences
            `values - reference`; `None` for the values themselves.

    Returns:
        Measure -> `Spread`.

    Example:
    >>> of_queries = {"q": {"map": 0.5}, "r": {"map": 0.5}}
    >>> spread_of(of_queries)["map"]
    Spread(mean=0.5, half_width=0.0)
    """
    spreads = {}
    for measure in next(iter(values.values()), {}):
        column = np.array(
            [
                of_query[measure]
                - (reference[query][measure] if reference else 0.0)
                for query, of_query in values.items()
            ]
        )
        error = 0.0
        if len(column) > 1:
            error = column.std(ddof=1) / np.sqrt(len(column))
        half_width = round(float(_NORMAL_95 * error), 6)
        spreads[measure] = Spread(round(float(column.mean()), 6), half_width)
    return spreads


def as_json(spreads: Mapping[str, Spread]) -> dict[str, Any]:
    """Returns spreads as lists, for a JSON file."""
    return {measure: list(spread) for measure, spread in spreads.items()}
