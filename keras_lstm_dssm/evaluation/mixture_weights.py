"""The weights of a mixture, and the sum that they stand for."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from keras_lstm_dssm.errors import InputError


def weighted_sum(
    weights: Sequence[float], scores: Sequence[np.ndarray]
) -> np.ndarray:
    """Returns sum_i w_i s_i of float32 arrays of one shape, as float32.

    All mixtures are summed by this function, so that equal scores are equal
    bit for bit in reranking, in search and in the choice of weights.
    """
    total = np.zeros_like(scores[0])
    for weight, of_part in zip(weights, scores, strict=True):
        total += np.float32(weight) * of_part
    return total


def mixture_weights(
    names: Sequence[str],
    weights: Mapping[str, float] | Sequence[float] | None = None,
) -> dict[str, float]:
    """Returns the weights of a mixture's parts, scaled to a sum of 1.

    Args:
        names: The names of the parts.
        weights: See `Mixture`.

    Raises:
        InputError: There is no part; the weights are not one for each part,
            numbers of 0 or more, and one above 0.

    Example:
    >>> mixture_weights(["best", "bm25"], [3, 1])
    {'best': 0.75, 'bm25': 0.25}
    """
    if not names:
        raise InputError("found no part of a mixture: expected one or more")
    if weights is None:
        weights = [1.0] * len(names)
    if not isinstance(weights, Mapping):
        if len(weights) != len(names):
            raise InputError(
                f"found {len(weights)} weights of a mixture, expected"
                f" {len(names)}, for {', '.join(names)}"
            )
        weights = dict(zip(names, weights, strict=True))
    if set(weights) != set(names):
        raise InputError(
            f"found weights of {', '.join(map(str, weights))}, expected those"
            f" of the parts of the mixture, {', '.join(names)}"
        )
    for name, weight in weights.items():
        if not (math.isfinite(weight) and weight >= 0):
            raise InputError(
                f"the weight of {name!r} in the mixture is {weight}: expected"
                " a number of 0 or more"
            )
    total = math.fsum(weights.values())
    if not total:
        raise InputError(
            "all weights of the mixture are 0: expected one or more above 0"
        )
    return {name: float(weights[name] / total) for name in names}
