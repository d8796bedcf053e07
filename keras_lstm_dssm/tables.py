"""Computes initial values of large tables, and stores the changed rows.

Most rows of a trigram table keep their initial values, which can be computed
from a seed (`HashedUniform`). If at most half of the rows have changed, files
hold only the changed rows (`write_table`).
"""

import random
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.registration import register
from lstm_dssm_client.portable_file import (
    START_BITS,
    mix,
    start_keys,
    start_rows,
    start_unit,
)


@register
class HashedUniform(keras.initializers.Initializer):
    """Initializes a table with numbers that are uniform in [-limit, limit)."""

    # Each number is a hash of seed, row and column. Therefore any row can be
    # computed alone, with equal bits in NumPy and in TensorFlow (`graph_rows`).
    def __init__(self, limit: float = 0.05, seed: int | None = None) -> None:
        self.limit = limit  # Palangi et al. 2016 give no limit
        self.seed = random.randint(1, 10**9) if seed is None else seed

    def __call__(
        self, shape: Any, dtype: Any = None, **kwargs: Any
    ) -> tf.Tensor:
        """Returns the initial values of a table of shape `(rows, width)`."""
        return tf.constant(
            self.rows(np.arange(shape[0]), shape[1]),
            keras.backend.standardize_dtype(dtype),
        )

    def rows(self, numbers: Any, width: int) -> np.ndarray:
        """Returns the rows with the indices `numbers`, float32 `[n, width]`."""
        return start_rows(numbers, width, self.seed, self.limit)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor arguments as a dict, for `from_config`."""
        return {"limit": self.limit, "seed": self.seed}


def graph_rows(
    numbers: tf.Tensor, starts: Sequence[HashedUniform], widths: Sequence[int]
) -> list[tf.Tensor]:
    """Computes the initial values of the rows `numbers` of each table.

    Returns float32 `[n, width]` for each table.
    """
    shift = tf.bitwise.right_shift
    numbers = tf.cast(numbers, tf.uint32)
    keys = [
        start_keys(numbers, width, start.seed, shift)
        for start, width in zip(starts, widths, strict=True)
    ]
    hashed = shift(mix(tf.concat(keys, axis=1), shift), np.uint32(8))
    centred = tf.cast(tf.cast(hashed, tf.int32) - (1 << START_BITS), tf.float32)
    return [
        values * start_unit(start.limit)
        for values, start in zip(
            tf.split(centred, list(widths), axis=1), starts, strict=True
        )
    ]


def changed_rows(table: np.ndarray, start: np.ndarray | float) -> np.ndarray:
    """Returns the indices of the rows that differ from `start` in any bit."""
    start = np.broadcast_to(np.asarray(start, table.dtype), table.shape)
    bits = f"u{table.dtype.itemsize}"
    differ = table.view(bits) != np.ascontiguousarray(start).view(bits)
    return np.flatnonzero(differ.reshape(len(table), -1).any(axis=1))


def write_table(
    store: Any,
    key: str,
    table: np.ndarray,
    start: np.ndarray | float,  # the initial values
) -> bool:
    """Writes the changed rows, or the whole table if most rows have changed.

    Returns `True` if only changed rows are written.
    """
    rows = changed_rows(table, start)
    if 2 * len(rows) > len(table):
        store[key] = table
        return False
    store[f"{key}_rows"] = rows.astype(np.int32)
    store[f"{key}_values"] = table[rows]
    if np.ndim(start) == 0 and start != 0:
        store[f"{key}_start"] = np.asarray(start, table.dtype)
    return True


def read_table(
    store: Any, key: str, shape: Any, start: np.ndarray | None = None
) -> np.ndarray:
    """Reads a table of `write_table`; an array `start` must be given again."""
    if key in store.keys():
        return np.asarray(store[key])
    rows = np.asarray(store[f"{key}_rows"])
    values = np.asarray(store[f"{key}_values"])
    bad = rows[(rows < 0) | (rows >= shape[0])]
    if len(bad) or values.shape != (len(rows), *shape[1:]):
        outside = f" and the index {bad[0]}" if len(bad) else ""
        raise ValueError(
            f"{key}: found {len(rows)} rows, values of shape {values.shape}"
            f"{outside}, expected rows of a table {tuple(shape)}"
        )
    if start is None:
        is_stored = f"{key}_start" in store.keys()
        number = np.asarray(store[f"{key}_start"]) if is_stored else 0
        start = np.full(shape, number, values.dtype)
    table = start.astype(values.dtype)
    table[rows] = values
    return table
