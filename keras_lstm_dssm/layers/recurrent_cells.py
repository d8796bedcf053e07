"""Recurrent cells of Palangi et al. 2016: RNN, eq. (1), and LSTM, eq. (2)."""

from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.errors import check_at_least, check_choice
from keras_lstm_dssm.registration import register

Tensors = dict[str, tf.Tensor]


def last_rows(values: tf.Tensor, like: tf.Tensor) -> tf.Tensor:
    """Returns the last `len(like)` rows of `values`."""
    return values[tf.shape(values)[0] - tf.shape(like)[0] :]


class RecurrentCell(keras.layers.Layer):
    """Base of the cells: computes `z(t) = W l(t) + b + W_rec y(t-1)`.

    l(t) is the input at t. Subclasses have `activate` and `backpropagate`.
    """

    def __init__(
        self,
        units: int,
        gates: int,
        states: tuple[str, ...],
        project_inputs: bool,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "glorot_uniform",
        bias_initializer: Any = None,
        kernel_regularizer: Any = None,
        recurrent_regularizer: Any = None,
        bias_regularizer: Any = None,
        kernel_constraint: Any = None,
        recurrent_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_at_least(1, units=units)
        self.units = units
        self.project_inputs = project_inputs
        self.kernel_initializer = kernel_initializer
        self.recurrent_initializer = recurrent_initializer
        self.bias_initializer = bias_initializer
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.recurrent_regularizer = keras.regularizers.get(
            recurrent_regularizer
        )
        self.bias_regularizer = keras.regularizers.get(bias_regularizer)
        self.kernel_constraint = keras.constraints.get(kernel_constraint)
        self.recurrent_constraint = keras.constraints.get(recurrent_constraint)
        self.bias_constraint = keras.constraints.get(bias_constraint)
        self.state_names = states
        self.gradient_states = ["y"]
        """The backward pass needs the values of these states at all steps."""
        self.state_size = [units] * len(states)
        self.output_size = units
        self._width = gates * units

    def build(self, input_shape: Any) -> None:
        """Creates the weights."""
        if self.project_inputs:
            self.kernel = self.add_weight(
                shape=(input_shape[-1], self._width),
                initializer=self.kernel_initializer,
                regularizer=self.kernel_regularizer,
                constraint=self.kernel_constraint,
                name="kernel",
            )
        elif input_shape[-1] not in (None, self._width):
            raise ValueError(
                f"{type(self).__name__} without project_inputs takes inputs "
                f"of width {self._width} (gates * units), not "
                f"{input_shape[-1]}"
            )
        self.recurrent_kernel = self.add_weight(
            shape=(self.units, self._width),
            initializer=self.recurrent_initializer,
            regularizer=self.recurrent_regularizer,
            constraint=self.recurrent_constraint,
            name="recurrent_kernel",
        )
        self.bias = self.add_weight(
            shape=(self._width,),
            initializer=self.bias_initializer or self._default_bias,
            regularizer=self.bias_regularizer,
            constraint=self.bias_constraint,
            name="bias",
        )

    def project(self, inputs: tf.Tensor) -> tf.Tensor:
        """Computes `W l(t) + b`, `(..., gates * units)`."""
        if self.project_inputs:
            inputs = tf.matmul(inputs, self.kernel)
        return inputs + self.bias

    def recurrent_weights(self) -> Tensors:
        """Returns the weights that multiply states; `recurrent` is W_rec."""
        return {"recurrent": tf.convert_to_tensor(self.recurrent_kernel)}

    def activate(
        self, z: tf.Tensor, states: Tensors, weights: Tensors
    ) -> Tensors:
        """Computes all activations at t, from z(t) and the states at t-1."""
        raise NotImplementedError(f"{type(self).__name__}.activate")

    def backpropagate(
        self, now: Tensors, before: Tensors, errors: Tensors, weights: Tensors
    ) -> tuple[tf.Tensor, Tensors]:
        """Computes gradients for z(t), and for the states at t-1 except y.

        `now` has the activations at t, `before` the `gradient_states` at t-1,
        and `errors` the gradients for the states at t. The caller computes the
        gradient for y(t-1) from the gradient for z(t), by W_rec.
        """
        raise NotImplementedError(f"{type(self).__name__}.backpropagate")

    def weight_gradients(
        self, dz: tf.Tensor, now: Tensors, before: Tensors
    ) -> Tensors:
        """Computes gradients of `recurrent_weights` from dz of all steps.

        `now` has the `gradient_states` at all steps t. `before` has the
        `gradient_states` at t-1, for all steps t but the first.
        """
        later = last_rows(dz, before["y"])
        return {"recurrent": tf.matmul(before["y"], later, transpose_a=True)}

    def step(self, x: tf.Tensor, states: Tensors, weights: Tensors) -> Tensors:
        """Computes all activations of a time step from projected inputs x."""
        z = x + tf.matmul(states["y"], weights["recurrent"])
        return self.activate(z, states, weights)

    def call(
        self, inputs: tf.Tensor, states: list[tf.Tensor]
    ) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """Computes y(t) and the new states, for `keras.layers.RNN`."""
        now = self.step(
            self.project(inputs),
            dict(zip(self.state_names, states, strict=True)),
            self.recurrent_weights(),
        )
        return now["y"], [now[name] for name in self.state_names]

    def _default_bias(self, shape: Any, dtype: Any = None) -> tf.Tensor:
        return tf.zeros(shape, dtype)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor arguments as a dict, for `from_config`."""
        serialize = keras.saving.serialize_keras_object
        names = [
            f"{weight}_{what}"
            for what in ("initializer", "regularizer", "constraint")
            for weight in ("kernel", "recurrent", "bias")
        ]
        return {
            **super().get_config(),
            "units": self.units,
            "project_inputs": self.project_inputs,
            **{name: serialize(getattr(self, name)) for name in names},
        }


@register
class RNNCell(RecurrentCell):
    """Computes `y(t) = tanh(W l(t) + W_rec y(t-1) + b)`, an RNN cell.

    Eq. (1) of Palangi et al. 2016; l(t) is the input. The cell runs in
    `keras.layers.RNN` and, faster, in `Recurrent`.

    Args:
        units: Width of y.
        project_inputs: Whether the cell has input weights W. Default `True`.
            If `False`, the inputs are `W l(t)`, for example from a
            `TrigramEmbedding`.
        **kwargs: Initializers, regularizers and constraints of W (`kernel`), of
            W_rec (`recurrent`) and of b (`bias`), such as `bias_initializer`;
            and arguments of `keras.layers.Layer`. By default W and W_rec start
            as `glorot_uniform`, b as zeros.

    Call arguments:
        inputs: `(batch, features)`, or `(batch, units)` without
            `project_inputs`.
        states: `[y(t-1)]`, `(batch, units)`.

    Returns:
        y(t), `(batch, units)`, and the new states `[y(t)]`.

    Raises:
        InputError: `units` is less than 1.

    Example:
    >>> cell = RNNCell(4)
    >>> y, states = cell(tf.ones([2, 3]), [tf.zeros([2, 4])])
    >>> y.shape
    TensorShape([2, 4])
    """

    def __init__(
        self, units: int, project_inputs: bool = True, **kwargs: Any
    ) -> None:
        super().__init__(units, 1, ("y",), project_inputs, **kwargs)
        self.activation_names = ("y",)

    def activate(
        self, z: tf.Tensor, states: Tensors, weights: Tensors
    ) -> Tensors:
        """Computes the output y(t) = tanh(z(t))."""
        return {"y": tf.tanh(z)}

    def backpropagate(
        self, now: Tensors, before: Tensors, errors: Tensors, weights: Tensors
    ) -> tuple[tf.Tensor, Tensors]:
        """Computes the gradient for z(t), (1 - y) * (1 + y) * dy, eq. (10)."""
        return tf.raw_ops.TanhGrad(y=now["y"], dy=errors["y"]), {}


PEEPHOLES = (None, "diagonal", "full")


@register
class PeepholeLSTMCell(RecurrentCell):
    """Computes the LSTM cell of Palangi et al. 2016, eq. (2).

        y_g(t) = tanh(W4 l(t) + W_rec4 y(t-1) + b4)
        i(t) = sigma(W3 l(t) + W_rec3 y(t-1) + W_p3 c(t-1) + b3)
        f(t) = sigma(W2 l(t) + W_rec2 y(t-1) + W_p2 c(t-1) + b2)
        c(t) = f(t) * c(t-1) + i(t) * y_g(t)
        o(t) = sigma(W1 l(t) + W_rec1 y(t-1) + W_p1 c(t) + b1)
        y(t) = o(t) * tanh(c(t))

    l(t) is the input, and * the elementwise product. The columns of the weights
    are in the order i, f, g, o, as in `keras.layers.LSTM`; g stands for y_g.
    Without a forget gate, the order is i, g, o. The bias of f starts at 1, all
    other biases at 0. Full peepholes start as `glorot_uniform`, diagonal
    peepholes as zeros. `recurrent_regularizer` also applies to the peepholes.
    See `RNNCell` for the other arguments.

    Args:
        units: Number of cells, the width of y and c.
        peephole: `"full"`: each W_p is a matrix, with the gradients (19), (26)
            and (34). `"diagonal"`: each W_p has one weight per cell (Gers et
            al. 2002). `None`: no peepholes. Default `"full"`.
        forget_gate: Whether there is a gate f, default `True`. If `False`,
            `c(t) = c(t-1) + i(t) * y_g(t)`, as in section V of the paper.

    Call arguments:
        inputs: `(batch, features)`, or `(batch, gates * units)` without
            `project_inputs`.
        states: `[y(t-1), c(t-1)]`, each `(batch, units)`.

    Returns:
        y(t), `(batch, units)`, and the new states `[y(t), c(t)]`.

    Raises:
        InputError: `units` is less than 1, or `peephole` is not supported.

    Example:
    >>> layer = keras.layers.RNN(PeepholeLSTMCell(96))
    >>> layer(np.zeros((2, 5, 16), "float32")).shape
    TensorShape([2, 96])
    """

    def __init__(
        self,
        units: int,
        peephole: str | None = "full",
        forget_gate: bool = True,
        project_inputs: bool = True,
        **kwargs: Any,
    ) -> None:
        check_choice(PEEPHOLES, peephole=peephole)
        self.gates = ("i", "f", "g", "o") if forget_gate else ("i", "g", "o")
        super().__init__(
            units, len(self.gates), ("y", "c"), project_inputs, **kwargs
        )
        self.activation_names = (*self.gates, "c", "y")
        self.peephole = peephole
        self.forget_gate = forget_gate
        if peephole or forget_gate:
            self.gradient_states = ["y", "c"]

    def build(self, input_shape: Any) -> None:
        """Creates the weights."""
        super().build(input_shape)
        full = self.peephole == "full"
        self.peepholes = {
            gate: self.add_weight(
                shape=(self.units,) * (2 if full else 1),
                initializer="glorot_uniform" if full else "zeros",
                regularizer=self.recurrent_regularizer,
                name=f"peephole_{gate}",
            )
            for gate in self.gates
            if gate != "g" and self.peephole
        }

    def recurrent_weights(self) -> Tensors:
        """Returns W_rec as `recurrent`, and the peepholes as `i`, `f`, `o`."""
        return {
            **super().recurrent_weights(),
            **{
                gate: tf.convert_to_tensor(weight)
                for gate, weight in self.peepholes.items()
            },
        }

    def activate(
        self, z: tf.Tensor, states: Tensors, weights: Tensors
    ) -> Tensors:
        """Computes i, f (with a forget gate), g, c, o and y at time t."""
        z_of = self._split_gates(z)
        old = states["c"]
        now = {
            "i": tf.sigmoid(self._add_peephole("i", z_of["i"], old, weights)),
            "g": tf.tanh(z_of["g"]),
        }
        carried = old
        if self.forget_gate:
            f = self._add_peephole("f", z_of["f"], old, weights)
            now["f"] = tf.sigmoid(f)
            carried = now["f"] * old
        now["c"] = carried + now["i"] * now["g"]
        o = self._add_peephole("o", z_of["o"], now["c"], weights)
        now["o"] = tf.sigmoid(o)
        now["y"] = now["o"] * tf.tanh(now["c"])
        return now

    def backpropagate(
        self, now: Tensors, before: Tensors, errors: Tensors, weights: Tensors
    ) -> tuple[tf.Tensor, Tensors]:
        """Computes the error signals (17), (22), (30), (38) of Appendix A.

        Unlike in the appendix, c(t) also has a gradient through the peephole of
        the output gate.
        """
        squashed = tf.tanh(now["c"])
        dz = {
            "o": tf.raw_ops.SigmoidGrad(y=now["o"], dy=errors["y"] * squashed)
        }
        dc = errors["c"] + tf.raw_ops.TanhGrad(
            y=squashed, dy=errors["y"] * now["o"]
        )
        dc = self._add_peephole_error("o", dc, dz["o"], weights)
        dz["i"] = tf.raw_ops.SigmoidGrad(y=now["i"], dy=dc * now["g"])
        dz["g"] = tf.raw_ops.TanhGrad(y=now["g"], dy=dc * now["i"])
        if self.forget_gate:
            dz["f"] = tf.raw_ops.SigmoidGrad(y=now["f"], dy=dc * before["c"])
            dc = self._add_peephole_error("f", dc * now["f"], dz["f"], weights)
        dc = self._add_peephole_error("i", dc, dz["i"], weights)
        return tf.concat([dz[gate] for gate in self.gates], axis=-1), {"c": dc}

    def weight_gradients(
        self, dz: tf.Tensor, now: Tensors, before: Tensors
    ) -> Tensors:
        """Sums the gradients (16), (19), (26) and (34) over all steps."""
        result = super().weight_gradients(dz, now, before)
        dz_of = self._split_gates(dz)
        for gate in self.peepholes:
            cell_state = now["c"] if gate == "o" else before["c"]
            gate_dz = last_rows(dz_of[gate], cell_state)
            result[gate] = (
                tf.reduce_sum(gate_dz * cell_state, axis=0)
                if self.peephole == "diagonal"
                else tf.matmul(gate_dz, cell_state, transpose_a=True)
            )
        return result

    def _split_gates(self, z: tf.Tensor) -> Tensors:
        columns = tf.split(z, len(self.gates), axis=-1)
        return dict(zip(self.gates, columns, strict=True))

    def _add_peephole(
        self, gate: str, z: tf.Tensor, c: tf.Tensor, weights: Tensors
    ) -> tf.Tensor:
        """Adds W_p c to z of a gate, if the gate has a peephole."""
        if gate not in weights:
            return z
        if self.peephole == "diagonal":
            return z + c * weights[gate]
        # Vectors are columns in (2), but rows in a batch, so W_p is transposed.
        return z + tf.matmul(c, weights[gate], transpose_b=True)

    def _add_peephole_error(
        self, gate: str, dc: tf.Tensor, dz: tf.Tensor, weights: Tensors
    ) -> tf.Tensor:
        """Adds transpose(W_p) dz, the gradient through a peephole, to dc."""
        if gate not in weights:
            return dc
        if self.peephole == "diagonal":
            return dc + dz * weights[gate]
        return dc + tf.matmul(dz, weights[gate])

    def _default_bias(self, shape: Any, dtype: Any = None) -> tf.Tensor:
        # A forget gate starts open, with a bias of 1 (Gers et al. 2000).
        ones = [1.0 if gate == "f" else 0.0 for gate in self.gates]
        return tf.repeat(tf.constant(ones, dtype), self.units)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor arguments as a dict, for `from_config`."""
        return {
            **super().get_config(),
            "peephole": self.peephole,
            "forget_gate": self.forget_gate,
        }
