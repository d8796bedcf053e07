"""Recurrent cells: the RNN of eq. (1) and the peephole LSTM of eq. (2)."""

from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.registration import register

Tensors = dict[str, tf.Tensor]


class GatedCell(keras.layers.Layer):
    """Base of the cells: `z(t) = W x(t) + b + W_rec y(t-1)` for all gates.

    A subclass gives `activate`, which makes activations of z, and
    `backpropagate`, its derivative by hand. A cell serves in
    `keras.layers.RNN` and, faster, in `Recurrent`.

    Args:
        units: Width of the state.
        gates: Number of gates, whose units lie side by side.
        states: Names of the states among the activations, the output first.
        project_inputs: True, the cell owns the input weights W and takes any
            features, like a stock Keras cell. False, the inputs are
            `W l(t)` already, `(batch, gates * units)`: `TrigramEmbedding`
            has made them for each distinct word once.
    """

    def __init__(
        self,
        units: int,
        gates: int,
        states: tuple[str, ...],
        project_inputs: bool,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if units < 1:
            raise InputError(f"a cell needs 1 unit or more, not {units}")
        self.units = units
        self.project_inputs = project_inputs
        self.state_names = states
        # States whose past the gradients need; W_rec's needs that of y.
        self.remembered = ["y"]
        self.state_size = [units] * len(states)
        self.output_size = units
        self._width = gates * units

    def build(self, input_shape: Any) -> None:
        """Creates the weights; `input_shape` is `(batch, features)`."""
        if self.project_inputs:
            self.kernel = self.add_weight(
                shape=(input_shape[-1], self._width),
                initializer="glorot_uniform",
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
            initializer="glorot_uniform",
            name="recurrent_kernel",
        )
        self.bias = self.add_weight(
            shape=(self._width,), initializer=self._initial_bias, name="bias"
        )

    def project(self, inputs: tf.Tensor) -> tf.Tensor:
        """The part of z that no state is needed for, `W x(t) + b`."""
        if self.project_inputs:
            inputs = tf.matmul(inputs, self.kernel)
        return inputs + self.bias

    def recurrent_weights(self) -> Tensors:
        """The weights that multiply states, by name; W_rec is `recurrent`."""
        return {"recurrent": tf.convert_to_tensor(self.recurrent_kernel)}

    def activate(
        self, z: tf.Tensor, states: Tensors, weights: Tensors
    ) -> Tensors:
        """Makes the activations at time t, the new states among them.

        Args:
            z: `(batch, gates * units)`.
            states: The states at t-1, by name.
            weights: From `recurrent_weights`.
        """
        raise NotImplementedError(f"{type(self).__name__}.activate")

    def backpropagate(
        self, now: Tensors, before: Tensors, errors: Tensors, weights: Tensors
    ) -> tuple[tf.Tensor, Tensors]:
        """Takes error signals from the states at t to z and the states at t-1.

        Args:
            now: The activations at t.
            before: The `remembered` states at t-1.
            errors: Derivatives by the states at t.
            weights: From `recurrent_weights`.

        Returns:
            The derivative by z, and those by the states at t-1 other than
            through `W_rec y(t-1)`, which is common to all cells.
        """
        raise NotImplementedError(f"{type(self).__name__}.backpropagate")

    def weight_gradients(
        self, dz: tf.Tensor, now: Tensors, before: Tensors
    ) -> Tensors:
        """Sums the outer products over all steps, one large product each.

        Args:
            dz: Derivatives by z at all steps, `(steps, gates * units)`.
            now: The `remembered` states at all steps.
            before: The same one step before.
        """
        return {"recurrent": tf.matmul(before["y"], dz, transpose_a=True)}

    def step(self, x: tf.Tensor, states: Tensors, weights: Tensors) -> Tensors:
        """Makes the activations at time t from `project`ed inputs."""
        z = x + tf.matmul(states["y"], weights["recurrent"])
        return self.activate(z, states, weights)

    def call(
        self, inputs: tf.Tensor, states: list[tf.Tensor]
    ) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """Takes one step, `(y(t), new states)`, for `keras.layers.RNN`."""
        now = self.step(
            self.project(inputs),
            dict(zip(self.state_names, states, strict=True)),
            self.recurrent_weights(),
        )
        return now["y"], [now[name] for name in self.state_names]

    def _initial_bias(self, shape: Any, dtype: Any = None) -> tf.Tensor:
        return tf.zeros(shape, dtype)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "units": self.units,
            "project_inputs": self.project_inputs,
        }


@register
class RNNCell(GatedCell):
    """`y(t) = tanh(W l(t) + W_rec y(t-1) + b)`, Palangi et al. 2016, (1).

    Args:
        units: Width of y.
        project_inputs: See `GatedCell`.

    Call arguments:
        inputs: `(batch, features)`, or `(batch, units)` without projection.
        states: `[y(t-1)]`, `(batch, units)`.
    """

    def __init__(
        self, units: int, project_inputs: bool = True, **kwargs: Any
    ) -> None:
        super().__init__(units, 1, ("y",), project_inputs, **kwargs)
        self.activation_names = ("y",)

    def activate(
        self, z: tf.Tensor, states: Tensors, weights: Tensors
    ) -> Tensors:
        """Returns y(t)."""
        return {"y": tf.tanh(z)}

    def backpropagate(
        self, now: Tensors, before: Tensors, errors: Tensors, weights: Tensors
    ) -> tuple[tf.Tensor, Tensors]:
        """Eq. (10): (1 - y) o (1 + y) o the error."""
        return tf.raw_ops.TanhGrad(y=now["y"], dy=errors["y"]), {}


PEEPHOLES = (None, "diagonal", "full")


@register
class PeepholeLSTMCell(GatedCell):
    """The LSTM cell of Palangi et al. 2016, eq. (2).

        y_g(t) = tanh(W4 l(t) + W_rec4 y(t-1) + b4)
        i(t) = sigma(W3 l(t) + W_rec3 y(t-1) + W_p3 c(t-1) + b3)
        f(t) = sigma(W2 l(t) + W_rec2 y(t-1) + W_p2 c(t-1) + b2)
        c(t) = f(t) o c(t-1) + i(t) o y_g(t)
        o(t) = sigma(W1 l(t) + W_rec1 y(t-1) + W_p1 c(t) + b1)
        y(t) = o(t) o tanh(c(t))

    The output gate looks at the *new* cell c(t), the other gates at the old
    one. The columns of the weights are the gates i, f, g, o in this order,
    without f when there is no forget gate.

    Args:
        units: Number of cells.
        peephole: `None`; `"diagonal"`, one weight a cell (Gers et al.
            2002); or `"full"`, matrices W_p, which the paper's gradients
            (19), (26) and (34) imply.
        forget_gate: False, as in the paper's experiments, makes
            `c(t) = c(t-1) + i(t) o y_g(t)`.
        project_inputs: See `GatedCell`.

    Call arguments:
        inputs: `(batch, features)`, or `(batch, gates * units)` without
            projection.
        states: `[y(t-1), c(t-1)]`, each `(batch, units)`.

    Example:
    >>> layer = keras.layers.RNN(PeepholeLSTMCell(96, peephole="full"))
    >>> layer(np.zeros((2, 5, 16), "float32")).shape
    TensorShape([2, 96])
    """

    def __init__(
        self,
        units: int,
        peephole: str | None = None,
        forget_gate: bool = False,
        project_inputs: bool = True,
        **kwargs: Any,
    ) -> None:
        if peephole not in PEEPHOLES:
            raise InputError(
                f"peephole must be one of {PEEPHOLES}, not {peephole!r}"
            )
        self.gates = ("i", "f", "g", "o") if forget_gate else ("i", "g", "o")
        super().__init__(
            units, len(self.gates), ("y", "c"), project_inputs, **kwargs
        )
        self.activation_names = (*self.gates, "c", "y")
        self.peephole = peephole
        self.forget_gate = forget_gate
        if peephole or forget_gate:
            self.remembered = ["y", "c"]

    def build(self, input_shape: Any) -> None:
        """Creates the weights; `input_shape` is `(batch, features)`."""
        super().build(input_shape)
        full = self.peephole == "full"
        self.peepholes = {
            gate: self.add_weight(
                shape=(self.units,) * (2 if full else 1),
                initializer="glorot_uniform" if full else "zeros",
                name=f"peephole_{gate}",
            )
            for gate in self.gates
            if gate != "g" and self.peephole
        }

    def recurrent_weights(self) -> Tensors:
        """W_rec, and each gate's peephole under the gate's name."""
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
        """Returns i, f (with a forget gate), g, c, o and y at time t."""
        parts = self._split(z)
        old = states["c"]
        now = {
            "i": tf.sigmoid(self._peep("i", parts["i"], old, weights)),
            "g": tf.tanh(parts["g"]),
        }
        kept = old
        if self.forget_gate:
            now["f"] = tf.sigmoid(self._peep("f", parts["f"], old, weights))
            kept = now["f"] * old
        now["c"] = kept + now["i"] * now["g"]
        now["o"] = tf.sigmoid(self._peep("o", parts["o"], now["c"], weights))
        now["y"] = now["o"] * tf.tanh(now["c"])
        return now

    def backpropagate(
        self, now: Tensors, before: Tensors, errors: Tensors, weights: Tensors
    ) -> tuple[tf.Tensor, Tensors]:
        """Error signals of Appendix A: (17), (22), (30), (38), and onward.

        Where the appendix leaves out the way from c(t) through the peephole
        of the output gate, this has it.
        """
        squashed = tf.tanh(now["c"])
        dz = {
            "o": tf.raw_ops.SigmoidGrad(y=now["o"], dy=errors["y"] * squashed)
        }
        dc = errors["c"] + tf.raw_ops.TanhGrad(
            y=squashed, dy=errors["y"] * now["o"]
        )
        dc = self._peep_back("o", dc, dz["o"], weights)
        dz["i"] = tf.raw_ops.SigmoidGrad(y=now["i"], dy=dc * now["g"])
        dz["g"] = tf.raw_ops.TanhGrad(y=now["g"], dy=dc * now["i"])
        if self.forget_gate:
            dz["f"] = tf.raw_ops.SigmoidGrad(y=now["f"], dy=dc * before["c"])
            dc = self._peep_back("f", dc * now["f"], dz["f"], weights)
        dc = self._peep_back("i", dc, dz["i"], weights)
        return tf.concat([dz[gate] for gate in self.gates], axis=-1), {"c": dc}

    def weight_gradients(
        self, dz: tf.Tensor, now: Tensors, before: Tensors
    ) -> Tensors:
        """Outer products (16), (19), (26), (34), summed over all steps."""
        result = super().weight_gradients(dz, now, before)
        parts = self._split(dz)
        for gate in self.peepholes:
            seen = now["c"] if gate == "o" else before["c"]
            result[gate] = (
                tf.reduce_sum(parts[gate] * seen, axis=0)
                if self.peephole == "diagonal"
                else tf.matmul(parts[gate], seen, transpose_a=True)
            )
        return result

    def _split(self, z: tf.Tensor) -> Tensors:
        parts = tf.split(z, len(self.gates), axis=-1)
        return dict(zip(self.gates, parts, strict=True))

    def _peep(
        self, gate: str, z: tf.Tensor, c: tf.Tensor, weights: Tensors
    ) -> tf.Tensor:
        if gate not in weights:
            return z
        if self.peephole == "diagonal":
            return z + c * weights[gate]
        # W_p c for a column c is c W_p' for the row that a batch holds.
        return z + tf.matmul(c, weights[gate], transpose_b=True)

    def _peep_back(
        self, gate: str, dc: tf.Tensor, dz: tf.Tensor, weights: Tensors
    ) -> tf.Tensor:
        if gate not in weights:
            return dc
        if self.peephole == "diagonal":
            return dc + dz * weights[gate]
        return dc + tf.matmul(dz, weights[gate])

    def _initial_bias(self, shape: Any, dtype: Any = None) -> tf.Tensor:
        # A forget gate that starts open (Gers et al. 2000) lets the state
        # live through a sentence from the first update on.
        ones = [1.0 if gate == "f" else 0.0 for gate in self.gates]
        return tf.repeat(tf.constant(ones, dtype), self.units)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "peephole": self.peephole,
            "forget_gate": self.forget_gate,
        }
