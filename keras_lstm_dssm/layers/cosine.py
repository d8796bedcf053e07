"""Cosine similarity R(Q, D), eq. (3), defined for every vector."""

import tensorflow as tf


def unit(y: tf.Tensor) -> tf.Tensor:
    """Scales vectors to unit length, exactly and without an epsilon.

    A vector of no length (square sum under 1e-30) has no direction; it
    becomes the first basis vector, and no gradient flows through it, where
    a plain division would give NaN and an epsilon a gradient of 1e6. A
    vector that holds NaN stays NaN, so that training and users notice.

    Args:
        y: Float tensor `(..., d)`.

    Returns:
        Tensor of the same shape, every vector of length 1.
    """
    square = tf.reduce_sum(y * y, axis=-1, keepdims=True)
    zero = square <= 1e-30  # false for NaN
    basis = tf.one_hot(0, tf.shape(y)[-1], dtype=y.dtype)
    square = tf.where(zero, tf.ones_like(square), square)
    return tf.where(zero, basis, y * tf.math.rsqrt(square))


def cosine_pairs(query: tf.Tensor, document: tf.Tensor) -> tf.Tensor:
    """R of each query with the document(s) beside it, (3).

    Args:
        query: `(..., d)`.
        document: `(..., d)`, broadcast against `query`.

    Returns:
        `(...)`, values in [-1, 1].
    """
    return tf.reduce_sum(unit(query) * unit(document), axis=-1)


def cosine_matrix(query: tf.Tensor, document: tf.Tensor) -> tf.Tensor:
    """R of every query with every document, (3).

    Args:
        query: `(queries, d)`.
        document: `(documents, d)`.

    Returns:
        `(queries, documents)`.
    """
    return tf.matmul(unit(query), unit(document), transpose_b=True)
