"""The recurrence over packed sequences: forward, and backward by hand."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import tensorflow as tf

from keras_lstm_dssm.layers.cells import GatedCell, Tensors


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


Arrays = dict[str, tf.TensorArray]


def read_forward(
    cell: GatedCell,
    weights: Tensors,
    steps: PackedSequence,
    names: Sequence[str],
) -> Arrays:
    """Runs a cell from zero states over packed inputs.

    Args:
        cell: Gives `step`.
        weights: From `cell.recurrent_weights`.
        steps: Its values are `cell.project`ed, `(steps, gates * units)`.
        names: Activations wanted.

    Returns:
        Each activation by time: element t has the `counts[t]` rows that
        read then, so that `concat()` gives packed values.
    """

    def write(t: tf.Tensor, now: Tensors, arrays: Arrays) -> Arrays:
        return {
            name: array.write(t, now[name]) for name, array in arrays.items()
        }

    return _loop(cell, weights, steps, names, write)


def read_last(
    cell: GatedCell, weights: Tensors, steps: PackedSequence
) -> tf.Tensor:
    """Runs a cell as `read_forward` does, to y at the rows' last words.

    Keeps nothing else, which is all that encoding needs.

    Returns:
        `(rows, units)`.
    """
    time = tf.size(steps.counts)
    reading_next = tf.pad(steps.counts[1:], [[0, 1]])

    def write(t: tf.Tensor, now: Tensors, arrays: Arrays) -> Arrays:
        # The longest rows are the first ones, and the last to end.
        ended = now["y"][reading_next[t] :]
        return {"y": arrays["y"].write(time - 1 - t, ended)}

    return _loop(cell, weights, steps, ["y"], write)["y"].concat()


def _loop(
    cell: GatedCell,
    weights: Tensors,
    steps: PackedSequence,
    names: Sequence[str],
    write: Callable[[tf.Tensor, Tensors, Arrays], Arrays],
) -> Arrays:
    """Steps through time.

    At each time only the rows that still read take part: those behind them
    have ended, and their states stay where they are.
    """
    time, starts = tf.size(steps.counts), steps.starts
    dtype = steps.values.dtype

    def body(
        t: tf.Tensor, states: Tensors, arrays: Arrays
    ) -> tuple[tf.Tensor, Tensors, Arrays]:
        rows = steps.counts[t]
        x = steps.values[starts[t] : starts[t] + rows]
        states = {name: state[:rows] for name, state in states.items()}
        now = cell.step(x, states, weights)
        states = {name: now[name] for name in states}
        return t + 1, states, write(t, now, arrays)

    rows = tf.shape(steps.lengths)[0]
    states = {
        name: tf.zeros([rows, cell.units], dtype) for name in cell.state_names
    }
    wide = tf.TensorShape([None, cell.units])
    arrays = {
        name: tf.TensorArray(
            dtype,
            time,
            element_shape=wide,
            infer_shape=False,
            clear_after_read=False,
        )
        for name in names
    }
    _, _, arrays = tf.while_loop(
        lambda t, *_: t < time,
        body,
        (tf.constant(0), states, arrays),
        shape_invariants=(
            tf.TensorShape([]),
            dict.fromkeys(states, wide),
            dict.fromkeys(names, tf.TensorShape(None)),
        ),
    )
    return arrays


def read_backward(
    cell: GatedCell,
    weights: Tensors,
    steps: PackedSequence,
    now: Arrays,
    error: tf.Tensor,
    truncate: int | None,
) -> tuple[tf.Tensor, Tensors]:
    """Back-propagates through time from y at each row's last word.

    The loop carries the error signals only. What the weights get, a sum of
    outer products over all steps (Appendix A), is left to one large matrix
    product each, the paper's "one large update".

    Args:
        cell: Gives `backpropagate` and `weight_gradients`.
        weights: As for `read_forward`.
        steps: As for `read_forward`.
        now: All activations, from `read_forward`.
        error: Derivative by y at the rows' last words, `(rows, units)`.
        truncate: Steps that the error reaches back, the T of (7).

    Returns:
        Derivatives by the values of `steps`, and by the weights.
    """
    states = {name: now[name].concat() for name in cell.remembered}
    before = {name: _shift(value, steps) for name, value in states.items()}
    time, starts = tf.size(steps.counts), steps.starts
    wide = tf.TensorShape([None, cell.units])

    def body(
        t: tf.Tensor, errors: Tensors, array: tf.TensorArray
    ) -> tuple[tf.Tensor, Tensors, tf.TensorArray]:
        first, rows = starts[t], steps.counts[t]

        # Rows whose last word this is join those that read on.
        reading = tf.shape(errors["y"])[0]
        ending = error[reading:rows]
        errors = {
            name: tf.concat(
                [value, ending if name == "y" else tf.zeros_like(ending)], 0
            )
            for name, value in errors.items()
        }
        dz, errors = cell.backpropagate(
            {name: array.read(t) for name, array in now.items()},
            {n: value[first : first + rows] for n, value in before.items()},
            errors,
            weights,
        )
        errors["y"] = tf.matmul(dz, weights["recurrent"], transpose_b=True)
        if truncate is not None:
            # States that enter T steps before the last word are constants.
            left = steps.lengths[:rows] - 1 - t
            goes_on = tf.cast(left < truncate, dz.dtype)[:, tf.newaxis]
            errors = {n: e * goes_on for n, e in errors.items()}
        return t - 1, errors, array.write(t, dz)

    _, _, array = tf.while_loop(
        lambda t, *_: t >= 0,
        body,
        (
            time - 1,
            {name: error[:0] for name in cell.state_names},
            tf.TensorArray(
                error.dtype,
                time,
                element_shape=[None, steps.values.shape[-1]],
                infer_shape=False,
            ),
        ),
        shape_invariants=(
            tf.TensorShape([]),
            dict.fromkeys(cell.state_names, wide),
            tf.TensorShape(None),
        ),
    )
    dz = array.concat()
    return dz, cell.weight_gradients(dz, states, before)


def last_steps(values: tf.Tensor, steps: PackedSequence) -> tf.Tensor:
    """Takes each row's value at its last word: `(rows, units)`."""
    rows = tf.range(tf.size(steps.lengths))
    return tf.gather(values, tf.gather(steps.starts, steps.lengths - 1) + rows)


def _shift(values: tf.Tensor, steps: PackedSequence) -> tf.Tensor:
    """Values one step before each step of the same row, zero at the first."""
    # Row r at time t stands at starts[t] + r; one step before, starts[t-1] + r.
    back = tf.repeat(tf.pad(steps.counts[:-1], [[1, 0]]), steps.counts)
    place = tf.range(tf.shape(values)[0]) - back
    first = steps.counts[0]
    zeros = tf.zeros([first, values.shape[-1]], values.dtype)
    return tf.concat([zeros, tf.gather(values, place[first:])], axis=0)
