"""`Packing`, a second implementation of the packing of padded rows.

The layers pack by `FlatPacking`, which the tests compare with it.
"""

from typing import Any, NamedTuple

import tensorflow as tf

from keras_lstm_dssm.layers.packed_sequence import PackedSequence


class Packing(NamedTuple):
    """Packs and unpacks padded rows of any order, forward or backward.

    Each direction is one gather, and so is its gradient, because packing and
    unpacking are inverse to each other. Rows that are read backward begin
    with their last value, not with padding.

    Attributes:
        counts: int32 `(time,)`, as in `PackedSequence`.
        lengths: int32 `(rows,)`, descending, as in `PackedSequence`.
        padded_index: int32 `(steps,)`, for each packed value its index among
            the `rows * time` padded ones.
        packed_index: int32 `(rows, time)`, for each padded value its index
            among the packed ones; 0 for padding.
        mask: bool `(rows, time)`, `False` for padding.
        order: int32 `(rows,)`, for each packed row its index among the padded
            ones.

    Example:
    >>> packing = Packing.from_lengths(tf.constant([1, 2]), 2, backward=True)
    >>> rows = tf.constant([[[1.0], [0.0]], [[2.0], [3.0]]])
    >>> packing.pack(rows).values[:, 0].numpy()
    array([3., 1., 2.], dtype=float32)
    """

    counts: tf.Tensor
    lengths: tf.Tensor
    padded_index: tf.Tensor
    packed_index: tf.Tensor
    mask: tf.Tensor
    order: tf.Tensor

    @classmethod
    def from_lengths(
        cls, lengths: tf.Tensor, time: tf.Tensor | int, backward: bool = False
    ) -> "Packing":
        """Compute the indices.

        Args:
            lengths: int32 `(rows,)` in any order, from 1 to `time`.
            time: Number of time steps of the padded rows.
            backward: Whether each row is packed from its last value to its
                first. Default `False`.
        """
        order = tf.argsort(lengths, direction="DESCENDING", stable=True)
        sorted_lengths = tf.gather(lengths, order)
        is_value = tf.transpose(tf.sequence_mask(sorted_lengths, time))
        counts = tf.reduce_sum(tf.cast(is_value, tf.int32), axis=1)
        steps = tf.cast(tf.where(is_value), tf.int32)  # in order of packing
        times, rows = steps[:, 0], steps[:, 1]
        now = tf.range(time)[tf.newaxis]
        if backward:
            times = tf.gather(sorted_lengths, rows) - 1 - times
            now = lengths[:, tf.newaxis] - 1 - now
        mask = tf.sequence_mask(lengths, time)
        # The value of row r at time t has the index starts[t] + r.
        starts = tf.gather(
            tf.cumsum(counts, exclusive=True), tf.where(mask, now, 0)
        )
        place = tf.math.invert_permutation(order)[:, tf.newaxis]
        return cls(
            counts,
            sorted_lengths,
            tf.gather(order, rows) * time + times,
            tf.where(mask, starts + place, 0),
            mask,
            order,
        )

    def pack(self, values: tf.Tensor) -> PackedSequence:
        """Pack padded rows, float `(rows, time, width)`."""

        @tf.custom_gradient
        def packed(values: tf.Tensor) -> Any:
            return self._gather_packed(values), self._gather_padded

        return PackedSequence(packed(values), self.counts, self.lengths)

    def unpack(self, values: tf.Tensor) -> tf.Tensor:
        """Pad packed values, float `(steps, width)`, with zeros again."""

        @tf.custom_gradient
        def padded(values: tf.Tensor) -> Any:
            return self._gather_padded(values), self._gather_packed

        return padded(values)

    def _gather_packed(self, padded: tf.Tensor) -> tf.Tensor:
        flat = tf.reshape(padded, [-1, padded.shape[-1]])
        return tf.gather(flat, self.padded_index)

    def _gather_padded(self, packed: tf.Tensor) -> tf.Tensor:
        # A gather may have followed, whose gradient is `tf.IndexedSlices`.
        values = tf.gather(tf.convert_to_tensor(packed), self.packed_index)
        zero = tf.zeros([], values.dtype)
        return tf.where(self.mask[:, :, tf.newaxis], values, zero)
