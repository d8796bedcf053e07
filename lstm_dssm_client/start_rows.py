"""Initial values of a table's rows, those of the package's `HashedUniform`."""

from collections.abc import Callable
from typing import Any

import numpy as np

Shift = Callable[[Any, Any], Any]
"""Shifts numbers to the right: that of NumPy or, in a graph, of TensorFlow."""

START_BITS = 23
"""Initial values are k / 2^23 times the limit, with k an integer: all of them
are exact in float32."""

_BLOCK = 1 << 17
"""Numbers that are hashed at once: few enough for a processor's cache."""


def start_rows(numbers: Any, width: int, seed: int, limit: float) -> np.ndarray:
    """Computes initial values of rows, `[n, width]`, in [-limit, limit)."""
    numbers = np.asarray(numbers).astype(np.uint32)
    rows = np.empty((len(numbers), width), np.float32)
    step = max(1, _BLOCK // width)
    for first in range(0, len(numbers), step):
        block = numbers[first : first + step]
        keys = start_keys(block, width, seed, np.right_shift)
        hashed = mix(keys, np.right_shift) >> 8
        centred = hashed.astype(np.int32) - (1 << START_BITS)
        rows[first : first + step] = centred * start_unit(limit)
    return rows


def start_unit(limit: float) -> np.float32:
    """Returns the smallest difference of two initial values."""
    return np.float32(limit / (1 << START_BITS))


def start_keys(numbers: Any, width: int, seed: int, shift: Shift) -> Any:
    """Returns uint32 `[n, width]`, of which `mix` makes the rows' numbers.

    `numbers` are those of the rows, uint32 `[n]`.
    """
    mixed_seed = mix(np.array([seed], np.uint32), np.right_shift)
    columns = mix(np.arange(1, width + 1, dtype=np.uint32), np.right_shift)
    return mix(numbers ^ mixed_seed, shift)[:, np.newaxis] ^ columns


def mix(x: Any, shift: Shift) -> Any:
    """Hashes uint32 one to one ("lowbias32", C. Wellons 2018)."""
    x = x ^ shift(x, np.uint32(16))
    x = x * np.uint32(0x21F0AAAD)
    x = x ^ shift(x, np.uint32(15))
    x = x * np.uint32(0x735A2D97)
    return x ^ shift(x, np.uint32(15))
