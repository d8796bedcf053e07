"""Distances of two sets of vectors, and equality of two sets of numbers."""

import numpy as np
import tensorflow as tf


def distances(query: tf.Tensor, document: tf.Tensor) -> tf.Tensor:
    """Compute the Euclidean distances of vectors.

    The gradient is not defined where two vectors are equal.

    Args:
        query: `(pairs, m, dimension)`.
        document: `(pairs, n, dimension)`.

    Returns:
        `(pairs, m, n)`.
    """
    squares = (
        tf.reduce_sum(query * query, -1)[:, :, tf.newaxis]
        + tf.reduce_sum(document * document, -1)[:, tf.newaxis]
    )
    difference = squares - 2 * tf.matmul(query, document, transpose_b=True)
    # Below its rounding error a distance is 0. The root of that error would
    # make equal vectors differ, and by other amounts in other batches.
    error = 64 * np.finfo(query.dtype.as_numpy_dtype).eps
    positive = difference > error * squares
    return tf.sqrt(tf.where(positive, difference, tf.zeros_like(difference)))


def same_numbers(
    query: tf.Tensor, document: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Compare the sets of numbers of two texts.

    Args:
        query: Ids of numbers, int32 `(pairs, m)`, any of them repeated; 0 is
            none.
        document: The same, `(pairs, n)`.

    Returns:
        Three of bool `(pairs,)`: the sets are equal; they are equal and not
        empty; one is a subset of the other.
    """
    equal = tf.equal(query[:, :, tf.newaxis], document[:, tf.newaxis])
    inside = tf.reduce_all(tf.reduce_any(equal, 2) | (query <= 0), 1)
    around = tf.reduce_all(tf.reduce_any(equal, 1) | (document <= 0), 1)
    same = inside & around
    return same, same & tf.reduce_any(query > 0, 1), inside | around
