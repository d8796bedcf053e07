"""Phrases: all nodes of the tree of a text, and its numbers."""

from typing import NamedTuple

import tensorflow as tf


class Phrases(NamedTuple):
    """Holds what the head `"pool"` of `RAE` reads of each text.

    Attributes:
        nodes: Float `[texts, 2 * time - 1, dimension]`: the word vectors,
            then the inner nodes of the tree, then zeros.
        lengths: int32 `[texts]`, number of words.
        numbers: int32 `[texts, time]`, the vocabulary ids of the words that
            are numbers; 0 for other words and past the end.
    """

    nodes: tf.Tensor
    lengths: tf.Tensor
    numbers: tf.Tensor


def phrases_of(
    nodes: tf.Tensor,
    lengths: tf.Tensor,
    words: tf.Tensor,
    number_words: tf.Tensor,
) -> Phrases:
    """Arranges the nodes of each text, and finds its numbers.

    Args:
        nodes: Float `[texts, 2 * time - 1, dimension]`, the first `time` are
            words, from which the inner nodes follow; those past a text's end
            are not read.
        lengths: int32 `[texts]`, number of words.
        words: int32 `[texts, time]`, the vocabulary ids of the words.
        number_words: int32 `[n]`, ascending, the vocabulary ids that are
            numbers.

    Example:
    >>> phrases_of(nodes, [2], [[7, 3, 0]], [3]).numbers.numpy()
    array([[0, 3, 0]], dtype=int32)
    """
    time = tf.shape(words)[1]
    # The inner nodes follow right after the words of each text.
    position = tf.range(2 * time - 1)[tf.newaxis]
    length = tf.convert_to_tensor(lengths)[:, tf.newaxis]
    place = tf.where(
        position < length,
        position,
        tf.minimum(position - length + time, 2 * time - 2),
    )
    real = tf.cast(position < 2 * length - 1, nodes.dtype)
    nodes = tf.gather(nodes, place, batch_dims=1) * real[:, :, tf.newaxis]
    row = tf.searchsorted(number_words, tf.reshape(words, [-1]))
    found = tf.gather(number_words, tf.minimum(row, tf.size(number_words) - 1))
    is_number = tf.equal(tf.reshape(found, tf.shape(words)), words)
    return Phrases(nodes, lengths, tf.where(is_number, words, 0))
