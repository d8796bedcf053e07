"""Renormalisation of each tower's gradient, Algorithm 1."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf


def renormalise(
    gradients: Sequence[Any], groups: Sequence[int], threshold: float
) -> list[Any]:
    """Scales each group's gradient down to a norm of at most `threshold`.

        if ||grad|| > th then grad <- th grad / ||grad||

    Args:
        gradients: Tensors, or `IndexedSlices` of distinct rows, see
            `sum_rows`.
        groups: The group number of each gradient; the gradients of a tower
            form one group.
        threshold: th_G, above 0.

    Returns:
        The gradients, in their order.
    """
    norms = {
        group: tf.linalg.global_norm(
            [g for g, of in zip(gradients, groups, strict=True) if of == group]
        )
        for group in set(groups)
    }
    return [
        scaled(
            gradient,
            tf.cast(
                threshold / tf.maximum(norms[group], threshold), gradient.dtype
            ),
        )
        for gradient, group in zip(gradients, groups, strict=True)
    ]


def scaled(gradient: Any, factor: tf.Tensor) -> Any:
    """Multiplies a gradient; `*` would make a sparse one dense."""
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient * factor
    return tf.IndexedSlices(
        gradient.values * factor, gradient.indices, gradient.dense_shape
    )


def sum_rows(gradient: Any) -> Any:
    """Sums rows of equal index in a sparse gradient, for its norm."""
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    indices, place = tf.unique(gradient.indices)
    values = tf.math.unsorted_segment_sum(
        gradient.values, place, tf.size(indices)
    )
    return tf.IndexedSlices(values, indices, gradient.dense_shape)
