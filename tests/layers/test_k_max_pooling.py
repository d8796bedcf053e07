"""The k largest cells of ragged matrices."""

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm import InputError
from keras_lstm_dssm.layers.pooling import KMaxPooling

RANDOM = np.random.default_rng(0)
ROWS, COLUMNS = [3, 1, 2], [4, 5, 1]
CELLS = RANDOM.normal(size=(3, 3, 5, 2))
WILD = CELLS.copy()
for _pair, (_m, _n) in enumerate(zip(ROWS, COLUMNS, strict=True)):
    WILD[_pair, _m:] = 1e9  # padding that would win
    WILD[_pair, :, _n:] = 1e9


def expected(k: int) -> np.ndarray:
    """Sort the real cells of each pair and slice."""
    result = np.zeros((3, 2, k))
    for pair, (m, n) in enumerate(zip(ROWS, COLUMNS, strict=True)):
        for part in range(2):
            cells = np.sort(CELLS[pair, :m, :n, part].ravel())[::-1][:k]
            result[pair, part, : len(cells)] = cells
    return result


@pytest.mark.parametrize("k", [1, 3, 5, 12, 40])
def test_the_k_largest_real_cells_in_descending_order_then_zeros(k):
    pooled = KMaxPooling(k, dtype="float64")(WILD, ROWS, COLUMNS)
    np.testing.assert_array_equal(pooled, expected(k))
    more = np.pad(
        WILD, [(0, 0), (0, 2), (0, 1), (0, 0)], constant_values=np.inf
    )
    pooled = KMaxPooling(k, dtype="float64")(more, ROWS, COLUMNS)
    np.testing.assert_array_equal(pooled, expected(k))


def test_k_of_1_is_the_maximum():
    pooled = KMaxPooling(1, dtype="float64")(CELLS, [3] * 3, [5] * 3)
    np.testing.assert_array_equal(pooled[:, :, 0], CELLS.max(axis=(1, 2)))


def test_positions_of_the_strongest_cells():
    values, rows, columns = KMaxPooling(5, dtype="float64").strongest(
        tf.constant(WILD), ROWS, COLUMNS
    )
    np.testing.assert_array_equal(values, expected(5))
    for pair, part, place in np.ndindex(3, 2, 5):
        i, j = rows[pair, part, place], columns[pair, part, place]
        if place < ROWS[pair] * COLUMNS[pair]:
            assert CELLS[pair, i, j, part] == values[pair, part, place]
        else:
            assert i == j == -1 and values[pair, part, place] == 0


def test_of_equal_cells_the_first_ones_in_order_of_rows_are_taken():
    cells = RANDOM.integers(4, size=(50, 6, 5, 1)).astype("float64")
    layer = KMaxPooling(4, dtype="float64")
    values, rows, columns = layer.strongest(cells, [6] * 50, [5] * 50)
    for pair, matrix in enumerate(cells[:, :, :, 0]):
        order = np.argsort(-matrix.ravel(), kind="stable")[:4]
        np.testing.assert_array_equal(values[pair, 0], matrix.ravel()[order])
        np.testing.assert_array_equal(rows[pair, 0], order // 5)
        np.testing.assert_array_equal(columns[pair, 0], order % 5)


def test_gradient_equals_central_differences():
    layer = KMaxPooling(4, dtype="float64")
    toward = RANDOM.normal(size=(3, 2, 4))
    cells = tf.constant(WILD)
    with tf.GradientTape() as tape:
        tape.watch(cells)
        loss = tf.reduce_sum(layer(cells, ROWS, COLUMNS) * toward)
    gradient = tape.gradient(loss, cells).numpy()
    # Four real cells of the first pair, four and two of the others.
    assert np.count_nonzero(gradient) == 2 * (4 + 4 + 2)
    for place in np.ndindex(*WILD.shape):
        moved = []
        for step in 1e-4, -1e-4:  # far less than any two cells differ
            other = WILD.copy()
            other[place] += step
            moved.append(np.sum(layer(other, ROWS, COLUMNS) * toward))
        assert abs((moved[0] - moved[1]) / 2e-4 - gradient[place]) < 1e-8


def test_nan_stays_nan():
    """A spoilt cell must not pass for one that does not exist."""
    cells = np.full((1, 2, 2, 1), np.nan)
    pooled = KMaxPooling(3, dtype="float64")(cells, [2], [2])
    assert np.isnan(pooled).all()


def test_wrong_arguments():
    with pytest.raises(InputError, match="k must be at least 1, not 0"):
        KMaxPooling(0)
