"""Sequences without padding: which value follows which, by plain Python."""

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.layers.packed_sequence import (
    FlatPacking,
    FlatSequences,
    pack,
    unpack,
)

RANDOM = np.random.default_rng(0)


def packed_places(lengths: list[int], backward: bool) -> list[tuple[int, int]]:
    """Row and time of each packed value: all first ones, longest row first."""
    order = sorted(range(len(lengths)), key=lambda row: -lengths[row])
    return [
        (row, lengths[row] - 1 - time if backward else time)
        for time in range(max(lengths))
        for row in order
        if time < lengths[row]
    ]


def test_rows_are_packed_and_padded_again():
    lengths = [4, 2, 2, 1]
    rows = RANDOM.normal(size=(4, 4, 3))
    rows *= np.arange(4)[:, np.newaxis] < np.reshape(lengths, (4, 1, 1))
    steps = pack(tf.constant(rows), tf.constant(lengths))
    expected = [rows[place] for place in packed_places(lengths, False)]
    np.testing.assert_array_equal(steps.values, expected)
    np.testing.assert_array_equal(steps.counts, [4, 3, 1, 1])
    np.testing.assert_array_equal(steps.starts, [0, 4, 7, 8])
    np.testing.assert_array_equal(steps.lengths, lengths)
    np.testing.assert_array_equal(unpack(steps), rows)


@pytest.mark.parametrize("backward", [False, True])
def test_values_of_flat_sequences_are_packed_in_both_directions(backward):
    lengths = [2, 4, 1, 4]
    padded = RANDOM.normal(size=(4, 4, 3))
    flat = FlatSequences.from_padded(tf.constant(padded), tf.constant(lengths))
    packing = FlatPacking.from_lengths(tf.constant(lengths))
    np.testing.assert_array_equal(packing.counts, [4, 3, 2, 2])
    packed = tf.gather(flat.table, packing.steps[int(backward)])
    expected = [padded[place] for place in packed_places(lengths, backward)]
    np.testing.assert_array_equal(packed, expected)
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
            tf.constant(RANDOM.normal(size=(rows, 2))), tf.constant(index),
            tf.constant(lengths),
        )
        for rows, index, lengths in [
            (3, [2, 0, 2], [1, 2]), (2, [1, 1, 0, 1], [3, 1]),
        ]
    ]  # fmt: skip
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
    padded = texts.padded(texts.table).numpy()
    expected = np.zeros((2, 2, 2))
    expected[0, :1], expected[1, :2] = values[:1], values[1:]
    np.testing.assert_array_equal(padded, expected)
    wider = np.pad(padded, [(0, 0), (0, 1), (0, 0)])
    again = FlatSequences.from_padded(tf.constant(wider), texts.lengths)
    np.testing.assert_array_equal(again.table, values)
