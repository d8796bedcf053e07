"""`run_single_sequence` gives what the layer gives, for any number of words."""

import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.layers.packed_sequence import PackedSequence
from keras_lstm_dssm.layers.recurrent import (
    run_single_sequence,
    run_to_last_output,
)


@pytest.mark.parametrize(
    "new_cell",
    [
        lambda: dssm.RNNCell(3),
        lambda: dssm.PeepholeLSTMCell(3, peephole="full", forget_gate=True),
    ],
)
def test_the_last_output_is_that_of_a_packed_row(new_cell):
    cell = new_cell()
    cell.build((None, 5))
    width = cell.recurrent_kernel.shape[1]
    inputs = np.random.default_rng(1).normal(size=(7, width))
    for time in range(1, 8):
        values = tf.constant(inputs[:time], tf.float32)
        packed = PackedSequence(
            values, tf.ones([time], tf.int32), tf.constant([time])
        )
        expected = run_to_last_output(cell, cell.recurrent_weights(), packed)
        np.testing.assert_array_equal(
            run_single_sequence(cell, values), expected
        )
