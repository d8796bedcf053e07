"""Poolings of texts and matrices of different sizes, against plain loops."""

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.layers.convolution import MaskedConvolution
from keras_lstm_dssm.layers.pooling import (
    DynamicPooling,
    KMaxPooling,
    OrderedKMax,
    dynamic_k,
)
from tests.matchers.plain_convolutions import plain_regions
from tests.matchers.ragged_texts import check_central_differences

RANDOM = np.random.default_rng(0)
TEXTS = RANDOM.normal(size=(6, 6, 3))
ROWS, COLUMNS = [9, 7, 4, 3, 1, 8], [2, 10, 6, 1, 5, 9]
CELLS = RANDOM.normal(size=(len(ROWS), 9, 10, 2))

pytestmark = pytest.mark.usefixtures("float64")


def matrices() -> list[np.ndarray]:
    """The cells of each pair, without padding."""
    return [
        cells[:m, :n] for cells, m, n in zip(CELLS, ROWS, COLUMNS, strict=True)
    ]


def with_junk(junk: float) -> np.ndarray:
    """Cells with more padding, which a pooling must not choose."""
    wild = np.full((len(ROWS), 12, 11, 2), float(junk))
    for padded, cells in zip(wild, matrices(), strict=True):
        padded[: len(cells), : cells.shape[1]] = cells
    return wild


@pytest.mark.parametrize("padding", ["wide", "narrow"])
def test_a_convolution_is_zero_past_the_end_of_a_text(padding):
    layer = MaskedConvolution(2, 2, padding)
    layer.build((None, None, 3))
    layer.convolution.bias.assign([1.0, 2.0])
    values, lengths = layer(TEXTS, [6, 5, 2, 1, 6, 3])
    past = np.arange(values.shape[1]) >= lengths.numpy()[:, np.newaxis]
    assert past.any() and not values.numpy()[past].any()


def test_dynamic_pooling_written_out():
    assert plain_regions(8, 3) == [[0, 1], [2, 3, 4], [5, 6, 7]]
    assert plain_regions(2, 5) == [[0], [1], [0], [1], [0]]
    cells = np.arange(16.0).reshape(1, 4, 4, 1)
    np.testing.assert_array_equal(
        DynamicPooling(3)(cells, [4], [2])[0, :, :, 0],
        [[0, 1, 0], [4, 5, 4], [12, 13, 12]],
    )


@pytest.mark.parametrize("mode", ["max", "min"])
def test_gradients_of_dynamic_pooling(mode):
    cells, layer = tf.Variable(CELLS), DynamicPooling(3, 4, mode)
    toward = RANDOM.normal(size=(len(ROWS), 3, 4, 2))
    (gradient,) = check_central_differences(
        lambda: tf.reduce_sum(layer(cells, ROWS, COLUMNS) * toward), [cells]
    )
    for number, (m, n) in enumerate(zip(ROWS, COLUMNS, strict=True)):
        assert not gradient[number, m:].any()
        assert not gradient[number, :, n:].any()
        # With distinct values one cell of each rectangle has a gradient.
        cells_with = np.count_nonzero(gradient[number, :, :, 0])
        assert cells_with == min(m, 3) * min(n, 4)


def test_too_few_rows_are_doubled():
    # 0 0 0 0 1 1 1 1 is divided into 0, 0, 0 0, 1 1 and 1 1.
    cells = np.array([[0.0], [1.0]])[np.newaxis, :, :, np.newaxis]
    pooled = DynamicPooling(5, 1, "min", "double")(cells, [2], [1])
    assert pooled[0, :, 0, 0].numpy().tolist() == [0, 0, 0, 1, 1]


@pytest.mark.parametrize("repeat", ["modulo", "double"])
def test_dynamic_pooling_of_a_text_without_words_gives_zeros(repeat):
    layer = DynamicPooling(2, 3, repeat=repeat)
    found = layer(tf.constant(CELLS[:3]), [0, 2, 0], [1, 0, 0])
    np.testing.assert_array_equal(found, np.zeros([3, 2, 3, 2]))


def test_ordered_k_max_written_out():
    values = np.array([[3.0, 1, 2, 4, 9], [-1, -5, -5, -2, 9]])[:, :, None]
    chosen, lengths = OrderedKMax()(values, [4, 4], [3, 3])
    np.testing.assert_array_equal(
        chosen[:, :, 0],
        [[3, 2, 4], [-1, -5, -2]],  # the first of equal values
    )
    np.testing.assert_array_equal(lengths, [3, 3])


def test_ordered_k_of_one_is_the_maximum_and_large_k_changes_nothing():
    full = [6] * 6
    one, _ = OrderedKMax()(TEXTS, full, [1] * 6)
    np.testing.assert_array_equal(one, TEXTS.max(axis=1, keepdims=True))
    all_of_them, lengths = OrderedKMax()(TEXTS, full, [9] * 6)
    np.testing.assert_array_equal(all_of_them[:, :6], TEXTS)
    np.testing.assert_array_equal(all_of_them[:, 6:], 0)
    np.testing.assert_array_equal(lengths, full)


def test_dynamic_k():
    lengths = tf.constant([18, 10, 7, 1])
    # Kalchbrenner et al. 2014 give this example: L = 3, k_top = 3 and 18
    # words have k_1 = 12 and k_2 = 6.
    by_layer = [dynamic_k(lengths, n, 3, k_top=3).numpy() for n in (1, 2, 3)]
    np.testing.assert_array_equal(
        by_layer, [[12, 7, 5, 3], [6, 4, 3, 3], [3, 3, 3, 3]]
    )
    # Wan et al. 2016: at least 4, and 1 in the last layer.
    of_wan = [dynamic_k(lengths, n, 2, k_top=1, k_min=4) for n in (1, 2)]
    np.testing.assert_array_equal(of_wan, [[9, 5, 4, 4], [1, 1, 1, 1]])


def largest(k: int) -> np.ndarray:
    """The k largest cells of each pair and slice, in descending order."""
    result = np.zeros((len(ROWS), 2, k))
    for row, cells in zip(result, matrices(), strict=True):
        for part in range(2):
            ordered = np.sort(cells[:, :, part].ravel())[::-1][:k]
            row[part, : len(ordered)] = ordered
    return result


@pytest.mark.parametrize("k", [1, 3, 5, 12, 100])
def test_the_k_largest_real_cells_in_descending_order_then_zeros(k):
    for values in CELLS, with_junk(1e9), with_junk(np.inf):
        pooled = KMaxPooling(k)(values, ROWS, COLUMNS)
        np.testing.assert_array_equal(pooled, largest(k))


def test_of_equal_cells_the_first_ones_in_order_of_rows_are_taken():
    cells = RANDOM.integers(4, size=(50, 6, 5, 1)).astype("float64")
    layer = KMaxPooling(4)
    values, rows, columns = layer.strongest(cells, [6] * 50, [5] * 50)
    for pair, matrix in enumerate(cells[:, :, :, 0]):
        order = np.argsort(-matrix.ravel(), kind="stable")[:4]
        np.testing.assert_array_equal(values[pair, 0], matrix.ravel()[order])
        np.testing.assert_array_equal(rows[pair, 0], order // 5)
        np.testing.assert_array_equal(columns[pair, 0], order % 5)


def test_each_of_the_k_largest_cells_has_the_gradient_of_its_place():
    cells = tf.constant(with_junk(1e9))
    toward = RANDOM.normal(size=(len(ROWS), 2, 4))
    with tf.GradientTape() as tape:
        tape.watch(cells)
        loss = tf.reduce_sum(KMaxPooling(4)(cells, ROWS, COLUMNS) * toward)
    expected = np.zeros(cells.shape)
    for pair, part, place in np.ndindex(*toward.shape):
        value = largest(4)[pair, part, place]
        found = cells[pair, :, :, part].numpy() == value
        expected[pair, :, :, part][found] = toward[pair, part, place]
    np.testing.assert_array_equal(tape.gradient(loss, cells), expected)


def test_of_cells_that_are_nan_the_largest_are_nan():
    """A spoilt cell must not pass for one that does not exist."""
    cells = np.full((1, 2, 2, 1), np.nan)
    pooled = KMaxPooling(3)(cells, [2], [2])
    assert np.isnan(pooled).all()
