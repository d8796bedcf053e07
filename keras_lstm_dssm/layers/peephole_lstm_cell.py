"""PeepholeLSTMCell: eq. (2), every form of peephole, forget gate or not."""

from typing import Any

import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.layers.gated_cell import GatedCell
from keras_lstm_dssm.registry import register

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
        super().__init__(units, len(self.gates), project_inputs, **kwargs)
        self.peephole = peephole
        self.forget_gate = forget_gate
        self.state_size = [units, units]
        self.output_size = units

    def build(self, input_shape: Any) -> None:
        """Creates the weights; `input_shape` is `(batch, features)`."""
        super().build(input_shape)
        self.peepholes = {}
        if self.peephole is None:
            return
        full = self.peephole == "full"
        for gate in self.gates:
            if gate != "g":
                self.peepholes[gate] = self.add_weight(
                    shape=(self.units,) * (2 if full else 1),
                    initializer="glorot_uniform" if full else "zeros",
                    name=f"peephole_{gate}",
                )

    def activations(
        self, inputs: tf.Tensor, states: list[tf.Tensor]
    ) -> dict[str, tf.Tensor]:
        """Returns i, f (with a forget gate), g, c, o and y at time t."""
        y, old = states
        parts = tf.split(
            self._preactivation(inputs, y), len(self.gates), axis=-1
        )
        z = dict(zip(self.gates, parts, strict=True))
        i = tf.sigmoid(self._peep("i", z["i"], old))
        g = tf.tanh(z["g"])
        if self.forget_gate:
            f = tf.sigmoid(self._peep("f", z["f"], old))
            c = f * old + i * g
        else:
            c = old + i * g
        o = tf.sigmoid(self._peep("o", z["o"], c))
        result = {"i": i, "g": g, "c": c, "o": o, "y": o * tf.tanh(c)}
        return {**result, "f": f} if self.forget_gate else result

    def call(
        self, inputs: tf.Tensor, states: list[tf.Tensor]
    ) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """Takes one step: `(y(t), [y(t), c(t)])`."""
        step = self.activations(inputs, states)
        return step["y"], [step["y"], step["c"]]

    def _peep(self, gate: str, z: tf.Tensor, c: tf.Tensor) -> tf.Tensor:
        if gate not in self.peepholes:
            return z
        weight = self.peepholes[gate]
        # W_p c for a column c is c W_p' for the row that a batch holds.
        full = self.peephole == "full"
        return z + (
            tf.matmul(c, weight, transpose_b=True) if full else c * weight
        )

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
