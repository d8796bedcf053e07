"""RowSequences, FlatPacking: sequences stored and packed without padding."""

from typing import NamedTuple

import tensorflow as tf


class RowSequences(NamedTuple):
    """Holds sequences of different lengths whose values are rows of a table.

    Attributes:
        table: Float `(rows, width)`, such as the vectors of the distinct
            words of a batch.
        index: int32 `(values,)`, the row of each value of each sequence, one
            sequence after the other.
        lengths: int32 `(sequences,)`, in any order, each at least 1.
    """

    table: tf.Tensor
    index: tf.Tensor
    lengths: tf.Tensor

    @classmethod
    def from_padded(
        cls, vectors: tf.Tensor, lengths: tf.Tensor
    ) -> "RowSequences":
        """Convert padded sequences; each value becomes a row of the table.

        Args:
            vectors: Float `(sequences, time, width)`.
            lengths: int32 `(sequences,)`.
        """
        is_value = tf.sequence_mask(lengths, tf.shape(vectors)[1])
        table = tf.boolean_mask(vectors, is_value)
        return cls(table, tf.range(tf.shape(table)[0]), lengths)

    def joined(self, other: "RowSequences") -> "RowSequences":
        """Append other sequences."""
        return RowSequences(
            tf.concat([self.table, other.table], axis=0),
            tf.concat(
                [self.index, other.index + tf.shape(self.table)[0]], axis=0
            ),
            tf.concat([self.lengths, other.lengths], axis=0),
        )

    @property
    def starts(self) -> tf.Tensor:
        """Index of the first value of each sequence, int32 `(sequences,)`."""
        return tf.cumsum(self.lengths, exclusive=True)

    def padded(
        self, values: tf.Tensor, time: tf.Tensor | None = None
    ) -> tf.Tensor:
        """Pad a result for each value, such as the outputs of an LSTM.

        Args:
            values: `(values, width)`.
            time: Number of time steps, at least the longest length. Default
                `None`: the longest length, at least 1.

        Returns:
            `(sequences, time, width)`, 0 past the end of a sequence.
        """
        if time is None:
            time = tf.maximum(tf.reduce_max(self.lengths), 1)
        is_value = tf.sequence_mask(self.lengths, time)
        index = self.starts[:, tf.newaxis] + tf.range(time)
        return tf.where(
            is_value[:, :, tf.newaxis],
            tf.gather(values, tf.where(is_value, index, 0)),
            tf.zeros([], values.dtype),
        )


class FlatPacking(NamedTuple):
    """Holds the indices that pack sequences for reading forward and backward.

    The values lie one sequence after the other. Packed, all sequences at time
    0 come first, the longest one before the others, as in `PackedSequence`;
    read backward, a sequence begins with its last value.

    Attributes:
        counts: int32 `(time,)`, as in `PackedSequence`.
        steps: int32 `(2, values)`, for each packed step the index of its
            value, forward and backward.

    Example:
    >>> FlatPacking.from_lengths(tf.constant([1, 2])).steps.numpy()
    array([[1, 0, 2],
           [2, 0, 1]], dtype=int32)
    """

    counts: tf.Tensor
    steps: tf.Tensor

    @classmethod
    def from_lengths(cls, lengths: tf.Tensor) -> "FlatPacking":
        """Compute the indices from the lengths of the sequences.

        Args:
            lengths: int32 `(sequences,)`, in any order, each at least 1.
        """
        order = tf.argsort(lengths, direction="DESCENDING", stable=True)
        descending = tf.gather(lengths, order)
        starts = tf.gather(tf.cumsum(lengths, exclusive=True), order)
        # Without sequences there is a time step, too, of no values.
        time = tf.maximum(tf.reduce_max(lengths), 1)
        is_value = tf.transpose(tf.sequence_mask(descending, time))
        steps = tf.cast(tf.where(is_value), tf.int32)  # in order of packing
        now, sequence = steps[:, 0], steps[:, 1]
        first = tf.gather(starts, sequence)
        last = first + tf.gather(descending, sequence) - 1
        return cls(
            tf.reduce_sum(tf.cast(is_value, tf.int32), axis=1),
            tf.stack([first + now, last - now]),
        )

    @property
    def places(self) -> tuple[tf.Tensor, tf.Tensor]:
        """The packed step of each value, forward and backward.

        Both are int32 `(values,)`.
        """
        forward, backward = tf.unstack(self.steps)
        invert = tf.math.invert_permutation
        return invert(forward), invert(backward)
