"""Truncated BPTT: (7) sums over tau = 0 .. T, older states are constants."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm import PeepholeLSTMCell, Recurrent, RNNCell

TIME, FEATURES, UNITS = 5, 3, 4
LENGTHS = [5, 3, 1]
RANDOM = np.random.default_rng(1)
INPUTS = tf.constant(RANDOM.normal(size=(3, TIME, FEATURES)))

pytestmark = pytest.mark.usefixtures("float64")


def unrolled(
    cell: keras.layers.Layer, row: int, truncate: int | None
) -> tf.Tensor:
    """y of a row; the states entering step m - T are constants."""
    length = LENGTHS[row]
    states = [tf.zeros([1, width], tf.float64) for width in cell.state_size]
    for t in range(length):
        if truncate is not None and t == length - 1 - truncate:
            states = [tf.constant(state.numpy()) for state in states]
        _, states = cell(INPUTS[row : row + 1, t], states)
    return states[0][0]


def gradients(
    layer: Recurrent, truncate: int | None
) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
    """Of the layer and of the unrolled cell, by every weight."""
    values = [v.value for v in layer.variables]
    toward = tf.constant(np.arange(3 * UNITS).reshape(3, UNITS) / 10)
    with tf.GradientTape(persistent=True) as tape:
        found = toward * layer(INPUTS, LENGTHS)
        rows = [unrolled(layer.cell, row, truncate) for row in range(3)]
        expected = toward * tf.stack(rows)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    return tape.gradient(found, values), tape.gradient(expected, values)


@pytest.mark.parametrize("kind", ["lstm", "rnn"])
@pytest.mark.parametrize("truncate", [None, 0, 1, 2, 4, 99])
def test_gradient_is_that_of_constant_older_states(
    kind: str, truncate: int | None
) -> None:
    lstm = PeepholeLSTMCell(UNITS, "full", forget_gate=True)
    layer = Recurrent(RNNCell(UNITS) if kind == "rnn" else lstm, truncate)
    layer.build(INPUTS.shape)
    for variable in layer.variables:
        variable.assign(RANDOM.normal(size=variable.shape) * 0.7)
    found, expected = gradients(layer, truncate)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-13)
    # The longest row has 5 words: only T < 4 cuts anything off.
    layer.truncate = None
    full, _ = gradients(layer, None)
    same = [np.allclose(a, b) for a, b in zip(found, full, strict=True)]
    assert all(same) == (truncate is None or truncate >= 4)
