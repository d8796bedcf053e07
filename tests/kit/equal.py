"""Comparisons of the weights of models."""

from typing import Any

import numpy as np


def check_equal(one: Any, other: Any, atol: float = 0.0) -> None:
    """Asserts that models, layers or lists of arrays have the same values."""
    values = [
        x.get_weights() if hasattr(x, "get_weights") else x
        for x in (one, other)
    ]
    for a, b in zip(*values, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=atol)
