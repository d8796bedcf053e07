"""LSTMs of both directions in one loop, against Keras, in float64."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.layers import PeepholeLSTM
from keras_lstm_dssm.layers.bidirectional_recurrence import (
    run_both_ways,
    run_on_rows,
)
from keras_lstm_dssm.layers.flat_packing import FlatPacking, RowSequences
from keras_lstm_dssm.layers.packed_sequence import Packing

TIME, FEATURES, UNITS = 5, 4, 3
LENGTHS = tf.constant([3, 5, 1, 3])
RANDOM = np.random.default_rng(0)
INPUTS = RANDOM.normal(size=(4, TIME, FEATURES))
MASK = np.arange(TIME) < LENGTHS.numpy()[:, np.newaxis]
ERRORS = RANDOM.normal(size=(2, 4, TIME, UNITS)) * MASK[..., np.newaxis]

pytestmark = pytest.mark.usefixtures("float64")


@pytest.mark.parametrize("training", [True, False])
def test_outputs_and_gradients_equal_those_of_keras(training: bool) -> None:
    layers = [PeepholeLSTM(UNITS, forget_gate=True) for _ in range(2)]
    for layer in layers:
        layer.build(INPUTS.shape)
        for variable in layer.variables:
            variable.assign(RANDOM.normal(size=variable.shape) * 0.7)
    stock = [keras.layers.RNN(x.cell, return_sequences=True) for x in layers]
    sources = [v.value for layer in layers for v in layer.variables]
    values = tf.constant(INPUTS)

    def ours() -> list[tf.Tensor]:
        packings = [
            Packing.from_lengths(LENGTHS, TIME, backward)
            for backward in (False, True)
        ]
        outputs = run_both_ways(
            [layer.cell for layer in layers],
            [
                layer.project(packing.pack(values).values)
                for layer, packing in zip(layers, packings, strict=True)
            ],
            packings[0].counts,
            training,
        )
        return [
            packing.unpack(y)
            for packing, y in zip(packings, outputs, strict=True)
        ]

    def theirs() -> list[tf.Tensor]:
        forward = stock[0](values, mask=MASK)
        turned = tf.reverse_sequence(values, LENGTHS, seq_axis=1)
        backward = stock[1](turned, mask=MASK)
        backward = tf.reverse_sequence(backward, LENGTHS, seq_axis=1)
        return [forward * MASK[..., None], backward * MASK[..., None]]

    results = []
    for run in ours, tf.function(ours), theirs:
        with tf.GradientTape() as tape:
            tape.watch(values)
            outputs = run()
            loss = tf.reduce_sum(tf.stack(outputs) * ERRORS)
        results.append([*outputs, *tape.gradient(loss, [values, *sources])])
    for eager, graph, expected in zip(*results, strict=True):
        expected = tf.convert_to_tensor(expected).numpy()
        assert np.abs(expected).max() > 1e-3
        for found in eager, graph:
            np.testing.assert_allclose(
                tf.convert_to_tensor(found), expected, rtol=1e-10, atol=1e-12
            )


@pytest.mark.parametrize("directions", [1, 2])
def test_rows_of_a_table_give_the_outputs_of_packed_values(
    directions: int,
) -> None:
    """And the same gradients, also of rows that occur twice or not at all."""
    layers = [PeepholeLSTM(UNITS, forget_gate=True) for _ in range(directions)]
    for layer in layers:
        layer.build(INPUTS.shape)
        for variable in layer.variables:
            variable.assign(RANDOM.normal(size=variable.shape) * 0.7)
    table = tf.constant(RANDOM.normal(size=(7, FEATURES)))
    texts = RowSequences(
        table,
        tf.constant([0, 5, 0, 1, 2, 3, 3, 3, 5, 1, 0, 2]),
        LENGTHS,
    )
    errors = RANDOM.normal(size=(12, directions * UNITS))

    def on_rows() -> tf.Tensor:
        return run_on_rows(
            [layer.cell for layer in layers],
            [layer.project(table) for layer in layers],
            texts.index,
            FlatPacking.from_lengths(LENGTHS),
            training=True,
        )

    def on_packed() -> tf.Tensor:
        padded = texts.padded(tf.gather(table, texts.index), TIME)
        packings = [
            Packing.from_lengths(LENGTHS, TIME, backward)
            for backward in (False, True)[:directions]
        ]
        outputs = run_both_ways(
            [layer.cell for layer in layers],
            [
                layer.project(packing.pack(padded).values)
                for layer, packing in zip(layers, packings, strict=True)
            ],
            packings[0].counts,
            training=True,
        )
        return tf.concat(
            [
                tf.boolean_mask(packing.unpack(y), packing.mask)
                for packing, y in zip(packings, outputs, strict=True)
            ],
            axis=1,
        )

    sources = [table, *(v.value for layer in layers for v in layer.variables)]
    results = []
    for run in on_rows, on_packed:
        with tf.GradientTape() as tape:
            tape.watch(table)
            outputs = run()
            loss = tf.reduce_sum(outputs * errors)
        gradients = tape.gradient(loss, sources)
        results.append([outputs, *map(tf.convert_to_tensor, gradients)])
    assert not results[0][1].numpy()[[4, 6]].any()  # rows that do not occur
    for found, expected in zip(*results, strict=True):
        assert np.abs(expected).max() > 1e-3
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
