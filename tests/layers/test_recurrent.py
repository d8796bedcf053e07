"""The recurrences (1) and (2), and truncated BPTT, (7).

Of rows that are padded, packed, indices of a table, or a single one."""

import functools
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.layers.bidirectional_recurrence import (
    FlatPacking,
    FlatSequences,
    run_on_rows,
)
from keras_lstm_dssm.layers.recurrent import (
    pack,
    run_single_sequence,
    run_to_last_output,
    unpack,
)
from tests import reference
from tests.matchers.ragged_texts import randomise

BATCH, TIME, FEATURES, UNITS = 3, 4, 5, 3
LENGTHS = [4, 1, 3]
RANDOM = np.random.default_rng(0)
INPUTS = RANDOM.normal(size=(BATCH, TIME, FEATURES))
MASK = np.arange(TIME) < np.array(LENGTHS)[:, np.newaxis]
CELLS: dict[str, Callable[..., keras.layers.Layer]] = {
    "rnn": functools.partial(dssm.RNNCell, UNITS),
    **{
        f"lstm, peepholes {peephole}, forget gate {forget_gate}":
        functools.partial(dssm.PeepholeLSTMCell, UNITS, peephole, forget_gate)
        for peephole in (None, "diagonal", "full")
        for forget_gate in (False, True)
    },
}  # fmt: skip
LSTM = "lstm, peepholes full, forget gate True"
every_cell = pytest.mark.parametrize("cell", CELLS)
exact = {"rtol": 1e-12, "atol": 1e-14}
pytestmark = pytest.mark.usefixtures("float64")


def layer_of(cell: str, **arguments: Any) -> dssm.Recurrent:
    layer = dssm.Recurrent(CELLS[cell](), **arguments)
    layer.build(INPUTS.shape)
    randomise(layer)
    return layer


def by_numpy(
    layer: dssm.Recurrent, row: int, length: int
) -> dict[str, np.ndarray]:
    """Compute all activations of one row."""
    cell, words = layer.cell, INPUTS[row, :length]
    if isinstance(cell, dssm.PeepholeLSTMCell):
        return reference.lstm(reference.gates_of(cell, cell.kernel), words)
    W, W_rec = cell.kernel.numpy().T, cell.recurrent_kernel.numpy().T
    return {"y": reference.rnn(W, W_rec, cell.bias.numpy(), words)}


@every_cell
def test_layer_keras_cell_and_numpy_agree_on_all_activations(cell):
    layer = layer_of(cell)
    last = [by_numpy(layer, row, n)["y"][-1] for row, n in enumerate(LENGTHS)]
    np.testing.assert_allclose(layer(INPUTS, LENGTHS), last, **exact)
    full = [by_numpy(layer, row, TIME)["y"] for row in range(BATCH)]
    stock = keras.layers.RNN(layer.cell, return_sequences=True)
    np.testing.assert_allclose(stock(INPUTS), full, **exact)
    np.testing.assert_allclose(layer(INPUTS), stock(INPUTS)[:, -1], **exact)

    activations = layer.activations(tf.constant(INPUTS), LENGTHS)
    gates = "igcoy" + "f" * ("gate True" in cell)
    assert set(activations) == ({"y"} if cell == "rnn" else set(gates))
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


@every_cell
def test_inputs_may_be_projected_before(cell):
    """`project_inputs=False` takes W l(t), all gates side by side."""
    inside = layer_of(cell)
    outside = dssm.Recurrent(CELLS[cell](project_inputs=False))
    kernel, *others = inside.cell.variables
    projected = INPUTS @ kernel.numpy()
    outside.build(projected.shape)
    for variable, other in zip(outside.cell.variables, others, strict=True):
        variable.assign(other)
    np.testing.assert_allclose(
        outside(projected, LENGTHS), inside(INPUTS, LENGTHS), **exact
    )


@every_cell
def test_packed_rows_have_the_outputs_and_gradients_of_keras(cell):
    layer = layer_of(cell, return_sequences=True)
    stock = keras.layers.RNN(layer.cell, return_sequences=True)
    values, lengths = tf.constant(INPUTS), tf.constant([4, 3, 1])
    mask = tf.sequence_mask(lengths)
    errors = RANDOM.normal(size=(BATCH, TIME, UNITS))
    sources = [values, *(variable.value for variable in layer.variables)]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(values)
        steps = pack(layer.project(values), lengths)
        packed = layer(steps, training=True)
        outputs = unpack(packed)
        expected = stock(values, mask=mask)
        expected = tf.where(mask[:, :, tf.newaxis], expected, 0.0)
        losses = [tf.reduce_sum(y * errors) for y in (outputs, expected)]
    np.testing.assert_allclose(outputs, expected, **exact)
    np.testing.assert_array_equal(layer(steps).values, packed.values)
    for ours, theirs in zip(
        *(tape.gradient(loss, sources) for loss in losses), strict=True
    ):
        assert np.abs(theirs).max() > 1e-3
        np.testing.assert_allclose(
            tf.convert_to_tensor(ours), theirs, rtol=1e-10, atol=1e-12
        )


def test_states_and_other_orders_need_padded_rows():
    steps = pack(tf.constant(INPUTS), tf.constant([4, 3, 1]))
    for argument in "return_state", "go_backwards":
        layer = dssm.Recurrent(dssm.RNNCell(UNITS), **{argument: True})
        with pytest.raises(
            dssm.InputError, match="not supported for a PackedSequence"
        ):
            layer(steps)


@pytest.mark.parametrize("time", [0, TIME])
@pytest.mark.parametrize("at_all_steps", [False, True])
def test_a_batch_without_rows_has_a_gradient(time, at_all_steps):
    layer = layer_of(LSTM, return_sequences=at_all_steps)

    @tf.function
    def gradients(values: tf.Tensor) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            steps = pack(layer.project(values), tf.zeros([0], tf.int32))
            outputs = layer(steps, training=True)
            loss = tf.reduce_sum(outputs.values if at_all_steps else outputs)
        return tape.gradient(loss, layer.trainable_variables)

    found = gradients(tf.zeros([0, time, FEATURES], tf.float64))
    assert len(found) == 6
    for gradient, variable in zip(
        found, layer.trainable_variables, strict=True
    ):
        np.testing.assert_array_equal(gradient, np.zeros(variable.shape))


@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("training", [True, False])
def test_rows_of_a_table_have_the_outputs_and_gradients_of_keras(
    training, directions
):
    """Both directions in one loop."""
    layers = [
        dssm.PeepholeLSTM(UNITS, peephole=None) for _ in range(directions)
    ]
    for number, layer in enumerate(layers):
        layer.build(INPUTS.shape)
        randomise(layer, number)
    stock = [keras.layers.RNN(x.cell, return_sequences=True) for x in layers]
    table = tf.constant(RANDOM.normal(size=(7, FEATURES)))
    # Some rows occur twice, others not at all.
    index = tf.constant([0, 5, 0, 1, 2, 3, 3, 3, 5, 1, 0, 2])
    lengths = tf.constant([3, 5, 1, 3])
    mask = tf.sequence_mask(lengths)
    errors = RANDOM.normal(size=(12, directions * UNITS))
    texts = FlatSequences(table, index, lengths)

    def ours() -> tf.Tensor:
        return run_on_rows(layers, texts, training)

    def theirs() -> tf.Tensor:
        values = texts.padded(tf.gather(table, index))
        outputs = [stock[0](values, mask=mask)]
        if directions == 2:
            turned = tf.reverse_sequence(values, lengths, seq_axis=1)
            backward = stock[1](turned, mask=mask)
            outputs.append(tf.reverse_sequence(backward, lengths, seq_axis=1))
        return tf.boolean_mask(tf.concat(outputs, axis=2), mask)

    sources = [table, *(v.value for layer in layers for v in layer.variables)]
    results = []
    for run in ours, tf.function(ours), theirs:
        with tf.GradientTape() as tape:
            tape.watch(table)
            outputs = run()
            loss = tf.reduce_sum(outputs * errors)
        gradients = tape.gradient(loss, sources)
        results.append([outputs, *map(tf.convert_to_tensor, gradients)])
    assert not results[0][1].numpy()[[4, 6]].any()  # rows that do not occur
    for eager, graph, expected in zip(*results, strict=True):
        assert np.abs(expected).max() > 1e-3
        for found in eager, graph:
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("cell", ["rnn", LSTM])
def test_a_single_sequence_has_the_last_output_of_a_packed_row(cell):
    cell = layer_of(cell).cell
    width = cell.recurrent_kernel.shape[1]
    inputs = RANDOM.normal(size=(7, width))
    for time in range(1, 8):
        values = tf.constant(inputs[:time])
        steps = pack(values[tf.newaxis], tf.constant([time]))
        expected = run_to_last_output(cell, cell.recurrent_weights(), steps)
        np.testing.assert_array_equal(
            run_single_sequence(cell, values), expected
        )


@pytest.mark.parametrize("cell", ["rnn", LSTM])
def test_padding_is_neither_read_nor_part_of_a_gradient(cell):
    recurrent = layer_of(cell)
    wild = tf.constant(np.where(MASK[:, :, np.newaxis], INPUTS, 1e3))
    with tf.GradientTape() as tape:
        tape.watch(wild)
        y = recurrent(wild, LENGTHS)
    np.testing.assert_array_equal(y, recurrent(INPUTS, LENGTHS))
    gradient = tf.convert_to_tensor(tape.gradient(y, wild)).numpy()
    assert (gradient[~MASK] == 0).all()
    assert (gradient[MASK] != 0).all()


def test_peephole_form_and_initial_values():
    layer = dssm.PeepholeLSTM(UNITS, "diagonal", forget_gate=True)
    layer.build(INPUTS.shape)
    assert [p.shape for p in layer.cell.peepholes.values()] == [(UNITS,)] * 3
    np.testing.assert_array_equal(  # i, f, g, o: the forget gate starts at 1
        layer.cell.bias, np.repeat([0, 1, 0, 0], UNITS)
    )
    full = layer_of("lstm, peepholes full, forget gate False").cell.peepholes
    assert {name: p.shape for name, p in full.items()} == {
        "i": (UNITS, UNITS), "o": (UNITS, UNITS),
    }  # fmt: skip


def test_projected_inputs_have_the_width_of_all_gates():
    cell = dssm.PeepholeLSTMCell(3, project_inputs=False)
    with pytest.raises(ValueError, match="inputs of width 12 .*, not 8"):
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
    layer: dssm.Recurrent, truncate: int | None
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


@pytest.mark.parametrize("cell", ["rnn", LSTM])
@pytest.mark.parametrize("truncate", [None, 0, 1, 2, 4, 99])
def test_truncated_gradient_is_that_of_constant_older_states(cell, truncate):
    layer = layer_of(cell, truncate=truncate)
    truncated, expected = gradients(layer, truncate)
    for one, other in zip(truncated, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-13)
    # The longest row has 5 steps: with T of 4 or more nothing is cut off.
    layer.truncate = None
    full, _ = gradients(layer, None)
    same = [np.allclose(a, b) for a, b in zip(truncated, full, strict=True)]
    assert all(same) == (truncate is None or truncate >= 4)


def test_without_sequences_there_is_one_empty_time_step():
    packing = FlatPacking.from_lengths(tf.zeros([0], tf.int32))
    assert packing.counts.numpy().tolist() == [0]
    assert packing.steps.shape == (2, 0)


def test_padding_is_zero():
    values = np.random.default_rng(0).normal(size=(3, 2))
    texts = FlatSequences(tf.constant(values), tf.range(3), tf.constant([1, 2]))
    padded = texts.padded(texts.table).numpy()
    expected = np.zeros((2, 2, 2))
    expected[0, :1], expected[1, :2] = values[:1], values[1:]
    np.testing.assert_array_equal(padded, expected)
    wider = np.pad(padded, [(0, 0), (0, 1), (0, 0)])
    again = FlatSequences.from_padded(tf.constant(wider), texts.lengths)
    np.testing.assert_array_equal(again.table, values)
