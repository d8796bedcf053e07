"""Sequences of rows of a table, and the order of their packed values."""

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.layers.packed_sequence import FlatPacking, FlatSequences
from tests.layers.plain_packing import Packing

LENGTHS = [2, 4, 1, 4]
RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("backward", [False, True])
def test_steps_are_those_of_packing_padded_rows(backward):
    padded = RANDOM.normal(size=(4, 4, 3))
    lengths = tf.constant(LENGTHS)
    expected = Packing.from_lengths(lengths, 4, backward)
    flat = FlatSequences.from_padded(tf.constant(padded), lengths)
    packing = FlatPacking.from_lengths(lengths)
    np.testing.assert_array_equal(packing.counts, expected.counts)
    packed = tf.gather(flat.table, packing.steps[int(backward)])
    np.testing.assert_array_equal(packed, expected.pack(padded).values)
    np.testing.assert_array_equal(
        tf.gather(packed, packing.places[int(backward)]), flat.table
    )


def test_without_sequences_there_is_one_empty_time_step():
    packing = FlatPacking.from_lengths(tf.zeros([0], tf.int32))
    assert packing.counts.numpy().tolist() == [0]
    assert packing.steps.shape == (2, 0)


def test_joined_sequences_follow_each_other():
    parts = [
        FlatSequences(
            tf.constant(RANDOM.normal(size=(rows, 2))),
            tf.constant(index),
            tf.constant(lengths),
        )
        for rows, index, lengths in [
            (3, [2, 0, 2], [1, 2]),
            (2, [1, 1, 0, 1], [3, 1]),
        ]
    ]
    both = parts[0].joined(parts[1])
    np.testing.assert_array_equal(both.lengths, [1, 2, 3, 1])
    np.testing.assert_array_equal(both.starts, [0, 1, 3, 6])
    np.testing.assert_array_equal(
        tf.gather(both.table, both.index),
        np.concatenate([tf.gather(x.table, x.index) for x in parts]),
    )


def test_padding_is_zero():
    values = RANDOM.normal(size=(3, 2))
    texts = FlatSequences(tf.constant(values), tf.range(3), tf.constant([1, 2]))
    padded = texts.padded(texts.table, 3).numpy()
    np.testing.assert_array_equal(texts.padded(texts.table), padded[:, :2])
    expected = np.zeros((2, 3, 2))
    expected[0, :1], expected[1, :2] = values[:1], values[1:]
    np.testing.assert_array_equal(padded, expected)
    again = FlatSequences.from_padded(tf.constant(padded), texts.lengths)
    np.testing.assert_array_equal(again.table, values)
