"""Packing and unpacking of rows of any order, in both directions."""

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.layers.packed_sequence import pack, unpack
from tests.layers.plain_packing import Packing

TIME = 5
LENGTHS = [3, 5, 1, 3]
MASK = np.arange(TIME) < np.array(LENGTHS)[:, np.newaxis]
ROWS = np.random.default_rng(0).normal(size=(4, TIME, 2))


@pytest.mark.parametrize("backward", [False, True])
def test_packing_is_pack_of_sorted_and_reversed_rows(backward):
    packing = Packing.from_lengths(tf.constant(LENGTHS), TIME, backward)
    steps = packing.pack(tf.constant(ROWS))
    rows = [row[:n] for row, n in zip(ROWS, LENGTHS, strict=True)]
    rows = [row[::-1] for row in rows] if backward else rows
    order = [1, 0, 3, 2]
    padded = np.zeros_like(ROWS)
    for place, row in enumerate(order):
        padded[place, : LENGTHS[row]] = rows[row]
    lengths = tf.constant([5, 3, 3, 1])
    for ours, expected in zip(
        steps, pack(tf.constant(padded), lengths), strict=True
    ):
        np.testing.assert_array_equal(ours, expected)
    np.testing.assert_array_equal(packing.order, order)
    np.testing.assert_array_equal(
        packing.unpack(steps.values), np.where(MASK[:, :, np.newaxis], ROWS, 0)
    )
    np.testing.assert_array_equal(unpack(steps), padded)


@pytest.mark.parametrize("backward", [False, True])
def test_the_gradients_are_the_inverse_gathers(backward):
    packing = Packing.from_lengths(tf.constant(LENGTHS), TIME, backward)
    values = tf.constant(ROWS)
    errors = tf.constant(np.random.default_rng(1).normal(size=(12, 2)))
    padded_errors = packing.unpack(errors)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([values, errors])
        packed = tf.reduce_sum(packing.pack(values).values * errors)
        unpacked = tf.reduce_sum(packing.unpack(errors) * values)
    np.testing.assert_array_equal(tape.gradient(packed, values), padded_errors)
    np.testing.assert_array_equal(
        tape.gradient(unpacked, errors), packing.pack(values).values
    )
