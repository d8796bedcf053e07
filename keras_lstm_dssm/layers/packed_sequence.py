"""Sentences of different lengths side by side, without padding."""

from typing import NamedTuple

import tensorflow as tf


class PackedSequence(NamedTuple):
    """Time steps one after the other, each with the rows still reading.

    Rows are ordered by descending length, so that the rows that read at a
    time are the first `counts[t]` ones. Titles average 12 words and reach
    30: without packing, most of a recurrence would be padding.

    Attributes:
        values: `(sum of counts, ...)`, time-major.
        counts: int32 `(time,)`, descending, rows that read at each time.
        lengths: int32 `(rows,)`, descending.
    """

    values: tf.Tensor
    counts: tf.Tensor
    lengths: tf.Tensor

    @property
    def starts(self) -> tf.Tensor:
        """Where each time's rows begin in `values`, int32 `(time,)`."""
        return tf.cumsum(self.counts, exclusive=True)


def pack(values: tf.Tensor, lengths: tf.Tensor) -> PackedSequence:
    """Packs rows that are ordered by descending length.

    Args:
        values: `(rows, time, ...)`.
        lengths: int `(rows,)`, descending, from 1 to `time`.

    Example:
    >>> pack(tf.constant([[1, 2], [3, 0]]), tf.constant([2, 1])).values
    <tf.Tensor: shape=(3,), dtype=int32, numpy=array([1, 3, 2], dtype=int32)>
    """
    reads = tf.transpose(tf.sequence_mask(lengths, tf.shape(values)[1]))
    time_major = tf.transpose(values, [1, 0, *range(2, values.shape.rank)])
    return PackedSequence(
        tf.boolean_mask(time_major, reads),
        tf.reduce_sum(tf.cast(reads, tf.int32), axis=1),
        tf.cast(lengths, tf.int32),
    )


def unpack(steps: PackedSequence) -> tf.Tensor:
    """Puts packed rows side by side again, zero past their ends.

    Args:
        steps: Packed values, `(steps, width)`.

    Returns:
        `(rows, time, width)`.
    """
    time, rows = tf.size(steps.counts), tf.size(steps.lengths)
    reads = tf.sequence_mask(steps.lengths, time)
    time_major = tf.scatter_nd(
        tf.cast(tf.where(tf.transpose(reads)), tf.int32),  # in packed order
        steps.values,
        tf.stack([time, rows, tf.shape(steps.values)[1]]),
    )
    return tf.transpose(time_major, [1, 0, 2])
