"""Loops over time that run LSTMs of both directions together.

Their gradient runs the same loop backwards.
"""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from keras_lstm_dssm.custom_gradient import custom_gradient
from keras_lstm_dssm.layers.packed_sequence import (
    FlatPacking,
    FlatSequences,
    earlier_values,
)
from keras_lstm_dssm.layers.peephole_lstm import PeepholeLSTM, PeepholeLSTMCell
from keras_lstm_dssm.layers.recurrent import Arrays, array_of_steps


def loop_forward(
    cell: PeepholeLSTMCell,
    table: tf.Tensor,
    index: tf.Tensor,
    recurrent: tf.Tensor,
    counts: tf.Tensor,
    kept: Sequence[str],
) -> tuple[tuple[tf.Tensor, ...], Arrays]:
    """Runs the LSTMs of all directions, from states of zero.

    Inputs after `project` are `table`, `(rows, gates * units)`; `index`, int32
    `(directions, steps)`, the row at each step; W_rec is `(directions, units,
    gates * units)`. Returns y of each direction, packed; and the `kept` gates
    by name, at each time `(directions, counts[t], units)`, with `c`, of which
    element t + 1 is c(t).
    """
    time, starts = tf.size(counts), tf.cumsum(counts, exclusive=True)
    directions, dtype = recurrent.shape[0], recurrent.dtype
    zeros = tf.zeros([directions, counts[0], cell.units], dtype)

    def body(
        t: tf.Tensor, y: tf.Tensor, c: tf.Tensor, outputs: Any, arrays: Arrays
    ) -> Any:
        first, rows = starts[t], counts[t]
        inputs = tf.gather(table, index[:, first : first + rows])
        z = inputs + tf.matmul(y[:, :rows], recurrent)
        now = cell.activate(z, {"c": c[:, :rows]}, {})
        y, c = now["y"], now["c"]
        outputs = [each.write(t, y[d]) for d, each in enumerate(outputs)]
        arrays = {
            name: array.write(t + 1 if name == "c" else t, now[name])
            for name, array in arrays.items()
        }
        return t + 1, y, c, outputs, arrays

    wide = tf.TensorShape([directions, None, cell.units])
    outputs = [array_of_steps(dtype, time, wide[1:]) for _ in range(directions)]
    arrays = {name: array_of_steps(dtype, time, wide) for name in kept}
    if kept:
        arrays["c"] = array_of_steps(dtype, time + 1, wide).write(0, zeros)
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


def loop_backward(
    cell: PeepholeLSTMCell,
    now: Arrays,
    errors: tf.Tensor,
    index: tf.Tensor,
    recurrent: tf.Tensor,
    counts: tf.Tensor,
) -> tuple[tf.Tensor, ...]:
    """Computes the gradients for the inputs of each direction, packed.

    `now` is from `loop_forward`; `errors`, `(rows, units)`, are the gradients
    of the loss for y, and `index` has their row at each packed step.
    """
    time, starts = tf.size(counts), tf.cumsum(counts, exclusive=True)
    directions, dtype = recurrent.shape[0], recurrent.dtype
    # Transposed once, and not by each product of the loop.
    transposed = tf.transpose(recurrent, [0, 2, 1])

    def body(t: tf.Tensor, dy: tf.Tensor, dc: tf.Tensor, arrays: Any) -> Any:
        first, rows = starts[t], counts[t]
        # Going back in time, each row is added at its last step.
        added = [[0, 0], [0, rows - tf.shape(dy)[1]], [0, 0]]
        error = tf.gather(errors, index[:, first : first + rows])
        dz, before = cell.backpropagate(
            {n: a.read(t + 1 if n == "c" else t) for n, a in now.items()},
            {"c": now["c"].read(t)[:, :rows]},
            {"y": tf.pad(dy, added) + error, "c": tf.pad(dc, added)},
            {},
        )
        dy = tf.matmul(dz, transposed)
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
            [array_of_steps(dtype, time, width) for _ in range(directions)],
        ),
        shape_invariants=(
            tf.TensorShape([]),
            wide,
            wide,
            [tf.TensorShape(None)] * directions,
        ),
    )
    return tuple(array.concat() for array in arrays)


_KEPT = ("i", "f", "g", "o")


def run_on_rows(
    layers: Sequence[PeepholeLSTM],
    sequences: FlatSequences,
    training: bool = False,
) -> tf.Tensor:
    """Runs an LSTM forward, and perhaps another one backward, over sequences.

    Both run in one loop, whose products have the shape `(directions, rows,
    units)`: of narrow LSTMs, starting the operations takes more time than their
    arithmetic. Each row of `sequences.table` (a distinct word of texts, or a
    distinct sentence of documents) is multiplied with the input weights once,
    before the loop, which gathers the products at each time. The layers have a
    forget gate and no peepholes. Returns their states y side by side, `(values,
    layers * units)`. Without `training` this is faster, but its gradient
    slower.
    """
    cells = [layer.cell for layer in layers]
    inputs = [layer.project(sequences.table) for layer in layers]
    packing = FlatPacking.from_lengths(sequences.lengths)
    index = sequences.index
    cell, counts, directions = cells[0], packing.counts, len(cells)
    steps, places = packing.steps[:directions], packing.places[:directions]
    direction = tf.range(directions)[:, tf.newaxis]
    size = tf.shape(inputs[0])[0]
    rows = tf.gather(index, steps) + direction * size

    def run(
        table: tf.Tensor, recurrent: tf.Tensor, kept: Sequence[str]
    ) -> tuple[tf.Tensor, tuple[tf.Tensor, ...], Arrays]:
        outputs, now = loop_forward(cell, table, rows, recurrent, counts, kept)
        sides = [
            tf.gather(y, place)
            for y, place in zip(outputs, places, strict=True)
        ]
        return tf.concat(sides, axis=1), outputs, now

    weights = [tf.convert_to_tensor(each.recurrent_kernel) for each in cells]
    table = tf.concat(inputs, axis=0)
    if not training:
        return run(table, tf.stack(weights), ())[0]

    @custom_gradient
    def with_gradient(table: tf.Tensor, *weights: tf.Tensor) -> Any:
        recurrent = tf.stack(weights)
        result, outputs, now = run(table, recurrent, _KEPT)

        def gradient(error: tf.Tensor) -> list[tf.Tensor]:
            # The part of each direction is a row of its own.
            parts = tf.reshape(tf.convert_to_tensor(error), [-1, cell.units])
            part = directions * steps + direction
            dz = loop_backward(cell, now, parts, part, recurrent, counts)
            order = tf.argsort(index)
            segment = tf.gather(index, order)
            sums = [
                tf.sparse.segment_sum(
                    each, tf.gather(place, order), segment, num_segments=size
                )
                for each, place in zip(dz, places, strict=True)
            ]
            gradients = [
                cell.weight_gradients(
                    each, {"y": y}, {"y": earlier_values(y, counts)}
                )["recurrent"]
                for y, each in zip(outputs, dz, strict=True)
            ]
            return [tf.concat(sums, axis=0), *gradients]

        return result, gradient

    return with_gradient(table, *weights)
