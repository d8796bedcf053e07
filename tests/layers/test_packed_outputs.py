"""Outputs at all steps of packed rows, against Keras, in float64."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm import InputError, PeepholeLSTM, Recurrent, RNNCell
from tests import reference
from tests.layers.plain_packing import Packing

TIME, FEATURES, UNITS = 5, 4, 3
LENGTHS = [3, 5, 1, 3]
RANDOM = np.random.default_rng(0)
INPUTS = RANDOM.normal(size=(len(LENGTHS), TIME, FEATURES))
MASK = np.arange(TIME) < np.array(LENGTHS)[:, np.newaxis]
ERRORS = RANDOM.normal(size=(len(LENGTHS), TIME, UNITS))

pytestmark = pytest.mark.usefixtures("float64")
LAYERS = [
    *itertools.product(["lstm"], [None, "diagonal", "full"], [False, True]),
    ("rnn", None, False),
]


def layer_of(kind: str, peephole: str | None, forget_gate: bool) -> Recurrent:
    layer = (
        Recurrent(RNNCell(UNITS), return_sequences=True)
        if kind == "rnn"
        else PeepholeLSTM(UNITS, peephole, forget_gate, return_sequences=True)
    )
    layer.build(INPUTS.shape)
    for variable in layer.variables:
        variable.assign(RANDOM.normal(size=variable.shape) * 0.7)
    return layer


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize(("kind", "peephole", "forget_gate"), LAYERS)
def test_all_outputs_and_their_gradients_equal_those_of_keras(
    kind, peephole, forget_gate, backward
):
    layer = layer_of(kind, peephole, forget_gate)
    stock = keras.layers.RNN(layer.cell, return_sequences=True)
    weights = [variable.value for variable in layer.variables]
    values, lengths = tf.constant(INPUTS), tf.constant(LENGTHS)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(values)
        packing = Packing.from_lengths(lengths, TIME, backward)
        steps = packing.pack(layer.project(values))
        outputs = packing.unpack(layer(steps, training=True).values)
        if backward:
            turned = tf.reverse_sequence(values, lengths, seq_axis=1)
            expected = stock(turned, mask=tf.constant(MASK))
            expected = tf.reverse_sequence(expected, lengths, seq_axis=1)
        else:
            expected = stock(values, mask=tf.constant(MASK))
        loss = tf.reduce_sum(outputs * ERRORS)
        expected *= tf.constant(MASK[:, :, np.newaxis], tf.float64)
        expected_loss = tf.reduce_sum(expected * ERRORS)
    np.testing.assert_allclose(outputs, expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(outputs.numpy()[~MASK], 0)
    sources = [values, *weights]
    for ours, theirs in zip(
        tape.gradient(loss, sources),
        tape.gradient(expected_loss, sources),
        strict=True,
    ):
        ours, theirs = (tf.convert_to_tensor(one) for one in (ours, theirs))
        assert np.abs(theirs).max() > 1e-3
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


def test_outputs_at_all_steps_do_not_depend_on_training():
    layer = layer_of("lstm", None, True)
    packing = Packing.from_lengths(tf.constant(LENGTHS), TIME)
    steps = packing.pack(layer.project(tf.constant(INPUTS)))
    np.testing.assert_array_equal(
        layer(steps, training=True).values, layer(steps).values
    )


def test_without_peepholes_it_is_the_lstm_of_numpy_and_of_keras():
    """The LSTM of Wan et al. 2016: i, f, o and c without peepholes."""
    layer = layer_of("lstm", None, True)
    stock = keras.layers.LSTM(UNITS, return_sequences=True)
    stock.build(INPUTS.shape)
    stock.set_weights(layer.get_weights())  # both have the order i, f, c, o
    packing = Packing.from_lengths(tf.constant(LENGTHS), TIME)
    steps = packing.pack(layer.project(tf.constant(INPUTS)))
    outputs = packing.unpack(layer(steps).values)
    every = stock(INPUTS)
    gates = reference.gates_of(layer.cell, layer.cell.kernel)
    for row, length in enumerate(LENGTHS):
        expected = reference.lstm(gates, INPUTS[row, :length])["y"]
        for y in outputs[row, :length], every[row, :length]:
            np.testing.assert_allclose(y, expected, rtol=1e-12, atol=1e-14)


def test_states_and_other_orders_need_padded_rows():
    packing = Packing.from_lengths(tf.constant(LENGTHS), TIME)
    steps = packing.pack(tf.constant(INPUTS))
    for argument in "return_state", "go_backwards":
        layer = Recurrent(RNNCell(UNITS), **{argument: True})
        with pytest.raises(InputError, match="read forward"):
            layer(steps)


@pytest.mark.parametrize("time", [0, TIME])
@pytest.mark.parametrize("at_all_steps", [False, True])
def test_a_batch_without_rows_has_a_gradient(time, at_all_steps):
    layer = PeepholeLSTM(UNITS, "full", True, return_sequences=at_all_steps)
    layer.build((None, None, FEATURES))
    lengths = tf.zeros([0], tf.int32)

    @tf.function
    def gradients(values: tf.Tensor) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            packing = Packing.from_lengths(lengths, time)
            steps = packing.pack(layer.project(values))
            outputs = layer(steps, training=True)
            loss = tf.reduce_sum(outputs.values if at_all_steps else outputs)
        return tape.gradient(loss, layer.trainable_variables)

    found = gradients(tf.zeros([0, time, FEATURES], tf.float64))
    assert len(found) == 6
    for gradient, variable in zip(
        found, layer.trainable_variables, strict=True
    ):
        np.testing.assert_array_equal(gradient, np.zeros(variable.shape))
