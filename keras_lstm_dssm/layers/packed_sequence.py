"""Sequences of different lengths that are stored without padding."""

from typing import NamedTuple

import tensorflow as tf


class FlatSequences(NamedTuple):
    """Holds sequences of different lengths whose values are rows of a table.

    `table` is float `(rows, width)`, such as the vectors of distinct words;
    `index`, int32 `(values,)`, the row of each value, one sequence after the
    other; `lengths`, int32 `(sequences,)`, in any order, each at least 1.
    """

    table: tf.Tensor
    index: tf.Tensor
    lengths: tf.Tensor

    @classmethod
    def from_padded(
        cls, vectors: tf.Tensor, lengths: tf.Tensor
    ) -> "FlatSequences":
        """Takes the values without padding from `(sequences, time, width)`."""
        is_value = tf.sequence_mask(lengths, tf.shape(vectors)[1])
        table = tf.boolean_mask(vectors, is_value)
        return cls(table, tf.range(tf.shape(table)[0]), lengths)

    def joined(self, other: "FlatSequences") -> "FlatSequences":
        """Returns these sequences, followed by those of another object."""
        return FlatSequences(
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

    def padded(self, values: tf.Tensor) -> tf.Tensor:
        """Arranges values by sequence; zeros follow the end of each one.

        Returns `(sequences, time, width)`, with the time of the longest one.
        """
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

    The values lie one sequence after the other. Packed, all sequences at time 0
    come first, the longest one before the others, as in `PackedSequence`, with
    its `counts`; read backward, a sequence begins with its last value. `steps`,
    int32 `(2, values)`, has the index of the value of each packed step, forward
    and backward.
    """

    counts: tf.Tensor
    steps: tf.Tensor

    @classmethod
    def from_lengths(cls, lengths: tf.Tensor) -> "FlatPacking":
        """Computes the indices from lengths `(sequences,)`, in any order."""
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
        """The packed step of each value, `(values,)`, in both directions."""
        forward, backward = tf.unstack(self.steps)
        invert = tf.math.invert_permutation
        return invert(forward), invert(backward)


class PackedSequence(NamedTuple):
    """Holds sequences of different lengths without padding.

    The values of all rows at time 0 come first, then those at time 1, and so
    on. Rows are ordered by descending length, so the rows that have a value
    at time t are the first `counts[t]` ones. Titles have 12 words on average
    and 30 at most: in padded batches most steps would be padding.
    """

    values: tf.Tensor  # the packed values, `(sum of counts, ...)`
    # int32 `(time,)`, descending, the number of rows longer than t.
    counts: tf.Tensor
    # int32 `(rows,)`, descending, the number of values of a row.
    lengths: tf.Tensor

    @property
    def starts(self) -> tf.Tensor:
        """The index in `values` at which each time begins, int32 `(time,)`."""
        return tf.cumsum(self.counts, exclusive=True)


def pack(values: tf.Tensor, lengths: tf.Tensor) -> PackedSequence:
    """Packs rows `(rows, time, ...)` that are ordered by descending length."""
    is_value = tf.transpose(tf.sequence_mask(lengths, tf.shape(values)[1]))
    time_major = tf.transpose(values, [1, 0, *range(2, values.shape.rank)])
    return PackedSequence(
        tf.boolean_mask(time_major, is_value),
        tf.reduce_sum(tf.cast(is_value, tf.int32), axis=1),
        tf.cast(lengths, tf.int32),
    )


def unpack(steps: PackedSequence) -> tf.Tensor:
    """Arranges packed values by row, `(rows, time, width)`, padded with 0."""
    time, rows = tf.size(steps.counts), tf.size(steps.lengths)
    is_value = tf.transpose(tf.sequence_mask(steps.lengths, time))
    time_major = tf.scatter_nd(
        tf.cast(tf.where(is_value), tf.int32),  # in the order of packing
        steps.values,
        tf.stack([time, rows, tf.shape(steps.values)[1]]),
    )
    return tf.transpose(time_major, [1, 0, 2])


def last_values(values: tf.Tensor, steps: PackedSequence) -> tf.Tensor:
    """Takes each row's value at its last step, `(rows, units)`."""
    rows = tf.range(tf.size(steps.lengths))
    return tf.gather(values, tf.gather(steps.starts, steps.lengths - 1) + rows)


def earlier_values(values: tf.Tensor, counts: tf.Tensor) -> tf.Tensor:
    """Takes the value of the same row one step earlier, from time 1 on.

    Takes packed values `(steps, units)`; those of time 0 have none earlier.
    """
    # Row r at time t has the index starts[t] + r, and starts[t-1] + r before.
    index = tf.range(tf.reduce_sum(counts[:1]), tf.shape(values)[0])
    return tf.gather(values, index - tf.repeat(counts[:-1], counts[1:]))


def last_rows(values: tf.Tensor, like: tf.Tensor) -> tf.Tensor:
    """Returns the last rows of `values`, as many as the tensor `like` has."""
    return values[tf.shape(values)[0] - tf.shape(like)[0] :]
