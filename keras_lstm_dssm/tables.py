"""Tables of which a training changes few rows: their start, and their storage.

A text reads the rows of its trigrams, so that most rows of a table never
change. Each number of their start is a function of a seed, the row and the
column (`HashedUniform`): any row can be made when it is read, and files hold
the others (`write_table`).
"""

import random
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.registration import register
from lstm_dssm_client.start_rows import (
    START_BITS,
    mix,
    start_keys,
    start_rows,
    start_unit,
)


@register
class HashedUniform(keras.initializers.Initializer):
    """Starts a table uniform in [-limit, limit), each number from its place.

    A number is a hash of the seed, its row and its column, by the same
    operations in NumPy and in a graph: the same bits on all machines.

    Args:
        limit: The largest number, default 0.05, for the "small random
            numbers" of Palangi et al. 2016, Algorithm 1.
        seed: int from 0 to 2^32 - 1. Default `None`: drawn from Python's
            `random`, as Keras's initializers do.

    Example:
    >>> start = HashedUniform(seed=0)
    >>> table = start((50_653, 8)).numpy()
    >>> bool((start.rows([274, 9], 8) == table[[274, 9]]).all())
    True
    """

    def __init__(self, limit: float = 0.05, seed: int | None = None) -> None:
        self.limit = limit
        self.seed = random.randint(1, 10**9) if seed is None else seed

    def __call__(
        self, shape: Any, dtype: Any = None, **kwargs: Any
    ) -> tf.Tensor:
        """Return the start of a table of a shape `(rows, width)`."""
        return tf.constant(
            self.rows(np.arange(shape[0]), shape[1]),
            keras.backend.standardize_dtype(dtype),
        )

    def rows(self, numbers: Any, width: int) -> np.ndarray:
        """Return rows of the start, float32 `[n, width]`.

        Args:
            numbers: int `[n]`, the numbers of the rows.
            width: Number of columns of the table.
        """
        return start_rows(numbers, width, self.seed, self.limit)

    @property
    def unit(self) -> np.float32:
        """The smallest difference of two numbers."""
        return start_unit(self.limit)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor arguments as a dict, for `from_config`."""
        return {"limit": self.limit, "seed": self.seed}


def graph_rows(
    numbers: tf.Tensor, starts: Sequence[HashedUniform], widths: Sequence[int]
) -> list[tf.Tensor]:
    """Return rows of the starts of several tables, in a graph.

    Args:
        numbers: int `[n]`, the numbers of the rows.
        starts: The start of each table.
        widths: Its number of columns.

    Returns:
        Float32 `[n, width]` for each table, the bits of `HashedUniform.rows`.
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
        part * start.unit
        for part, start in zip(
            tf.split(centred, list(widths), axis=1), starts, strict=True
        )
    ]


def changed_rows(table: np.ndarray, start: np.ndarray | float) -> np.ndarray:
    """Return the numbers of the rows that differ from a start, in any bit.

    Args:
        table: `[rows, ...]`.
        start: Array of the same shape and dtype, or one number for all.
    """
    start = np.broadcast_to(np.asarray(start, table.dtype), table.shape)
    as_integers = f"u{table.dtype.itemsize}"
    differ = table.view(as_integers) != np.ascontiguousarray(start).view(
        as_integers
    )
    return np.flatnonzero(differ.reshape(len(table), -1).any(axis=1))


def write_table(
    store: Any, key: str, table: np.ndarray, start: np.ndarray | float
) -> bool:
    """Writes the rows of a table that differ from its start.

    Args:
        store: Dict of arrays, such as Keras gives to `save_own_variables`.
        key: Name of the table; of its rows if they are not all written.
        table: `[rows, ...]`.
        start: Array of the same shape, or one number for all; 0 need not be
            known by who reads it.

    Returns:
        Whether rows were left out: most of them must be as at the start.
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
    """Reads what `write_table` wrote, or a table whose rows are all there.

    Args:
        store: See `write_table`.
        key: See `write_table`.
        shape: Shape of the table.
        start: Its start, unless that was one number.

    Raises:
        ValueError: The rows are not those of a table of this shape.
    """
    if key in store.keys():
        return np.asarray(store[key])
    rows = np.asarray(store[f"{key}_rows"])
    values = np.asarray(store[f"{key}_values"])
    if values.shape != (len(rows), *shape[1:]) or (
        len(rows) and not 0 <= rows.min() <= rows.max() < shape[0]
    ):
        raise ValueError(
            f"{key}: found rows of {values.shape[1:]} up to number "
            f"{rows.max(initial=0)}, expected those of a table {tuple(shape)}"
        )
    if start is None:
        known = f"{key}_start" in store.keys()
        number = np.asarray(store[f"{key}_start"]) if known else 0
        start = np.full(shape, number, values.dtype)
    table = start.astype(values.dtype)
    table[rows] = values
    return table
