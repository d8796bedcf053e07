"""Adagrad against NumPy, sparse and dense."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.optimizers.adagrad import Adagrad

ROWS, WIDTH, STEPS = 7, 3, 100


def by_numpy(
    weights: np.ndarray, gradients: list[np.ndarray], rate: float
) -> np.ndarray:
    weights, total = weights.copy(), np.zeros_like(weights)
    for gradient in gradients:
        total += gradient * gradient
        weights -= rate * gradient / (np.sqrt(total) + 1e-7)
    return weights


@pytest.mark.parametrize("traced", [True, False])
def test_100_steps_equal_numpy(float64, traced):
    """A table with repeated rows in its gradients, and a dense weight."""
    random = np.random.default_rng(0)
    table = keras.Variable(random.normal(size=(ROWS, WIDTH)), name="table")
    kernel = keras.Variable(random.normal(size=(2, 2)), name="kernel")
    start = [table.numpy(), kernel.numpy()]
    optimizer = Adagrad(0.3, multipliers={"kernel": 0.1})
    optimizer.build([table, kernel])

    def step(rows: tf.Tensor, values: tf.Tensor, dense: tf.Tensor) -> None:
        sparse = tf.IndexedSlices(values, rows, tf.constant([ROWS, WIDTH]))
        optimizer.apply([sparse, dense], [table, kernel])

    run = tf.function(step) if traced else step
    summed, dense_gradients, repeated = [], [], 0
    for _ in range(STEPS):
        rows = random.integers(0, ROWS - 1, 4)  # the last row is never read
        repeated += len(set(rows)) < 4
        values, dense = random.normal(size=(4, WIDTH)), random.normal(size=4)
        run(*map(tf.constant, (rows, values, dense.reshape(2, 2))))
        gradient = np.zeros((ROWS, WIDTH))
        np.add.at(gradient, rows, values)
        summed.append(gradient)
        dense_gradients.append(dense.reshape(2, 2))
    assert repeated > 10
    expected = by_numpy(start[0], summed, 0.3)
    np.testing.assert_array_equal(expected[-1], start[0][-1])
    np.testing.assert_allclose(table.numpy(), expected, rtol=1e-12)
    np.testing.assert_allclose(
        kernel.numpy(), by_numpy(start[1], dense_gradients, 0.03), rtol=1e-12
    )
    assert int(optimizer.iterations) == STEPS


def test_keras_differs_where_a_row_occurs_twice():
    """The reason for a class of our own: (1 + 2)^2 is not 1^2 + 2^2."""
    steps = []
    for optimizer in (
        Adagrad(0.1),
        keras.optimizers.Adagrad(
            0.1, initial_accumulator_value=0, epsilon=1e-7
        ),
    ):
        table = keras.Variable(np.zeros((2, 1), "float32"))
        twice = tf.IndexedSlices([[1.0], [2.0]], [1, 1], [2, 1])
        optimizer.build([table])
        optimizer.apply([twice], [table])
        steps.append(table.numpy()[1, 0])
    assert steps[0] == pytest.approx(-0.1)
    assert steps[1] == pytest.approx(-0.1 * 3 / 5**0.5)


def test_multipliers_name_parts_of_a_path():
    layer = keras.layers.Dense(1, name="final")
    layer.build((None, 1))
    optimizer = Adagrad(1.0, multipliers={"final": 0.5, "final/bias": 0.5})
    optimizer.build(layer.trainable_variables)
    layer.kernel.assign([[0.0]])
    optimizer.apply([tf.ones([1, 1]), tf.ones([1])], layer.trainable_variables)
    assert float(layer.kernel[0, 0]) == pytest.approx(-0.5)
    assert float(layer.bias[0]) == pytest.approx(-0.25)
    wrong = Adagrad(multipliers={"fin": 0.5})
    with pytest.raises(InputError, match="found 'fin', expected .*final/bias"):
        wrong.build(layer.trainable_variables)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_refused(dtype):
    """1e-4 squared is 0 in float16: the step would be 0.03 * 1e-4 / 1e-7."""
    weight = keras.Variable([1.0], dtype=dtype, name="weight")
    with pytest.raises(InputError, match=f"^weight is of {dtype}: expected fl"):
        Adagrad().build([weight])
