"""LSTMs of both directions in one loop, against Keras, in float64."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.layers import PeepholeLSTM
from keras_lstm_dssm.layers.bidirectional_recurrence import run_on_rows
from keras_lstm_dssm.layers.packed_sequence import FlatSequences

TIME, FEATURES, UNITS = 5, 4, 3
LENGTHS = tf.constant([3, 5, 1, 3])
RANDOM = np.random.default_rng(0)
TABLE = tf.constant(RANDOM.normal(size=(7, FEATURES)))
# Some rows occur twice, others not at all.
INDEX = tf.constant([0, 5, 0, 1, 2, 3, 3, 3, 5, 1, 0, 2])
MASK = np.arange(TIME) < LENGTHS.numpy()[:, np.newaxis]

pytestmark = pytest.mark.usefixtures("float64")


@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("training", [True, False])
def test_outputs_and_gradients_equal_those_of_keras(training, directions):
    layers = [PeepholeLSTM(UNITS, forget_gate=True) for _ in range(directions)]
    for layer in layers:
        layer.build((None, TIME, FEATURES))
        for variable in layer.variables:
            variable.assign(RANDOM.normal(size=variable.shape) * 0.7)
    stock = [keras.layers.RNN(x.cell, return_sequences=True) for x in layers]
    errors = RANDOM.normal(size=(12, directions * UNITS))

    texts = FlatSequences(TABLE, INDEX, LENGTHS)

    def ours() -> tf.Tensor:
        return run_on_rows(layers, texts, training)

    def theirs() -> tf.Tensor:
        values = texts.padded(tf.gather(TABLE, INDEX), TIME)
        outputs = [stock[0](values, mask=MASK)]
        if directions == 2:
            turned = tf.reverse_sequence(values, LENGTHS, seq_axis=1)
            backward = stock[1](turned, mask=MASK)
            outputs.append(tf.reverse_sequence(backward, LENGTHS, seq_axis=1))
        return tf.boolean_mask(tf.concat(outputs, axis=2), MASK)

    sources = [TABLE, *(v.value for layer in layers for v in layer.variables)]
    results = []
    for run in ours, tf.function(ours), theirs:
        with tf.GradientTape() as tape:
            tape.watch(TABLE)
            outputs = run()
            loss = tf.reduce_sum(outputs * errors)
        gradients = tape.gradient(loss, sources)
        results.append([outputs, *map(tf.convert_to_tensor, gradients)])
    assert not results[0][1].numpy()[[4, 6]].any()  # rows that do not occur
    for eager, graph, expected in zip(*results, strict=True):
        assert np.abs(expected).max() > 1e-3
        for found in eager, graph:
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
