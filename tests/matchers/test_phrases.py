"""Phrases: the places of nodes, and which words are numbers."""

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.matchers.rae import phrases_of

PAST_THE_END = -9.0


def test_nodes_and_numbers():
    # Words in the places 0 to 2, inner nodes from 3 on; by text.
    nodes = np.full((3, 5, 1), PAST_THE_END)
    nodes[0, :, 0] = [1, 2, 3, 4, 5]  # three words
    nodes[1, [0, 1, 3], 0] = [6, 7, 8]  # two
    nodes[2, 0, 0] = 9  # one
    words = tf.constant([[7, 3, 12], [3, 3, 0], [8, 0, 0]])
    found = phrases_of(
        tf.constant(nodes), tf.constant([3, 2, 1]), words, tf.constant([3, 12])
    )
    np.testing.assert_array_equal(
        found.nodes[:, :, 0],
        [[1, 2, 3, 4, 5], [6, 7, 8, 0, 0], [9, 0, 0, 0, 0]],
    )
    np.testing.assert_array_equal(found.lengths, [3, 2, 1])
    np.testing.assert_array_equal(
        found.numbers, [[0, 3, 12], [3, 3, 0], [0, 0, 0]]
    )
