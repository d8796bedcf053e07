"""Runs LSTMs of both directions in one loop over time, without padding."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.layers.recurrent import (
    Arrays,
    PeepholeLSTM,
    array_of_steps,
    earlier_values,
)
from keras_lstm_dssm.layers.recurrent_cells import PeepholeLSTMCell
from keras_lstm_dssm.ops import custom_gradient
from lstm_dssm_client.local_encoder import by_time, lstm_step, run_steps


class FlatSequences(NamedTuple):
    """Holds sequences, one after the other; each value is a row of a table."""

    table: tf.Tensor  # float `(rows, width)`
    index: tf.Tensor  # int32 `(values,)`: for each value, its row in `table`
    lengths: tf.Tensor  # int32 `(sequences,)`: numbers of values, at least 1

    @classmethod
    def from_padded(
        cls, vectors: tf.Tensor, lengths: tf.Tensor
    ) -> "FlatSequences":
        """Removes the padding of vectors `(sequences, time, width)`."""
        is_value = tf.sequence_mask(lengths, tf.shape(vectors)[1])
        table = tf.boolean_mask(vectors, is_value)
        return cls(table, tf.range(tf.shape(table)[0]), lengths)

    def joined(self, other: "FlatSequences") -> "FlatSequences":
        """Returns these sequences, followed by the sequences of `other`."""
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
        """Arranges values as `(sequences, time, width)`, padded with 0."""
        time = tf.maximum(tf.reduce_max(self.lengths), 1)
        is_value = tf.sequence_mask(self.lengths, time)
        index = self.starts[:, tf.newaxis] + tf.range(time)
        return tf.where(
            is_value[:, :, tf.newaxis],
            tf.gather(values, tf.where(is_value, index, 0)),
            tf.zeros([], values.dtype),
        )


class FlatPacking(NamedTuple):
    """Orders the values of `FlatSequences` by the time when an LSTM reads them.

    The values of time 0 come first, then the values of time 1, etc. Within each
    time, the longest sequence comes first. At time 0, a forward LSTM reads the
    first value of a sequence, and a backward LSTM reads the last value.
    """

    counts: tf.Tensor  # int32 `(time,)`: number of values read at each time
    # int32 `(2, values)`: indices of the values in this order; row 0 is for a
    # forward LSTM, row 1 for a backward LSTM
    steps: tf.Tensor

    @classmethod
    def from_lengths(cls, lengths: tf.Tensor) -> "FlatPacking":
        """Packs sequences of these lengths, int32 `(sequences,)`."""
        order = tf.argsort(lengths, direction="DESCENDING", stable=True)
        descending = tf.gather(lengths, order)
        starts = tf.gather(tf.cumsum(lengths, exclusive=True), order)
        # If there are no sequences, there is one time step without values.
        time = tf.maximum(tf.reduce_max(lengths), 1)
        is_value = tf.transpose(tf.sequence_mask(descending, time))
        # `tf.where` lists time and sequence of each value by ascending time.
        steps = tf.cast(tf.where(is_value), tf.int32)
        t, sequence = steps[:, 0], steps[:, 1]
        first = tf.gather(starts, sequence)
        last = first + tf.gather(descending, sequence) - 1
        return cls(
            tf.reduce_sum(tf.cast(is_value, tf.int32), axis=1),
            tf.stack([first + t, last - t]),
        )

    @property
    def places(self) -> tuple[tf.Tensor, tf.Tensor]:
        """The position of each value in row 0 of `steps`, and in row 1."""
        forward, backward = tf.unstack(self.steps)
        invert = tf.math.invert_permutation
        return invert(forward), invert(backward)


def _products(rows: tf.Tensor, matrices: Sequence[tf.Tensor]) -> tf.Tensor:
    # One batched product is slower: for batched products, oneDNN compiles a
    # kernel for each new number of rows.
    pairs = zip(tf.unstack(rows), matrices, strict=True)
    return tf.stack([tf.matmul(left, right) for left, right in pairs])


def loop_forward(
    cell: PeepholeLSTMCell,
    table: tf.Tensor,
    index: tf.Tensor,
    recurrent: tf.Tensor,
    counts: tf.Tensor,
    gates: Sequence[str],
) -> tuple[tuple[tf.Tensor, ...], Arrays]:
    """Runs the LSTMs of all directions over packed inputs `table[index]`.

    Returns the packed y of each direction, and a dict: an array for c, and an
    array for each gate. If `gates` is empty, the dict is empty. An array has
    one element for each time t: `(directions, counts[t], units)`. The array of
    c starts with an additional element, zeros, so that element t + 1 is c(t).
    """
    time, starts = tf.size(counts), tf.cumsum(counts, exclusive=True)
    directions, dtype = recurrent.shape[0], recurrent.dtype
    zeros = tf.zeros([directions, counts[0], cell.units], dtype)
    matrices = tf.unstack(recurrent)

    def body(
        t: tf.Tensor, y: tf.Tensor, c: tf.Tensor, outputs: Any, arrays: Arrays
    ) -> Any:
        first, rows = starts[t], counts[t]
        inputs = tf.gather(table, index[:, first : first + rows])
        z = inputs + _products(y[:, :rows], matrices)
        # `activate` gets no peephole weights: the cells have no peepholes.
        now = cell.activate(z, {"c": c[:, :rows]}, {})
        y, c = now["y"], now["c"]
        outputs = [array.write(t, y[d]) for d, array in enumerate(outputs)]
        arrays = {
            name: array.write(t + 1 if name == "c" else t, now[name])
            for name, array in arrays.items()
        }
        return t + 1, y, c, outputs, arrays

    wide = tf.TensorShape([directions, None, cell.units])
    outputs = [array_of_steps(dtype, time, wide[1:]) for _ in range(directions)]
    arrays = {name: array_of_steps(dtype, time, wide) for name in gates}
    if gates:
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
    return tuple(array.concat() for array in outputs), arrays


def loop_backward(
    cell: PeepholeLSTMCell,
    now: Arrays,
    errors: tf.Tensor,
    index: tf.Tensor,
    recurrent: tf.Tensor,
    counts: tf.Tensor,
) -> tuple[tf.Tensor, ...]:
    """Returns the packed gradients of the inputs of each direction.

    `now` has the arrays that `loop_forward` returns. `errors[index]` are the
    packed gradients of y.
    """
    time, starts = tf.size(counts), tf.cumsum(counts, exclusive=True)
    directions, dtype = recurrent.shape[0], recurrent.dtype
    transposed = tf.unstack(tf.transpose(recurrent, [0, 2, 1]))

    def body(t: tf.Tensor, dy: tf.Tensor, dc: tf.Tensor, arrays: Any) -> Any:
        first, rows = starts[t], counts[t]
        # Sequences that end at t get zeros as gradients from later steps.
        added = [[0, 0], [0, rows - tf.shape(dy)[1]], [0, 0]]
        error = tf.gather(errors, index[:, first : first + rows])
        dz, before = cell.backpropagate(
            {n: a.read(t + 1 if n == "c" else t) for n, a in now.items()},
            {"c": now["c"].read(t)[:, :rows]},
            {"y": tf.pad(dy, added) + error, "c": tf.pad(dc, added)},
            {},
        )
        dy = _products(dz, transposed)
        arrays = [array.write(t, dz[d]) for d, array in enumerate(arrays)]
        return t - 1, dy, before["c"], arrays

    wide = tf.TensorShape([directions, None, cell.units])
    no_rows = tf.zeros([directions, 0, cell.units], dtype)
    width = tf.TensorShape([None, recurrent.shape[-1]])
    *_, arrays = tf.while_loop(
        lambda t, *_: t >= 0,
        body,
        (
            time - 1,
            no_rows,
            no_rows,
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


def run_on_rows(
    layers: Sequence[PeepholeLSTM],
    sequences: FlatSequences,
    training: bool = False,
) -> tf.Tensor:
    """Runs the first LSTM forward, and the second LSTM, if any, backward.

    Returns y, `(values, layers * units)`. The LSTMs must have no peepholes.
    """
    cells = [layer.cell for layer in layers]
    inputs = [layer.project(sequences.table) for layer in layers]
    packing = FlatPacking.from_lengths(sequences.lengths)
    index = sequences.index
    cell, counts, directions = cells[0], packing.counts, len(cells)
    steps, positions = packing.steps[:directions], packing.places[:directions]
    direction = tf.range(directions)[:, tf.newaxis]
    size = tf.shape(inputs[0])[0]
    # `table`, below, has `size` projected inputs for the forward LSTM, then
    # `size` projected inputs for the backward LSTM, if any.
    rows = tf.gather(index, steps) + direction * size

    def run(
        table: tf.Tensor, recurrent: tf.Tensor, gates: Sequence[str]
    ) -> tuple[tf.Tensor, tuple[tf.Tensor, ...], Arrays]:
        # One loop runs both LSTMs, because starting an operation takes more
        # time than the arithmetic of a narrow LSTM.
        outputs, now = loop_forward(cell, table, rows, recurrent, counts, gates)
        sides = [
            tf.gather(y, position)
            for y, position in zip(outputs, positions, strict=True)
        ]
        return tf.concat(sides, axis=1), outputs, now

    weights = [tf.convert_to_tensor(cell.recurrent_kernel) for cell in cells]
    table = tf.concat(inputs, axis=0)
    if not training:
        return run(table, tf.stack(weights), ())[0]

    @custom_gradient
    def with_gradient(table: tf.Tensor, *weights: tf.Tensor) -> Any:
        recurrent = tf.stack(weights)
        result, outputs, now = run(table, recurrent, cell.gates)

        def gradient(error: tf.Tensor) -> list[tf.Tensor]:
            # Row v * directions + d of `y_errors` is for value v, direction d.
            y_errors = tf.reshape(tf.convert_to_tensor(error), [-1, cell.units])
            row = directions * steps + direction
            all_dz = loop_backward(cell, now, y_errors, row, recurrent, counts)
            order = tf.argsort(index)
            segment = tf.gather(index, order)
            sums = [
                tf.sparse.segment_sum(
                    dz, tf.gather(position, order), segment, num_segments=size
                )
                for dz, position in zip(all_dz, positions, strict=True)
            ]
            gradients = [
                cell.weight_gradients(
                    dz, {"y": y}, {"y": earlier_values(y, counts)}
                )["recurrent"]
                for y, dz in zip(outputs, all_dz, strict=True)
            ]
            return [tf.concat(sums, axis=0), *gradients]

        return result, gradient

    return with_gradient(table, *weights)


def run_by_numpy(
    layer: PeepholeLSTM,
    sequences: FlatSequences,
    reverse: bool = False,
    last: bool = False,
) -> np.ndarray:
    """Runs an LSTM without peepholes by NumPy; lengths must be descending.

    Returns y of each value, or with `last` only y of each sequence's last step.
    """
    cell = layer.cell
    step, columns, signs = lstm_step(cell.units, "".join(cell.gates), {})
    kernel, recurrent, bias = (
        np.asarray(weight)[..., columns] * signs
        for weight in (cell.kernel, cell.recurrent_kernel, cell.bias)
    )
    inputs = np.asarray(sequences.table) @ kernel + bias
    places, counts = by_time(
        np.arange(len(sequences.index)), sequences.lengths, reverse
    )
    inputs = inputs[sequences.index[places]]
    if last:
        return run_steps(inputs, counts, recurrent, step)
    packed = np.empty((len(places), cell.units), inputs.dtype)
    run_steps(inputs, counts, recurrent, step, packed)
    outputs = np.empty_like(packed)
    outputs[places] = packed
    return outputs
