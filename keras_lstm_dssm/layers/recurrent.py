"""Layers that run a recurrent cell over sequences without padding.

The gradient follows eq. (7) to (10) of Palangi et al. 2016.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from keras_lstm_dssm.errors import InputError, check_at_least
from keras_lstm_dssm.layers.recurrent_cells import (
    PeepholeLSTMCell,
    RecurrentCell,
    Tensors,
)
from keras_lstm_dssm.ops import custom_gradient
from keras_lstm_dssm.private_api import accept_any_arguments
from keras_lstm_dssm.registration import register
from keras_lstm_dssm.text.word_hashing import pad_rows


class PackedSequence(NamedTuple):
    """Holds rows without padding: all values at time 0, then at time 1, etc."""

    values: tf.Tensor  # the packed values, `(sum of counts, ...)`
    counts: tf.Tensor  # int32 `(time,)`: number of values at each time
    lengths: tf.Tensor  # int32 `(rows,)`: length of each row, descending

    @property
    def starts(self) -> tf.Tensor:
        """Index in `values` of each time's first value, int32 `(time,)`."""
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
        tf.cast(tf.where(is_value), tf.int32),  # in order of time, as packed
        steps.values,
        tf.stack([time, rows, tf.shape(steps.values)[1]]),
    )
    return tf.transpose(time_major, [1, 0, 2])


def earlier_values(values: tf.Tensor, counts: tf.Tensor) -> tf.Tensor:
    """Returns y(t-1) for each packed y(t), t > 0, `(steps, units)`."""
    # Row r has y(t) at index starts[t] + r, and y(t-1) at starts[t-1] + r.
    index = tf.range(tf.reduce_sum(counts[:1]), tf.shape(values)[0])
    return tf.gather(values, index - tf.repeat(counts[:-1], counts[1:]))


_STEPS = 2
"""Steps per iteration. An iteration's overhead takes as long as two steps."""


def run_single_sequence(cell: RecurrentCell, values: tf.Tensor) -> tf.Tensor:
    """Returns the last y `(1, units)` for one sequence of projected inputs."""
    # This loop needs a quarter of the operations of `run_to_last_output`.
    weights = cell.recurrent_weights()
    zero = tf.zeros([1, cell.units], values.dtype)
    # Time 0 needs no matrix product: the states before are zero.
    now = cell.activate(
        values[:1], dict.fromkeys(cell.state_names, zero), weights
    )
    remaining, width = tf.shape(values)[0] - 1, values.shape[1]
    # Steps of padding fill the last iteration. Their results are not read.
    padding = [[0, tf.math.floormod(-remaining, _STEPS)], [0, 0]]
    blocks = tf.reshape(tf.pad(values[1:], padding), [-1, _STEPS, width])

    def body(
        block: tf.Tensor, states: Tensors, _: tf.Tensor
    ) -> tuple[tf.Tensor, Tensors, tf.Tensor]:
        outputs = []
        for x in tf.split(tf.gather(blocks, block), _STEPS):
            now = cell.step(x, states, weights)
            states = {name: now[name] for name in states}
            outputs.append(now["y"])
        return block + 1, states, tf.concat(outputs, axis=0)

    count = tf.shape(blocks)[0]
    _, _, outputs = tf.while_loop(
        lambda block, *_: block < count,
        body,
        (
            tf.constant(0),
            {name: now[name] for name in cell.state_names},
            # The result if the sequence has only one step.
            tf.repeat(now["y"], _STEPS, axis=0),
        ),
    )
    last = tf.math.floormod(remaining - 1, _STEPS)
    return tf.gather(outputs, last[tf.newaxis])


Arrays = dict[str, tf.TensorArray]


def array_of_steps(dtype: tf.DType, size: Any, shape: Any) -> tf.TensorArray:
    """Creates an array of tensors with different first dimensions."""
    return tf.TensorArray(
        dtype,
        size,
        element_shape=shape,
        infer_shape=False,
        clear_after_read=False,
    )


def run_forward(
    cell: RecurrentCell,
    weights: Tensors,
    steps: PackedSequence,
    names: Sequence[str],
) -> Arrays:
    """Computes the activations in `names` at all steps, from zero states."""

    def write(t: tf.Tensor, now: Tensors, arrays: Arrays) -> Arrays:
        return {
            name: array.write(t, now[name]) for name, array in arrays.items()
        }

    return _loop(cell, weights, steps, names, write)


def run_to_last_output(
    cell: RecurrentCell, weights: Tensors, steps: PackedSequence
) -> tf.Tensor:
    """Runs a cell as `run_forward` does, but returns only each row's last y."""
    time = _time(steps)
    next_counts = tf.pad(steps.counts[1:], [[0, 1]])

    def write(t: tf.Tensor, now: Tensors, arrays: Arrays) -> Arrays:
        # The rows that end at t are the last rows at t. The array is filled
        # from its end, so that the longest rows come first.
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
    """Runs a cell over time; `write(t, activations, arrays)` stores results."""
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
    arrays = {name: array_of_steps(dtype, time, wide) for name in names}
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
    """Returns each row's last y, or with `at_all_steps` all packed y."""
    names = list(weights)

    @custom_gradient
    def outputs(values: tf.Tensor, *tensors: tf.Tensor) -> Any:
        weights = dict(zip(names, tensors, strict=True))
        packed = steps._replace(values=values)
        now = run_forward(cell, weights, packed, cell.activation_names)

        def gradient(error: tf.Tensor) -> list[tf.Tensor]:
            # If a gather reads the outputs, `error` is a `tf.IndexedSlices`.
            error = tf.convert_to_tensor(error)
            dz, by_weight = backpropagate_through_time(
                cell, weights, packed, now, error, truncate, at_all_steps
            )
            return [dz, *(by_weight[name] for name in names)]

        y = now["y"].concat()
        if not at_all_steps:  # keep only each row's y at the last step
            last = tf.gather(packed.starts, packed.lengths - 1)
            y = tf.gather(y, last + tf.range(tf.size(packed.lengths)))
        return y, gradient

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
    """Computes gradients of projected inputs and of weights.

    `now` has the activations of `run_forward`. `error` is the gradient of each
    row's last y, or with `at_all_steps` of all packed y.
    """
    states = {name: now[name].concat() for name in cell.gradient_states}
    before = {
        name: earlier_values(value, steps.counts)
        for name, value in states.items()
    }
    starts, all_rows = steps.starts, _rows(steps)
    transposed = tf.transpose(weights["recurrent"])
    wide = tf.TensorShape([None, cell.units])

    def backpropagate(
        t: tf.Tensor | int,
        first: tf.Tensor | int,
        rows: tf.Tensor,
        earlier: Tensors,
        errors: Tensors,
    ) -> tuple[tf.Tensor, Tensors]:
        # `errors` has no rows yet for the sequences that end at t. For these
        # sequences, y(t) is the output, so the error of the output is appended
        # to `errors["y"]`. With `at_all_steps`, 0 is appended; the error of
        # each y is added below.
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
        start = first - all_rows  # `before` starts at t = 1
        earlier = {n: y[start : start + rows] for n, y in before.items()}
        dz, errors = backpropagate(t, first, rows, earlier, errors)
        # z(t) contains W_rec y(t-1). `cell.backpropagate` leaves the error of
        # y(t-1) to its caller.
        errors["y"] = tf.matmul(dz, transposed)
        if truncate is not None:
            # The gradient goes back `truncate` steps from a row's last step.
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
            array_of_steps(error.dtype, time, [None, steps.values.shape[-1]]),
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
    # For each weight, one matrix product sums over all steps (Appendix A).
    return dz, cell.weight_gradients(dz, states, before)


def _rows(steps: PackedSequence) -> tf.Tensor:
    return tf.reduce_sum(steps.counts[:1])


def _time(steps: PackedSequence) -> tf.Tensor:
    return tf.maximum(tf.size(steps.counts), 1)  # at least 1, even for no rows


@register
class Recurrent(keras.layers.Layer):
    """Runs a cell over sequences and returns its outputs.

    The results equal the results of `keras.layers.RNN(cell)`. With
    `return_sequences`, `return_state` or `initial_state`, Keras's layer
    computes the results, unless the input is a `PackedSequence`. `Recurrent`
    computes all other results itself, several times as fast as Keras's layer.

    Args:
        cell: `RNNCell` or `PeepholeLSTMCell`.
        truncate: Number of steps that the gradient goes back from the last
            step, the T of eq. (7); masked steps are not counted. Default `None`
            for all steps. `truncate` is not supported with `return_sequences`,
            `return_state` or `initial_state`.
        return_sequences: Whether to return the outputs at all steps instead
            of the last output. Default `False`.
        return_state: Whether to also return the last states. Default `False`.
        go_backwards: Whether to read each row from its last step to its
            first. Default `False`.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: `(batch, time, features)`, time at least 1; or a
            `PackedSequence` of results of `project`.
        lengths: int `(batch,)`, the number of steps of each row, at least 1.
            Default `None`: each row has `time` steps, or the steps for which
            `mask` is `True`.
        initial_state: List of states, each `(batch, units)`. Default `None`
            for zeros.
        mask: bool `(batch, time)`, `False` for steps to be skipped; an
            alternative to `lengths`. Layers such as
            `keras.layers.Embedding(mask_zero=True)` create such a mask.
        training: Whether a gradient will be computed. With `False`, the
            default, a gradient is correct, but slower to compute.

    Returns:
        The last output `(batch, units)`. With `return_sequences`, the outputs
        `(batch, time, units)`; past a row's end, the row's last output is
        repeated. With `return_state`, a list of the output and the states. If
        the input is a `PackedSequence`, `return_sequences` gives a
        `PackedSequence`. The rows have the order of the input.

    Raises:
        InputError: An argument is not supported, or both `lengths` and `mask`
            are given.

    Example:
    >>> layer = Recurrent(dssm.RNNCell(4), return_sequences=True)
    >>> layer(tf.ones([2, 5, 3]), lengths=[5, 2]).shape
    TensorShape([2, 5, 4])
    """

    # `keras.layers.Bidirectional` needs these attributes.
    stateful = False
    zero_output_for_mask = False

    def __init__(
        self,
        cell: keras.layers.Layer,
        truncate: int | None = None,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_at_least(0, optional=True, truncate=truncate)
        self.cell = cell
        self.truncate = truncate
        self.return_sequences = return_sequences
        self.return_state = return_state
        self.go_backwards = go_backwards
        self.supports_masking = True
        if return_sequences or return_state:
            self._check_not_truncated("return_sequences or return_state")
        accept_any_arguments(self)  # `lengths` may be a list

    def build(self, input_shape: Any) -> None:
        """Builds the cell."""
        if isinstance(input_shape, PackedSequence):
            input_shape = input_shape.values
        if not self.cell.built:  # Keras builds the cell of a loaded layer first
            self.cell.build((None, input_shape[-1]))

    def call(
        self,
        inputs: tf.Tensor | PackedSequence,
        lengths: tf.Tensor | None = None,
        initial_state: list[tf.Tensor] | None = None,
        mask: tf.Tensor | None = None,
        training: bool = False,
    ) -> Any:
        """Runs the cell over the rows."""
        if isinstance(inputs, PackedSequence):
            if self.return_state or self.go_backwards:
                raise InputError(
                    "return_state and go_backwards are not supported for a"
                    " PackedSequence: use inputs (batch, time, features)"
                )
            return self._packed_outputs(inputs, training)
        if lengths is not None and mask is not None:
            raise InputError("give lengths or a mask, not both")
        if initial_state is not None:
            self._check_not_truncated("an initial_state")
        elif not (self.return_sequences or self.return_state):
            if mask is None:
                return self._last_outputs(inputs, lengths, training)
            return self._masked_outputs(inputs, mask, training)
        if lengths is not None:
            mask = tf.sequence_mask(lengths, tf.shape(inputs)[1])
        return self._keras_outputs(inputs, mask, initial_state)

    def project(self, inputs: tf.Tensor) -> tf.Tensor:
        """Computes the cell's `W x(t) + b`, `(..., gates * units)`."""
        return self.cell.project(inputs)

    def activations(
        self, inputs: tf.Tensor, lengths: tf.Tensor | None = None
    ) -> dict[str, tf.Tensor]:
        """Computes every activation of the cell at every step (Figs. 4, 5).

        Args:
            inputs: `(batch, time, features)`.
            lengths: Number of steps of each row, as for a call.

        Returns:
            A dict with the activations `(batch, time, units)` of each name,
            zero past the end of a row. The names are i, f (with a forget gate),
            g, c, o and y for an LSTM, and y for an RNN.
        """
        steps, order = _pack_any_order(self.project(inputs), lengths)
        cell = self.cell
        arrays = run_forward(
            cell, cell.recurrent_weights(), steps, cell.activation_names
        )
        original_order = tf.math.invert_permutation(order)
        return {
            name: tf.gather(
                unpack(steps._replace(values=array.concat())), original_order
            )
            for name, array in arrays.items()
        }

    def _packed_outputs(
        self, steps: PackedSequence, training: bool
    ) -> tf.Tensor | PackedSequence:
        weights = self.cell.recurrent_weights()
        if training or self.truncate is not None:
            outputs = run_with_gradient(
                self.cell, weights, steps, self.truncate, self.return_sequences
            )
        elif self.return_sequences:
            arrays = run_forward(self.cell, weights, steps, ["y"])
            outputs = arrays["y"].concat()
        else:
            outputs = run_to_last_output(self.cell, weights, steps)
        if self.return_sequences:
            return steps._replace(values=outputs)
        return outputs

    def _last_outputs(
        self, inputs: tf.Tensor, lengths: tf.Tensor | None, training: bool
    ) -> tf.Tensor:
        if self.go_backwards:
            inputs = (
                tf.reverse(inputs, [1])
                if lengths is None
                else tf.reverse_sequence(inputs, lengths, seq_axis=1)
            )
        steps, order = _pack_any_order(self.project(inputs), lengths)
        original_order = tf.math.invert_permutation(order)
        return tf.gather(self._packed_outputs(steps, training), original_order)

    def _masked_outputs(
        self, inputs: tf.Tensor, mask: tf.Tensor, training: bool
    ) -> tf.Tensor:
        """Computes last outputs; zero for a row whose steps are all masked."""
        mask = tf.cast(mask, tf.bool)
        lengths = tf.reduce_sum(tf.cast(mask, tf.int32), axis=1)
        steps = tf.RaggedTensor.from_row_lengths(
            tf.boolean_mask(inputs, mask), lengths, validate=False
        )
        outputs = self._last_outputs(
            pad_rows(steps), tf.maximum(lengths, 1), training
        )
        has_steps = tf.cast(lengths > 0, outputs.dtype)
        return outputs * has_steps[:, tf.newaxis]

    def _keras_outputs(
        self, inputs: tf.Tensor, mask: tf.Tensor | None, initial_state: Any
    ) -> Any:
        # If `layer` were an attribute, saved files would have the cell twice.
        layer = keras.layers.RNN(
            self.cell,
            return_sequences=self.return_sequences,
            return_state=self.return_state,
            go_backwards=self.go_backwards,
            zero_output_for_mask=self.zero_output_for_mask,
            dtype=self.dtype_policy,
            name=self.name,
        )
        return layer(inputs, initial_state=initial_state, mask=mask)

    def _check_not_truncated(self, argument: str) -> None:
        if self.truncate is not None:
            raise InputError(
                f"truncate is not supported with {argument}; leave one out"
            )

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Returns the shapes of the outputs, as `keras.layers.RNN` does."""
        batch, time, _ = input_shape
        last = (batch, self.cell.output_size)
        outputs = (batch, time, last[1]) if self.return_sequences else last
        if not self.return_state:
            return outputs
        return [outputs, *((batch, width) for width in self.cell.state_size)]

    def compute_mask(self, inputs: Any, previous_mask: Any) -> Any:
        """Returns the masks of the outputs, as `keras.layers.RNN` does."""
        mask = previous_mask if self.return_sequences else None
        if not self.return_state:
            return mask
        return [mask, *(None for _ in self.cell.state_size)]

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor arguments as a dict, for `from_config`."""
        return {
            **super().get_config(),
            "cell": keras.saving.serialize_keras_object(self.cell),
            "truncate": self.truncate,
            "return_sequences": self.return_sequences,
            "return_state": self.return_state,
            "go_backwards": self.go_backwards,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Recurrent":
        """Rebuilds the layer and its cell from a configuration."""
        cell = keras.saving.deserialize_keras_object(config["cell"])
        return cls(**{**config, "cell": cell})


def _pack_any_order(
    inputs: tf.Tensor, lengths: tf.Tensor | None
) -> tuple[PackedSequence, tf.Tensor]:
    """Packs sequences, longest first; also returns their original indices."""
    shape = tf.shape(inputs)
    if lengths is None:
        lengths = tf.fill([shape[0]], shape[1])
    lengths = tf.cast(lengths, tf.int32)
    order = tf.argsort(lengths, direction="DESCENDING", stable=True)
    return pack(tf.gather(inputs, order), tf.gather(lengths, order)), order


@register
class PeepholeLSTM(Recurrent):
    """Runs the LSTM of Palangi et al. 2016, eq. (2), over sequences.

    The weights have the layout of `keras.layers.LSTM`. With `peephole=None` and
    equal weights, both layers give equal outputs. Dropout, other activations,
    `unroll` and `stateful` are not supported.

    Args:
        units: Number of cells, the width of the output.
        peephole: `"full"`, the default, `"diagonal"` or `None`; see
            `PeepholeLSTMCell`.
        forget_gate: Whether the cells have a forget gate, default `True`.
        project_inputs: Whether the cell has input weights W, default `True`;
            see `RNNCell`.
        **kwargs: Initializers, regularizers and constraints, such as
            `kernel_regularizer`, see `RNNCell`; and arguments of
            `keras.layers.Layer`.

    See `Recurrent` for the other arguments, the outputs and the errors. The
    states are y and c, each `(batch, units)`.

    Example:
    >>> PeepholeLSTM(96)(np.zeros((2, 5, 16), "float32"), [5, 3]).shape
    TensorShape([2, 96])
    """

    def __init__(
        self,
        units: int,
        peephole: str | None = "full",
        forget_gate: bool = True,
        truncate: int | None = None,
        project_inputs: bool = True,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        **kwargs: Any,
    ) -> None:
        cell_options = {
            name: kwargs.pop(name)
            for name in list(kwargs)
            if name.startswith(("kernel_", "recurrent_", "bias_"))
        }
        cell = PeepholeLSTMCell(
            units, peephole, forget_gate, project_inputs,
            dtype=kwargs.get("dtype"), name="cell", **cell_options,
        )  # fmt: skip
        super().__init__(
            cell, truncate, return_sequences, return_state, go_backwards,
            **kwargs,
        )  # fmt: skip

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor arguments as a dict, for `from_config`."""
        config = super().get_config()
        del config["cell"]
        # The layer's name, dtype and trainable replace the cell's values.
        return {**self.cell.get_config(), **config}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "PeepholeLSTM":
        """Rebuilds the layer from its configuration."""
        return cls(**config)
