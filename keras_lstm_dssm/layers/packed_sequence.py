"""PackedSequence: sequences of different lengths without padding."""

from typing import Any, NamedTuple

import tensorflow as tf


class PackedSequence(NamedTuple):
    """Holds sequences of different lengths without padding.

    The values of all rows at time 0 come first, then those at time 1, and so
    on. Rows are ordered by descending length, so the rows that have a value
    at time t are the first `counts[t]` ones. Titles have 12 words on average
    and 30 at most: in padded batches most steps would be padding.

    Attributes:
        values: The packed values, `(sum of counts, ...)`.
        counts: int32 `(time,)`, descending, the number of rows longer than t.
        lengths: int32 `(rows,)`, descending, the number of values of a row.
    """

    values: tf.Tensor
    counts: tf.Tensor
    lengths: tf.Tensor

    @property
    def starts(self) -> tf.Tensor:
        """The index in `values` at which each time begins, int32 `(time,)`."""
        return tf.cumsum(self.counts, exclusive=True)


def pack(values: tf.Tensor, lengths: tf.Tensor) -> PackedSequence:
    """Pack rows that are ordered by descending length.

    Args:
        values: Padded rows, `(rows, time, ...)`.
        lengths: int `(rows,)`, descending, from 1 to `time`.

    Example:
    >>> pack(tf.constant([[1, 2], [3, 0]]), tf.constant([2, 1])).values
    <tf.Tensor: shape=(3,), dtype=int32, numpy=array([1, 3, 2], dtype=int32)>
    """
    is_value = tf.transpose(tf.sequence_mask(lengths, tf.shape(values)[1]))
    time_major = tf.transpose(values, [1, 0, *range(2, values.shape.rank)])
    return PackedSequence(
        tf.boolean_mask(time_major, is_value),
        tf.reduce_sum(tf.cast(is_value, tf.int32), axis=1),
        tf.cast(lengths, tf.int32),
    )


def unpack(steps: PackedSequence) -> tf.Tensor:
    """Pad packed rows with zeros again, the inverse of `pack`.

    Args:
        steps: Packed rows, whose values are `(steps, width)`.

    Returns:
        `(rows, time, width)`.
    """
    time, rows = tf.size(steps.counts), tf.size(steps.lengths)
    is_value = tf.transpose(tf.sequence_mask(steps.lengths, time))
    time_major = tf.scatter_nd(
        tf.cast(tf.where(is_value), tf.int32),  # in the order of packing
        steps.values,
        tf.stack([time, rows, tf.shape(steps.values)[1]]),
    )
    return tf.transpose(time_major, [1, 0, 2])


def last_values(values: tf.Tensor, steps: PackedSequence) -> tf.Tensor:
    """Take each row's value at its last step.

    Args:
        values: `(steps, units)`, packed like `steps.values`.
        steps: Packed rows, of which only `counts` and `lengths` are read.

    Returns:
        `(rows, units)`.
    """
    rows = tf.range(tf.size(steps.lengths))
    return tf.gather(values, tf.gather(steps.starts, steps.lengths - 1) + rows)


def reverse(steps: PackedSequence) -> PackedSequence:
    """Put the values of each row in the opposite order.

    A second call restores the first order.

    Args:
        steps: Packed rows.

    Example:
    >>> reverse(pack(tf.constant([[1, 2], [3, 0]]), tf.constant([2, 1]))).values
    <tf.Tensor: shape=(3,), dtype=int32, numpy=array([2, 3, 1], dtype=int32)>
    """
    # The value of row r at time t has the index starts[t] + r.
    times = tf.repeat(tf.range(tf.size(steps.counts)), steps.counts)
    rows = tf.range(tf.size(times)) - tf.gather(steps.starts, times)
    mirrored_times = tf.gather(steps.lengths, rows) - 1 - times
    index = tf.gather(steps.starts, mirrored_times) + rows

    @tf.custom_gradient
    def permute(values: tf.Tensor) -> Any:
        def gradient(error: tf.Tensor) -> tf.Tensor:
            # The permutation is its own inverse, so this takes no scatter.
            return tf.gather(tf.convert_to_tensor(error), index)

        return tf.gather(values, index), gradient

    return steps._replace(values=permute(steps.values))
