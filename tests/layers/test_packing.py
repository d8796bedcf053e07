"""Sequences that are stored without padding: an empty batch, and padding.

`test_recurrent.py` compares networks that read them with Keras and NumPy.
"""

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.layers.packed_sequence import FlatPacking, FlatSequences


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
