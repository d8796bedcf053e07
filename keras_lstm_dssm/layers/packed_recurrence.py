"""Runs a cell over packed sequences, and computes its gradient."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from keras_lstm_dssm.layers.packed_sequence import (
    PackedSequence,
    earlier_values,
    last_values,
)
from keras_lstm_dssm.layers.recurrent_cell import RecurrentCell, Tensors

Arrays = dict[str, tf.TensorArray]


def run_forward(
    cell: RecurrentCell,
    weights: Tensors,
    steps: PackedSequence,
    names: Sequence[str],
) -> Arrays:
    """Run a cell over packed inputs, from states of zero.

    Args:
        cell: Cell whose `step` is called at each time.
        weights: Result of `cell.recurrent_weights`.
        steps: Inputs after `cell.project`, `(steps, gates * units)`.
        names: The activations to return.

    Returns:
        Each activation by name. Element t of its array holds the first
        `counts[t]` rows, so `concat()` gives packed values.
    """

    def write(t: tf.Tensor, now: Tensors, arrays: Arrays) -> Arrays:
        return {
            name: array.write(t, now[name]) for name, array in arrays.items()
        }

    return _loop(cell, weights, steps, names, write)


def run_to_last_output(
    cell: RecurrentCell, weights: Tensors, steps: PackedSequence
) -> tf.Tensor:
    """Run a cell as `run_forward` does, but store only each row's last y.

    Returns:
        `(rows, units)`.
    """
    time = _time(steps)
    next_counts = tf.pad(steps.counts[1:], [[0, 1]])

    def write(t: tf.Tensor, now: Tensors, arrays: Arrays) -> Arrays:
        # Rows that end at t follow the longer ones. Written in reverse order
        # of time, the longest rows come first again.
        ended = now["y"][next_counts[t] :]
        return {"y": arrays["y"].write(time - 1 - t, ended)}

    return _loop(cell, weights, steps, ["y"], write)["y"].concat()


def _loop(
    cell: RecurrentCell,
    weights: Tensors,
    steps: PackedSequence,
    names: Sequence[str],
    write: Callable[[tf.Tensor, Tensors, Arrays], Arrays],
) -> Arrays:
    """Run a cell over time; at time t on the first `counts[t]` rows only.

    Time 0 comes before the loop: its states are zero, and need no product.

    Args:
        cell: Cell whose `step` is called at each time.
        weights: Result of `cell.recurrent_weights`.
        steps: Inputs after `cell.project`, `(steps, gates * units)`.
        names: Names of the arrays to create.
        write: Function that stores the activations of one time.
    """
    time, starts = _time(steps), steps.starts
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

    rows = _rows(steps)
    zeros = tf.zeros([rows, cell.units], dtype)
    now = cell.activate(
        steps.values[:rows], dict.fromkeys(cell.state_names, zeros), weights
    )
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
        (
            tf.constant(1),
            {name: now[name] for name in cell.state_names},
            write(tf.constant(0), now, arrays),
        ),
        shape_invariants=(
            tf.TensorShape([]),
            dict.fromkeys(cell.state_names, wide),
            dict.fromkeys(names, tf.TensorShape(None)),
        ),
    )
    return arrays


def run_with_gradient(
    cell: RecurrentCell,
    weights: Tensors,
    steps: PackedSequence,
    truncate: int | None = None,
    at_all_steps: bool = False,
) -> tf.Tensor:
    """Run a cell; its gradient is `backpropagate_through_time`.

    Args:
        cell: Cell to run.
        weights: Result of `cell.recurrent_weights`.
        steps: Inputs after `cell.project`, `(steps, gates * units)`.
        truncate: Number of steps that the gradient goes back. Default `None`
            for all.
        at_all_steps: Whether to return y at all steps. Default `False`.

    Returns:
        Each row's last y, `(rows, units)`; or with `at_all_steps` y at all
        steps, `(steps, units)`, packed.
    """
    names = list(weights)

    @tf.custom_gradient
    def outputs(values: tf.Tensor, *tensors: tf.Tensor) -> Any:
        weights = dict(zip(names, tensors, strict=True))
        packed = steps._replace(values=values)
        now = run_forward(cell, weights, packed, cell.activation_names)

        def gradient(error: tf.Tensor) -> list[tf.Tensor]:
            # If a gather follows, the error is a `tf.IndexedSlices`.
            error = tf.convert_to_tensor(error)
            dz, by_weight = backpropagate_through_time(
                cell, weights, packed, now, error, truncate, at_all_steps
            )
            return [dz, *(by_weight[name] for name in names)]

        y = now["y"].concat()
        return (y if at_all_steps else last_values(y, packed)), gradient

    return outputs(steps.values, *weights.values())


def backpropagate_through_time(
    cell: RecurrentCell,
    weights: Tensors,
    steps: PackedSequence,
    now: Arrays,
    error: tf.Tensor,
    truncate: int | None = None,
    at_all_steps: bool = False,
) -> tuple[tf.Tensor, Tensors]:
    """Compute gradients from errors at the outputs.

    The loop over time carries only the error signals. The gradients of the
    weights are sums of outer products over all steps (Appendix A), computed
    after the loop by one large matrix product each.

    Args:
        cell: Cell whose `backpropagate` and `weight_gradients` are called.
        weights: Result of `cell.recurrent_weights`.
        steps: The inputs of `run_forward`.
        now: All activations, from `run_forward`.
        error: Gradient of the loss at each row's last y, `(rows, units)`;
            or with `at_all_steps` at every y, `(steps, units)`, packed.
        truncate: Number of steps that the error goes back, the T of (7).
            Default `None` for all.
        at_all_steps: Which of both `error` is. Default `False`.

    Returns:
        Gradients for the values of `steps`, and for each of the weights.
    """
    states = {name: now[name].concat() for name in cell.gradient_states}
    before = {
        name: earlier_values(value, steps.counts)
        for name, value in states.items()
    }
    starts, all_rows = steps.starts, _rows(steps)
    # Transposed once, and not by each product of the loop.
    transposed = tf.transpose(weights["recurrent"])
    wide = tf.TensorShape([None, cell.units])

    def backpropagate(
        t: tf.Tensor | int,
        first: tf.Tensor | int,
        rows: tf.Tensor,
        earlier: Tensors,
        errors: Tensors,
    ) -> tuple[tf.Tensor, Tensors]:
        # Going back in time, each row is added at its last step.
        longer = tf.shape(errors["y"])[0]
        zeros = tf.zeros([rows - longer, cell.units], error.dtype)
        ending = zeros if at_all_steps else error[longer:rows]
        errors = {
            name: tf.concat([value, ending if name == "y" else zeros], 0)
            for name, value in errors.items()
        }
        if at_all_steps:
            errors["y"] += error[first : first + rows]
        at_t = {name: array.read(t) for name, array in now.items()}
        return cell.backpropagate(at_t, earlier, errors, weights)

    def body(
        t: tf.Tensor, errors: Tensors, array: tf.TensorArray
    ) -> tuple[tf.Tensor, Tensors, tf.TensorArray]:
        first, rows = starts[t], steps.counts[t]
        start = first - all_rows  # `before` has no time 0
        earlier = {n: each[start : start + rows] for n, each in before.items()}
        dz, errors = backpropagate(t, first, rows, earlier, errors)
        errors["y"] = tf.matmul(dz, transposed)
        if truncate is not None:
            # States from before the last T steps count as constants.
            back = steps.lengths[:rows] - 1 - t
            inside = tf.cast(back < truncate, dz.dtype)[:, tf.newaxis]
            errors = {n: e * inside for n, e in errors.items()}
        return t - 1, errors, array.write(t, dz)

    time = _time(steps)
    _, errors, array = tf.while_loop(
        lambda t, *_: t > 0,
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
    zeros = tf.zeros([all_rows, cell.units], error.dtype)
    dz, _ = backpropagate(0, 0, all_rows, dict.fromkeys(before, zeros), errors)
    dz = array.write(0, dz).concat()
    return dz, cell.weight_gradients(dz, states, before)


def _rows(steps: PackedSequence) -> tf.Tensor:
    """Return the number of rows that are not empty."""
    return tf.reduce_sum(steps.counts[:1])


def _time(steps: PackedSequence) -> tf.Tensor:
    """Return the number of time steps, at least 1, also without rows."""
    return tf.maximum(tf.size(steps.counts), 1)
