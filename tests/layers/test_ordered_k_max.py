"""Order-keeping k-max pooling against plain loops."""

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.layers.pooling import OrderedKMax, dynamic_k
from tests.matchers.plain_convolutions import k_largest
from tests.matchers.ragged_texts import check_central_differences

RANDOM = np.random.default_rng(0)
LENGTHS, K = [6, 5, 2, 1, 6, 3], [4, 1, 5, 3, 6, 3]
VALUES = RANDOM.normal(size=(len(K), 6, 3))

pytestmark = pytest.mark.usefixtures("float64")


def test_keeps_the_order_written_out():
    values = np.array([[3.0, 1, 2, 4, 9], [-1, -5, -5, -2, 9]])[:, :, None]
    chosen, lengths = OrderedKMax()(values, [4, 4], [3, 3])
    np.testing.assert_array_equal(
        chosen[:, :, 0],
        [[3, 2, 4], [-1, -5, -2]],  # the first of equal values
    )
    np.testing.assert_array_equal(lengths, [3, 3])


def test_equals_loops():
    expected = np.zeros([len(K), max(K), 3])
    for number, (length, k) in enumerate(zip(LENGTHS, K, strict=True)):
        for feature in range(3):
            column = VALUES[number, :length, feature]
            expected[number, :k, feature] = k_largest(column, k)
    counts = np.minimum(LENGTHS, K)
    layer = OrderedKMax()
    chosen, lengths = layer(VALUES, LENGTHS, K)
    np.testing.assert_array_equal(chosen, expected)
    np.testing.assert_array_equal(lengths, counts)
    past_the_end = np.arange(max(K)) >= counts[:, np.newaxis]
    assert not expected[past_the_end].any() and past_the_end.any()

    # Padding is not chosen, whatever it is and however much there is.
    wild = np.pad(VALUES, [[0, 0], [0, 2], [0, 0]])
    for row, length in zip(wild, LENGTHS, strict=True):
        row[length:] = 99
    graph = tf.function(layer).get_concrete_function(
        tf.TensorSpec([None, None, 3], tf.float64),
        tf.TensorSpec([None], tf.int32),
        tf.TensorSpec([None], tf.int32),
    )
    again, _ = graph(tf.constant(wild), tf.constant(LENGTHS), tf.constant(K))
    np.testing.assert_array_equal(again, expected)


def test_k_of_one_is_the_maximum_and_large_k_changes_nothing():
    full = [6] * len(K)
    one, _ = OrderedKMax()(VALUES, full, [1] * len(K))
    np.testing.assert_array_equal(one, VALUES.max(axis=1, keepdims=True))
    all_of_them, lengths = OrderedKMax()(VALUES, full, [9] * len(K))
    np.testing.assert_array_equal(all_of_them[:, :6], VALUES)
    np.testing.assert_array_equal(all_of_them[:, 6:], 0)
    np.testing.assert_array_equal(lengths, full)


def test_gradients():
    values = tf.Variable(VALUES)
    toward = RANDOM.normal(size=(len(K), max(K), 3))
    (gradient,) = check_central_differences(
        lambda: tf.reduce_sum(OrderedKMax()(values, LENGTHS, K)[0] * toward),
        [values],
    )
    np.testing.assert_array_equal(
        np.count_nonzero(gradient, axis=1),
        np.minimum(LENGTHS, K)[:, np.newaxis] * np.ones(3, int),
    )


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
