"""Runs LSTMs of both directions in one loop over time, with its gradient."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

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
        outputs, _ = _forward(cells[0], inputs, tf.stack(weights), counts, ())
        return outputs

    @tf.custom_gradient
    def with_gradient(*tensors: tf.Tensor) -> Any:
        inputs, weights = tensors[: len(cells)], tensors[len(cells) :]
        recurrent = tf.stack(weights)
        outputs, now = _forward(cells[0], inputs, recurrent, counts, _KEPT)

        def gradient(*errors: tf.Tensor) -> list[tf.Tensor]:
            # If a gather follows, an error is a `tf.IndexedSlices`.
            dense = [tf.convert_to_tensor(error) for error in errors]
            dz = _backward(cells[0], now, dense, recurrent, counts)
            # y(t-1) of the same row; at time 0 it is zero.
            first = counts[0]
            row = tf.range(first, tf.shape(dz[0])[0])
            earlier = row - tf.repeat(counts[:-1], counts[1:])
            products = [
                tf.matmul(tf.gather(y, earlier), of[first:], transpose_a=True)
                for y, of in zip(outputs, dz, strict=True)
            ]
            return [*dz, *products]

        return outputs, gradient

    return tuple(with_gradient(*inputs, *weights))


def _forward(
    cell: PeepholeLSTMCell,
    inputs: Sequence[tf.Tensor],
    recurrent: tf.Tensor,
    counts: tf.Tensor,
    kept: Sequence[str],
) -> tuple[tuple[tf.Tensor, ...], Arrays]:
    """Run from states of zero.

    Args:
        cell: Cell whose `activate` is called.
        inputs: As for `run_both_ways`.
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
    directions, dtype = len(inputs), recurrent.dtype
    zeros = tf.zeros([directions, counts[0], cell.units], dtype)

    def body(
        t: tf.Tensor, y: tf.Tensor, c: tf.Tensor, outputs: Any, arrays: Arrays
    ) -> Any:
        rows = counts[t]
        x = tf.stack([each[starts[t] : starts[t] + rows] for each in inputs])
        z = x + tf.matmul(y[:, :rows], recurrent)
        now = cell.activate(z, {"c": c[:, :rows]}, {})
        y, c = now["y"], now["c"]
        outputs = [each.write(t, y[d]) for d, each in enumerate(outputs)]
        arrays = {
            name: array.write(t + 1 if name == "c" else t, now[name])
            for name, array in arrays.items()
        }
        return t + 1, y, c, outputs, arrays

    wide = tf.TensorShape([directions, None, cell.units])
    outputs = [_array(dtype, time, wide[1:]) for _ in inputs]
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
    errors: Sequence[tf.Tensor],
    recurrent: tf.Tensor,
    counts: tf.Tensor,
) -> tuple[tf.Tensor, ...]:
    """Compute the gradients for the inputs of each direction, packed.

    Args:
        cell: Cell whose `backpropagate` is called.
        now: Gates and c, from `_forward`.
        errors: Gradients of the loss for y of each direction, packed.
        recurrent: As for `_forward`.
        counts: As for `run_both_ways`.
    """
    time, starts = tf.size(counts), tf.cumsum(counts, exclusive=True)
    directions, dtype = len(errors), recurrent.dtype

    def body(t: tf.Tensor, dy: tf.Tensor, dc: tf.Tensor, arrays: Any) -> Any:
        first, rows = starts[t], counts[t]
        # Going back in time, each row is added at its last step.
        added = [[0, 0], [0, rows - tf.shape(dy)[1]], [0, 0]]
        error = tf.stack([each[first : first + rows] for each in errors])
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
            [_array(dtype, time, width) for _ in errors],
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
