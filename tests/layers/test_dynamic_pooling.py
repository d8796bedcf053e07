"""Dynamic pooling against plain loops."""

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm import InputError
from keras_lstm_dssm.layers.pooling import DynamicPooling
from tests.matchers.plain_convolutions import plain_pooling, plain_regions
from tests.matchers.ragged_texts import check_central_differences

RANDOM = np.random.default_rng(0)
ROWS, COLUMNS = [9, 7, 4, 3, 1, 8], [2, 10, 6, 1, 5, 9]
CELLS = RANDOM.normal(size=(len(ROWS), 9, 10, 2))

pytestmark = pytest.mark.usefixtures("float64")


def test_regions_written_out():
    assert plain_regions(8, 3) == [[0, 1], [2, 3, 4], [5, 6, 7]]
    assert plain_regions(2, 5) == [[0], [1], [0], [1], [0]]
    cells = np.arange(16.0).reshape(1, 4, 4, 1)
    np.testing.assert_array_equal(
        DynamicPooling(3)(cells, [4], [2])[0, :, :, 0],
        [[0, 1, 0], [4, 5, 4], [12, 13, 12]],
    )


@pytest.mark.parametrize("mode", ["max", "min"])
@pytest.mark.parametrize("size", [(1, 1), (3, 4), (9, 2), (12, 15)])
def test_equals_loops(size, mode):
    expected = [
        plain_pooling(cells[:m, :n], *size, mode)
        for cells, m, n in zip(CELLS, ROWS, COLUMNS, strict=True)
    ]
    layer = DynamicPooling(*size, mode)
    np.testing.assert_array_equal(layer(CELLS, ROWS, COLUMNS), expected)
    # Padding takes no part, whatever it is and however much there is.
    wild = np.pad(CELLS, [[0, 0], [0, 3], [0, 1], [0, 0]])
    for number, (m, n) in enumerate(zip(ROWS, COLUMNS, strict=True)):
        wild[number, m:] = wild[number, :, n:] = 99 if mode == "max" else -99
    graph = tf.function(layer).get_concrete_function(
        tf.TensorSpec([None, None, None, 2], tf.float64),
        tf.TensorSpec([None], tf.int32),
        tf.TensorSpec([None], tf.int32),
    )
    lengths = tf.constant(ROWS), tf.constant(COLUMNS)
    np.testing.assert_array_equal(graph(tf.constant(wild), *lengths), expected)


@pytest.mark.parametrize("mode", ["max", "min"])
def test_gradients(mode):
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


def test_too_few_rows_and_columns_are_doubled():
    layer = DynamicPooling(6, 7, repeat="double")
    found = layer(tf.constant(CELLS), ROWS, COLUMNS).numpy()
    for number, (m, n) in enumerate(zip(ROWS, COLUMNS, strict=True)):
        cells = CELLS[number, :m, :n]
        for axis, least in enumerate((6, 7)):
            while cells.shape[axis] < least:
                cells = np.repeat(cells, 2, axis)
        np.testing.assert_array_equal(found[number], plain_pooling(cells, 6, 7))
    # 0 0 0 0 1 1 1 1 is divided into 0, 0, 0 0, 1 1 and 1 1.
    cells = np.array([[0.0], [1.0]])[np.newaxis, :, :, np.newaxis]
    pooled = DynamicPooling(5, 1, "min", "double")(cells, [2], [1])
    assert pooled[0, :, 0, 0].numpy().tolist() == [0, 0, 0, 1, 1]


def test_wrong_arguments():
    with pytest.raises(InputError, match="repeat must be one of .* 'mirror'"):
        DynamicPooling(2, repeat="mirror")
    with pytest.raises(InputError, match="mode must be one of .* 'mean'"):
        DynamicPooling(2, mode="mean")
    with pytest.raises(InputError, match="must be at least 1, not 2 and 0"):
        DynamicPooling(2, 0)


@pytest.mark.parametrize("repeat", ["modulo", "double"])
def test_a_text_without_words_gives_zeros(repeat):
    layer = DynamicPooling(2, 3, repeat=repeat)
    found = layer(tf.constant(CELLS[:3]), [0, 2, 0], [1, 0, 0])
    np.testing.assert_array_equal(found, np.zeros([3, 2, 3, 2]))
