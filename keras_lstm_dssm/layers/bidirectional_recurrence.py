"""Runs LSTMs of both directions in one loop over time, with its gradient."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from keras_lstm_dssm.layers.flat_packing import FlatPacking
from keras_lstm_dssm.layers.peephole_lstm import PeepholeLSTMCell

Arrays = dict[str, tf.TensorArray]

_KEPT = ("i", "f", "g", "o")


def run_both_ways(
    cells: Sequence[PeepholeLSTMCell],
    inputs: Sequence[tf.Tensor],
    counts: tf.Tensor,
    training: bool = False,
) -> tuple[tf.Tensor, ...]:
    """Run several LSTMs over packed inputs, all in the same loop.

    The forward and the backward LSTM of a text read as many words, so that
    one loop with products `(directions, rows, units)` does the work of two.
    For narrow LSTMs, the number of operations takes more time than their
    arithmetic.

    Args:
        cells: A cell for each direction, equal but for their weights, with a
            forget gate and without peepholes.
        inputs: For each cell its inputs after `project`, `(steps, gates *
            units)`, packed as in `PackedSequence`.
        counts: int32 `(time,)`, the counts of all inputs.
        training: Whether a gradient will be computed. With `False`, the
            default, a gradient is still correct, but slower to compute.

    Returns:
        y of each cell at all steps, `(steps, units)`, packed.
    """
    weights = [tf.convert_to_tensor(cell.recurrent_kernel) for cell in cells]
    if not training:
        read = _slices_of(inputs)
        outputs, _ = _forward(cells[0], read, tf.stack(weights), counts, ())
        return outputs

    @tf.custom_gradient
    def with_gradient(*tensors: tf.Tensor) -> Any:
        inputs, weights = tensors[: len(cells)], tensors[len(cells) :]
        recurrent = tf.stack(weights)
        outputs, now = _forward(
            cells[0], _slices_of(inputs), recurrent, counts, _KEPT
        )

        def gradient(*errors: tf.Tensor) -> list[tf.Tensor]:
            # If a gather follows, an error is a `tf.IndexedSlices`.
            dense = [tf.convert_to_tensor(error) for error in errors]
            dz = _backward(cells[0], now, _slices_of(dense), recurrent, counts)
            return [*dz, *_recurrent_gradients(outputs, dz, counts)]

        return outputs, gradient

    return tuple(with_gradient(*inputs, *weights))


def run_both_ways_on_rows(
    cells: Sequence[PeepholeLSTMCell],
    inputs: Sequence[tf.Tensor],
    index: tf.Tensor,
    packing: FlatPacking,
    training: bool = False,
) -> tf.Tensor:
    """Run a forward and a backward LSTM over sequences of rows of a table.

    A batch of texts has three times as many words as distinct words. So the
    inputs are projected once for each distinct word; at each time the loop
    gathers those that it needs.

    Args:
        cells: The cell of the forward and that of the backward LSTM, as for
            `run_both_ways`.
        inputs: For each cell the rows after `project`, `(rows, gates *
            units)`.
        index: int32 `(values,)`, the row of each value, one sequence after
            the other.
        packing: Of the lengths of the sequences.
        training: As for `run_both_ways`.

    Returns:
        y of both cells side by side, `(values, 2 * units)`, in the order of
        `index`.
    """
    cell, counts, steps = cells[0], packing.counts, packing.steps
    size = tf.shape(inputs[0])[0]
    rows = tf.gather(index, steps) + tf.constant([[0], [1]]) * size

    def run(
        table: tf.Tensor, recurrent: tf.Tensor, kept: Sequence[str]
    ) -> tuple[tf.Tensor, tuple[tf.Tensor, ...], Arrays]:
        outputs, now = _forward(
            cell, _rows_of(table, rows), recurrent, counts, kept
        )
        sides = [
            tf.gather(y, places)
            for y, places in zip(outputs, packing.places, strict=True)
        ]
        return tf.concat(sides, axis=1), outputs, now

    weights = [tf.convert_to_tensor(each.recurrent_kernel) for each in cells]
    table = tf.concat(inputs, axis=0)
    if not training:
        return run(table, tf.stack(weights), ())[0]

    @tf.custom_gradient
    def with_gradient(table: tf.Tensor, *weights: tf.Tensor) -> Any:
        recurrent = tf.stack(weights)
        result, outputs, now = run(table, recurrent, _KEPT)

        def gradient(error: tf.Tensor) -> list[tf.Tensor]:
            # Both halves of a row are rows of their own.
            halves = tf.reshape(tf.convert_to_tensor(error), [-1, cell.units])
            read = _rows_of(halves, 2 * steps + tf.constant([[0], [1]]))
            dz = _backward(cell, now, read, recurrent, counts)
            order = tf.argsort(index)
            segment = tf.gather(index, order)
            sums = [
                tf.sparse.segment_sum(
                    each, tf.gather(places, order), segment, num_segments=size
                )
                for each, places in zip(dz, packing.places, strict=True)
            ]
            return [
                tf.concat(sums, axis=0),
                *_recurrent_gradients(outputs, dz, counts),
            ]

        return result, gradient

    return with_gradient(table, *weights)


Reader = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]


def _slices_of(values: Sequence[tf.Tensor]) -> Reader:
    """Return what reads the values of each direction, packed, from a step."""
    return lambda first, rows: tf.stack(
        [each[first : first + rows] for each in values]
    )


def _rows_of(table: tf.Tensor, index: tf.Tensor) -> Reader:
    """Return what reads rows of a table, those of `index[:, step]`."""
    return lambda first, rows: tf.gather(table, index[:, first : first + rows])


def _recurrent_gradients(
    outputs: Sequence[tf.Tensor], dz: Sequence[tf.Tensor], counts: tf.Tensor
) -> list[tf.Tensor]:
    """Compute the gradient of W_rec of each direction, by one product."""
    # y(t-1) of the same row; at time 0 a row of zeros, the last one.
    steps = tf.shape(dz[0])[0]
    row = tf.range(counts[0], steps)
    earlier = tf.concat(
        [
            tf.fill([counts[0]], steps),
            row - tf.repeat(counts[:-1], counts[1:]),
        ],
        axis=0,
    )
    return [
        tf.matmul(
            tf.gather(tf.pad(y, [[0, 1], [0, 0]]), earlier),
            each,
            transpose_a=True,
        )
        for y, each in zip(outputs, dz, strict=True)
    ]


def _forward(
    cell: PeepholeLSTMCell,
    read: Reader,
    recurrent: tf.Tensor,
    counts: tf.Tensor,
    kept: Sequence[str],
) -> tuple[tuple[tf.Tensor, ...], Arrays]:
    """Run from states of zero.

    Args:
        cell: Cell whose `activate` is called.
        read: Reads inputs after `project`, `(directions, rows, gates *
            units)`: those of the first `rows` rows from a step on.
        recurrent: W_rec of each direction, `(directions, units, gates *
            units)`.
        counts: As for `run_both_ways`.
        kept: Names of the gates to return; none if there is no gradient.

    Returns:
        y of each direction, packed; and by name the gates at each time,
        `(directions, counts[t], units)`. With gates there is also `c`, whose
        element t + 1 is c(t), and the first one zero.
    """
    time, starts = tf.size(counts), tf.cumsum(counts, exclusive=True)
    directions, dtype = recurrent.shape[0], recurrent.dtype
    zeros = tf.zeros([directions, counts[0], cell.units], dtype)

    def body(
        t: tf.Tensor, y: tf.Tensor, c: tf.Tensor, outputs: Any, arrays: Arrays
    ) -> Any:
        rows = counts[t]
        z = read(starts[t], rows) + tf.matmul(y[:, :rows], recurrent)
        now = cell.activate(z, {"c": c[:, :rows]}, {})
        y, c = now["y"], now["c"]
        outputs = [each.write(t, y[d]) for d, each in enumerate(outputs)]
        arrays = {
            name: array.write(t + 1 if name == "c" else t, now[name])
            for name, array in arrays.items()
        }
        return t + 1, y, c, outputs, arrays

    wide = tf.TensorShape([directions, None, cell.units])
    outputs = [_array(dtype, time, wide[1:]) for _ in range(directions)]
    arrays = {name: _array(dtype, time, wide) for name in kept}
    if kept:
        arrays["c"] = _array(dtype, time + 1, wide).write(0, zeros)
    *_, outputs, arrays = tf.while_loop(
        lambda t, *_: t < time,
        body,
        (tf.constant(0), zeros, zeros, outputs, arrays),
        shape_invariants=(
            tf.TensorShape([]),
            wide,
            wide,
            [tf.TensorShape(None)] * directions,
            dict.fromkeys(arrays, tf.TensorShape(None)),
        ),
    )
    return tuple(each.concat() for each in outputs), arrays


def _backward(
    cell: PeepholeLSTMCell,
    now: Arrays,
    read: Reader,
    recurrent: tf.Tensor,
    counts: tf.Tensor,
) -> tuple[tf.Tensor, ...]:
    """Compute the gradients for the inputs of each direction, packed.

    Args:
        cell: Cell whose `backpropagate` is called.
        now: Gates and c, from `_forward`.
        read: Reads the gradients of the loss for y.
        recurrent: As for `_forward`.
        counts: As for `run_both_ways`.
    """
    time, starts = tf.size(counts), tf.cumsum(counts, exclusive=True)
    directions, dtype = recurrent.shape[0], recurrent.dtype

    def body(t: tf.Tensor, dy: tf.Tensor, dc: tf.Tensor, arrays: Any) -> Any:
        rows = counts[t]
        # Going back in time, each row is added at its last step.
        added = [[0, 0], [0, rows - tf.shape(dy)[1]], [0, 0]]
        error = read(starts[t], rows)
        dz, before = cell.backpropagate(
            {n: a.read(t + 1 if n == "c" else t) for n, a in now.items()},
            {"c": now["c"].read(t)[:, :rows]},
            {"y": tf.pad(dy, added) + error, "c": tf.pad(dc, added)},
            {},
        )
        dy = tf.matmul(dz, recurrent, transpose_b=True)
        arrays = [array.write(t, dz[d]) for d, array in enumerate(arrays)]
        return t - 1, dy, before["c"], arrays

    wide = tf.TensorShape([directions, None, cell.units])
    nothing = tf.zeros([directions, 0, cell.units], dtype)
    width = tf.TensorShape([None, recurrent.shape[-1]])
    *_, arrays = tf.while_loop(
        lambda t, *_: t >= 0,
        body,
        (
            time - 1,
            nothing,
            nothing,
            [_array(dtype, time, width) for _ in range(directions)],
        ),
        shape_invariants=(
            tf.TensorShape([]),
            wide,
            wide,
            [tf.TensorShape(None)] * directions,
        ),
    )
    return tuple(array.concat() for array in arrays)


def _array(
    dtype: tf.DType, size: tf.Tensor, shape: tf.TensorShape
) -> tf.TensorArray:
    return tf.TensorArray(
        dtype,
        size,
        element_shape=shape,
        infer_shape=False,
        clear_after_read=False,
    )
