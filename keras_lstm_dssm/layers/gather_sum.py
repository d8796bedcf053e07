"""gather_sum: rows gathered and added, with a gradient that is as fast."""

from typing import Any

import tensorflow as tf


def gather_sum(
    values: tf.Tensor,
    index: tf.Tensor,
    segment: tf.Tensor | None = None,
    segments: tf.Tensor | None = None,
    training: bool = True,
) -> tf.Tensor:
    """Adds up rows of `values`: `y[s] = sum of values[index[j]]`.

    The sum runs over the places j whose `segment[j]` is s. The whole work
    with trigrams and words is made of it: a word's vector is the sum of its
    trigrams' rows, and a step of a sentence is the row of its word.

    TensorFlow's own gradients of a gather and of a sparse segment sum add
    rows one by one, in the order in which they come. Sorted by `index`, the
    gradient is a segment sum itself: three to four times faster.

    Args:
        values: Float tensor `(rows, width)`.
        index: int `(places,)`, rows of `values`.
        segment: int `(places,)`, ascending; `None` for a plain gather,
            where each place is a segment of its own.
        segments: Number of segments, for those at the end that have no
            place; `None` when there are none.
        training: Whether a gradient will be wanted. Without, it is still
            right, but TensorFlow's own; and a graph to export has no
            gradient of ours in it, which its readers would warn of.

    Returns:
        `(segments, width)`.

    Example:
    >>> gather_sum(tf.constant([[1.0], [10.0]]), [0, 1, 1], [0, 0, 1])
    <tf.Tensor: shape=(2, 1), dtype=float32, numpy=
    array([[11.],
           [10.]], dtype=float32)>
    """
    index = tf.convert_to_tensor(index)

    def total(values: tf.Tensor) -> tf.Tensor:
        if segment is None:
            return tf.gather(values, index)
        return tf.sparse.segment_sum(
            values, index, segment, num_segments=segments
        )

    if not training:
        return total(values)

    def gradient(error: tf.Tensor) -> tf.Tensor:
        order = tf.argsort(index)
        source = order if segment is None else tf.gather(segment, order)
        return tf.sparse.segment_sum(
            tf.convert_to_tensor(error),  # it may be that of a gather, sparse
            source,
            tf.gather(index, order),
            num_segments=tf.shape(values)[0],
        )

    @tf.custom_gradient
    def forward(values: tf.Tensor) -> tuple[tf.Tensor, Any]:
        return total(values), gradient

    return forward(values)
