import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.layers import gather_sum

VALUES = np.array([[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]])
WEIGHTS = np.array([[1.0, 3.0], [5.0, 7.0], [11.0, 13.0], [17.0, 19.0]])


@pytest.mark.parametrize("index", [[1, 0, 1, 1], [2, 2, 2, 2], [0, 1, 2, 0]])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("segment", [None, [0, 0, 1, 3], [0, 1, 2, 3]])
def test_equals_a_product_with_the_counts(
    index: list[int], segment: list[int] | None, training: bool
) -> None:
    """Forward and backward; some rows are in no segment, and one is empty."""
    places = range(4) if segment is None else segment
    counts = np.zeros((4, 3))
    for row, place in zip(index, places, strict=True):
        counts[place, row] += 1
    values = tf.constant(VALUES)
    with tf.GradientTape() as tape:
        tape.watch(values)
        total = gather_sum(values, tf.constant(index), segment, 4, training)
        weighed = tf.reduce_sum(WEIGHTS * total)
    np.testing.assert_array_equal(total, counts @ VALUES)
    gradient = tf.convert_to_tensor(tape.gradient(weighed, values))
    np.testing.assert_array_equal(gradient, counts.T @ WEIGHTS)


def test_of_no_places_is_empty() -> None:
    none = tf.constant([], tf.int32)
    assert gather_sum(tf.constant(VALUES), none, none).shape == [0, 2]
    assert gather_sum(tf.constant(VALUES), none).shape == [0, 2]
