"""The recurrences (1) and (2), and truncated BPTT, (7), in float64."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm import (
    InputError,
    PeepholeLSTM,
    PeepholeLSTMCell,
    Recurrent,
    RNNCell,
)
from tests import reference

BATCH, TIME, FEATURES, UNITS = 3, 4, 5, 3
LENGTHS = [4, 1, 3]
RANDOM = np.random.default_rng(0)
INPUTS = RANDOM.normal(size=(BATCH, TIME, FEATURES))

every_lstm = pytest.mark.parametrize(
    ("peephole", "forget_gate"),
    [*itertools.product([None, "diagonal", "full"], [False, True])],
)
exact = {"rtol": 1e-12, "atol": 1e-14}
pytestmark = pytest.mark.usefixtures("float64")


def randomise(layer: keras.layers.Layer) -> None:
    for variable in layer.variables:
        variable.assign(RANDOM.normal(size=variable.shape) * 0.7)


def lstm_of(peephole: str | None, forget_gate: bool) -> PeepholeLSTM:
    layer = PeepholeLSTM(UNITS, peephole, forget_gate)
    layer.build(INPUTS.shape)
    randomise(layer)
    return layer


def rnn_of() -> Recurrent:
    layer = Recurrent(RNNCell(UNITS))
    layer.build(INPUTS.shape)
    randomise(layer)
    return layer


def by_numpy(layer: Recurrent, row: int, length: int) -> dict[str, np.ndarray]:
    """Compute all activations of one row."""
    cell, words = layer.cell, INPUTS[row, :length]
    if isinstance(cell, PeepholeLSTMCell):
        return reference.lstm(reference.gates_of(cell, cell.kernel), words)
    W, W_rec = cell.kernel.numpy().T, cell.recurrent_kernel.numpy().T
    return {"y": reference.rnn(W, W_rec, cell.bias.numpy(), words)}


def check(layer: Recurrent) -> None:
    """Layer, `keras.layers.RNN`, cell, NumPy and `activations` agree."""
    last = [by_numpy(layer, row, n)["y"][-1] for row, n in enumerate(LENGTHS)]
    np.testing.assert_allclose(layer(INPUTS, LENGTHS), last, **exact)
    full = [by_numpy(layer, row, TIME)["y"] for row in range(BATCH)]
    stock = keras.layers.RNN(layer.cell, return_sequences=True)
    np.testing.assert_allclose(stock(INPUTS), full, **exact)
    np.testing.assert_allclose(layer(INPUTS), stock(INPUTS)[:, -1], **exact)

    activations = layer.activations(tf.constant(INPUTS), LENGTHS)
    states = layer.cell.state_size
    for row, length in enumerate(LENGTHS):
        expected = by_numpy(layer, row, length)
        now = [tf.zeros([1, width], tf.float64) for width in states]
        for name, values in activations.items():
            np.testing.assert_allclose(
                values[row, :length], expected[name], **exact
            )
            np.testing.assert_array_equal(values[row, length:], 0)
        for t in range(length):
            y, now = layer.cell(tf.constant(INPUTS[row : row + 1, t]), now)
            np.testing.assert_allclose(activations["y"][row, t], y[0], **exact)


@every_lstm
def test_lstm_equals_numpy_and_keras(peephole, forget_gate):
    layer = lstm_of(peephole, forget_gate)
    check(layer)
    names = {"i", "g", "c", "o", "y"} | ({"f"} if forget_gate else set())
    assert set(layer.activations(tf.constant(INPUTS))) == names


def test_rnn_equals_numpy_and_keras():
    check(rnn_of())


@every_lstm
def test_lstm_takes_inputs_projected_before(peephole, forget_gate):
    """`project_inputs=False` takes W l(t), all gates side by side."""
    inside = lstm_of(peephole, forget_gate)
    outside = PeepholeLSTM(UNITS, peephole, forget_gate, project_inputs=False)
    kernel, *others = inside.cell.variables
    projected = INPUTS @ kernel.numpy()
    outside.build(projected.shape)
    for variable, other in zip(outside.cell.variables, others, strict=True):
        variable.assign(other)
    np.testing.assert_allclose(
        outside(projected, LENGTHS), inside(INPUTS, LENGTHS), **exact
    )


def test_rnn_takes_inputs_projected_before():
    inside, outside = rnn_of(), Recurrent(RNNCell(UNITS, project_inputs=False))
    kernel, *others = inside.cell.variables
    outside.build((None, None, UNITS))
    for variable, other in zip(outside.cell.variables, others, strict=True):
        variable.assign(other)
    np.testing.assert_allclose(
        outside(INPUTS @ kernel.numpy(), LENGTHS),
        inside(INPUTS, LENGTHS),
        **exact,
    )


@pytest.mark.parametrize("layer", ["lstm", "rnn"])
def test_padding_is_neither_read_nor_part_of_a_gradient(layer):
    recurrent = lstm_of("full", True) if layer == "lstm" else rnn_of()
    padding = np.arange(TIME)[np.newaxis] >= np.array(LENGTHS)[:, np.newaxis]
    wild = tf.constant(np.where(padding[:, :, np.newaxis], 1e3, INPUTS))
    with tf.GradientTape() as tape:
        tape.watch(wild)
        y = recurrent(wild, LENGTHS)
    np.testing.assert_array_equal(y, recurrent(INPUTS, LENGTHS))
    gradient = tf.convert_to_tensor(tape.gradient(y, wild)).numpy()
    assert (gradient[padding] == 0).all()
    assert (gradient[~padding] != 0).all()


def test_peephole_form_and_initial_values():
    layer = PeepholeLSTM(UNITS, "diagonal", forget_gate=True)
    layer.build(INPUTS.shape)
    assert [p.shape for p in layer.cell.peepholes.values()] == [(UNITS,)] * 3
    np.testing.assert_array_equal(  # i, f, g, o: the forget gate starts at 1
        layer.cell.bias, np.repeat([0, 1, 0, 0], UNITS)
    )
    full = lstm_of("full", forget_gate=False).cell.peepholes
    assert {name: p.shape for name, p in full.items()} == {
        "i": (UNITS, UNITS), "o": (UNITS, UNITS),
    }  # fmt: skip


def test_wrong_arguments():
    with pytest.raises(InputError, match="peephole must be one of .* 'half'"):
        PeepholeLSTMCell(3, "half")
    cell = PeepholeLSTMCell(3, project_inputs=False)
    with pytest.raises(ValueError, match="inputs of width 9 .*, not 8"):
        cell.build((None, 8))


TRUNCATED_LENGTHS = [5, 3, 1]
TRUNCATED_INPUTS = tf.constant(RANDOM.normal(size=(3, 5, FEATURES)))


def unrolled(
    cell: keras.layers.Layer, row: int, truncate: int | None
) -> tf.Tensor:
    """y of a row at its last step m; the states before m - T are constants."""
    length = TRUNCATED_LENGTHS[row]
    states = [tf.zeros([1, width], tf.float64) for width in cell.state_size]
    for t in range(length):
        if truncate is not None and t == length - 1 - truncate:
            states = [tf.constant(state.numpy()) for state in states]
        _, states = cell(TRUNCATED_INPUTS[row : row + 1, t], states)
    return states[0][0]


def gradients(
    layer: Recurrent, truncate: int | None
) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
    """Gradients by each weight, of the layer and of the unrolled cell."""
    values = [v.value for v in layer.variables]
    toward = tf.constant(np.arange(1.0, 10).reshape(3, UNITS) / 10)
    with tf.GradientTape(persistent=True) as tape:
        outputs = toward * layer(TRUNCATED_INPUTS, TRUNCATED_LENGTHS)
        rows = [unrolled(layer.cell, row, truncate) for row in range(3)]
        expected = toward * tf.stack(rows)
    np.testing.assert_allclose(outputs, expected, rtol=1e-12)
    return tape.gradient(outputs, values), tape.gradient(expected, values)


@pytest.mark.parametrize("kind", ["lstm", "rnn"])
@pytest.mark.parametrize("truncate", [None, 0, 1, 2, 4, 99])
def test_truncated_gradient_is_that_of_constant_older_states(kind, truncate):
    lstm = PeepholeLSTMCell(UNITS, "full", forget_gate=True)
    layer = Recurrent(RNNCell(UNITS) if kind == "rnn" else lstm, truncate)
    layer.build(TRUNCATED_INPUTS.shape)
    randomise(layer)
    truncated, expected = gradients(layer, truncate)
    for one, other in zip(truncated, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-13)
    # The longest row has 5 steps: with T of 4 or more nothing is cut off.
    layer.truncate = None
    full, _ = gradients(layer, None)
    same = [np.allclose(a, b) for a, b in zip(truncated, full, strict=True)]
    assert all(same) == (truncate is None or truncate >= 4)
