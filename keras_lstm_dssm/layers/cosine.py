"""Cosine similarity R(Q, D), eq. (3), defined for zero vectors, too."""

from typing import Any

import tensorflow as tf

from keras_lstm_dssm.custom_gradient import custom_gradient


def unit(y: tf.Tensor) -> tf.Tensor:
    """Scales vectors to unit length.

    A zero vector (sum of squares up to 1e-30) becomes the first basis vector
    and gets no gradient. A plain division would give NaN there, and an
    epsilon in the denominator a gradient of 1e6. A vector with a NaN stays
    NaN, so that training stops.

    Args:
        y: Float tensor `(..., d)`.

    Returns:
        Tensor of the same shape, whose vectors have length 1.

    Example:
    >>> unit(tf.constant([[0.0, 2.0], [0.0, 0.0]])).numpy().tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    return _unit_and_scale(y)[0]


def _unit_and_scale(y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns unit vectors as `unit` does, and what each was multiplied by.

    The factors are `(..., 1)`; 0 for a zero vector, which has no gradient.
    """
    square = tf.reduce_sum(y * y, axis=-1, keepdims=True)
    zero = square <= 1e-30  # False for NaN
    basis = tf.one_hot(0, tf.shape(y)[-1], dtype=y.dtype)
    scale = tf.math.rsqrt(tf.where(zero, tf.ones_like(square), square))
    return (
        tf.where(zero, basis, y * scale),
        tf.where(zero, tf.zeros_like(scale), scale),
    )


def cosine_pairs(query: tf.Tensor, document: tf.Tensor) -> tf.Tensor:
    """Computes R of each query and the document of the same index, (3).

    Vectors `(..., d)` are broadcast; values are in [-1, 1].
    """
    return tf.reduce_sum(unit(query) * unit(document), axis=-1)


def cosine_matrix(query: tf.Tensor, document: tf.Tensor) -> tf.Tensor:
    """Computes R of every query and every document, (3).

    Returns `(queries, documents)`. Its gradient is (15), for all pairs at once.
    """

    @custom_gradient
    def cosines(query: tf.Tensor, document: tf.Tensor) -> Any:
        q, query_scale = _unit_and_scale(query)
        d, document_scale = _unit_and_scale(document)
        result = tf.matmul(q, d, transpose_b=True)

        def gradient(error: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            # What (15) subtracts: the part along the vector itself.
            along = error * result
            of_query = tf.matmul(error, d)
            of_query -= q * tf.reduce_sum(along, axis=1)[:, tf.newaxis]
            of_document = tf.matmul(error, q, transpose_a=True)
            of_document -= d * tf.reduce_sum(along, axis=0)[:, tf.newaxis]
            return of_query * query_scale, of_document * document_scale

        return result, gradient

    return cosines(query, document)
