"""The LSTM with peepholes, eq. (2), as a cell and as a layer."""

from typing import Any

import tensorflow as tf

from keras_lstm_dssm.errors import check_choice
from keras_lstm_dssm.layers.packed_sequence import last_rows
from keras_lstm_dssm.layers.recurrent import Recurrent
from keras_lstm_dssm.layers.recurrent_cell import RecurrentCell, Tensors
from keras_lstm_dssm.registration import register

PEEPHOLES = (None, "diagonal", "full")


@register
class PeepholeLSTMCell(RecurrentCell):
    """Computes the LSTM cell of Palangi et al. 2016, eq. (2).

        y_g(t) = tanh(W4 l(t) + W_rec4 y(t-1) + b4)
        i(t) = sigma(W3 l(t) + W_rec3 y(t-1) + W_p3 c(t-1) + b3)
        f(t) = sigma(W2 l(t) + W_rec2 y(t-1) + W_p2 c(t-1) + b2)
        c(t) = f(t) o c(t-1) + i(t) o y_g(t)
        o(t) = sigma(W1 l(t) + W_rec1 y(t-1) + W_p1 c(t) + b1)
        y(t) = o(t) o tanh(c(t))

    The output gate reads the new cell state c(t), the other gates read
    c(t-1). The columns of the weights belong to the gates i, f, g, o, in this
    order, which is also that of `keras.layers.LSTM`; f is left out if there
    is no forget gate.

    Args:
        units: Number of cells, the width of y and c.
        peephole: `"full"`, the default, for the matrices W_p of (2), whose
            gradients are (19), (26) and (34); `"diagonal"` for one weight per
            cell (Gers et al. 2002); or `None` for no peepholes.
        forget_gate: Whether there is a gate f, default `True`. If `False`,
            `c(t) = c(t-1) + i(t) o y_g(t)`. The experiments of the paper,
            section V, leave out f and the peepholes, and so does
            `LSTMEncoder`.
        project_inputs: Whether the cell has input weights W, default `True`;
            see `RecurrentCell`.
        **kwargs: Initializers, regularizers and constraints, see
            `RecurrentCell`. Full peepholes are initialised by
            `glorot_uniform`, diagonal ones by zeros.

    Call arguments:
        inputs: `(batch, features)`, or `(batch, gates * units)` without
            `project_inputs`.
        states: `[y(t-1), c(t-1)]`, each `(batch, units)`.

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
        """Returns the weights that multiply the previous states, by name.

        `recurrent` is the matrix W_rec; a peephole has its gate's
        name.
        """
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
        parts = self._split_gates(z)
        old = states["c"]
        now = {
            "i": tf.sigmoid(self._add_peephole("i", parts["i"], old, weights)),
            "g": tf.tanh(parts["g"]),
        }
        carried = old
        if self.forget_gate:
            f = self._add_peephole("f", parts["f"], old, weights)
            now["f"] = tf.sigmoid(f)
            carried = now["f"] * old
        now["c"] = carried + now["i"] * now["g"]
        o = self._add_peephole("o", parts["o"], now["c"], weights)
        now["o"] = tf.sigmoid(o)
        now["y"] = now["o"] * tf.tanh(now["c"])
        return now

    def backpropagate(
        self, now: Tensors, before: Tensors, errors: Tensors, weights: Tensors
    ) -> tuple[tf.Tensor, Tensors]:
        """Computes the error signals (17), (22), (30), (38) of Appendix A.

        Unlike the appendix, this includes the path from c(t) through the
        peephole of the output gate.
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
        """Computes the weights' gradients: sums of (16), (19), (26) and (34).

        The sums are over all time steps of all rows.
        """
        result = super().weight_gradients(dz, now, before)
        parts = self._split_gates(dz)
        for gate in self.peepholes:
            cell_state = now["c"] if gate == "o" else before["c"]
            part = last_rows(parts[gate], cell_state)
            result[gate] = (
                tf.reduce_sum(part * cell_state, axis=0)
                if self.peephole == "diagonal"
                else tf.matmul(part, cell_state, transpose_a=True)
            )
        return result

    def _split_gates(self, z: tf.Tensor) -> Tensors:
        parts = tf.split(z, len(self.gates), axis=-1)
        return dict(zip(self.gates, parts, strict=True))

    def _add_peephole(
        self, gate: str, z: tf.Tensor, c: tf.Tensor, weights: Tensors
    ) -> tf.Tensor:
        """Adds the peephole's product with the state c to a gate's sum z."""
        if gate not in weights:
            return z
        if self.peephole == "diagonal":
            return z + c * weights[gate]
        # (2) has column vectors; a batch has rows, so W_p is transposed.
        return z + tf.matmul(c, weights[gate], transpose_b=True)

    def _add_peephole_error(
        self, gate: str, dc: tf.Tensor, dz: tf.Tensor, weights: Tensors
    ) -> tf.Tensor:
        """Adds the gradient of c through a gate's peephole, W_p' dz."""
        if gate not in weights:
            return dc
        if self.peephole == "diagonal":
            return dc + dz * weights[gate]
        return dc + tf.matmul(dz, weights[gate])

    def _default_bias(self, shape: Any, dtype: Any = None) -> tf.Tensor:
        # A bias of 1 keeps the forget gate near 1, so that the untrained cell
        # state already spans several words (Gers et al. 2000).
        ones = [1.0 if gate == "f" else 0.0 for gate in self.gates]
        return tf.repeat(tf.constant(ones, dtype), self.units)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor arguments as a dict, for `from_config`."""
        return {
            **super().get_config(),
            "peephole": self.peephole,
            "forget_gate": self.forget_gate,
        }


@register
class PeepholeLSTM(Recurrent):
    """Runs the LSTM of Palangi et al. 2016, eq. (2), over sequences.

    Replaces `keras.layers.LSTM` and has weights of the same layout: with
    `peephole=None`, equal weights give equal outputs. Dropout, other
    activations, `unroll` and `stateful` are not supported.

    Args:
        units: Number of cells, the width of the output.
        peephole: `"full"`, the default, `"diagonal"` or `None`; see
            `PeepholeLSTMCell`.
        forget_gate: Whether the cells have a forget gate, default `True`.
        truncate: Number of steps that the gradient goes back. Default `None`
            for all; see `Recurrent`.
        project_inputs: Whether the cell has input weights W, default `True`;
            see `RecurrentCell`.
        return_sequences: Whether to return all outputs, default `False`.
        return_state: Whether to return y and c, too, default `False`.
        go_backwards: Whether to read rows in reverse, default `False`.
        **kwargs: Initializers, regularizers and constraints, such as
            `kernel_regularizer`, see `RecurrentCell`; and arguments of
            `keras.layers.Layer`.

    Call arguments:
        inputs: `(batch, time, features)`.
        lengths: Number of steps of each row, int `(batch,)`.
        initial_state: `[y, c]`, each `(batch, units)`.
        mask: bool `(batch, time)`, an alternative to `lengths`.
        training: Whether a gradient will be computed; see `Recurrent`.

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
        of_cell = {
            name: kwargs.pop(name)
            for name in list(kwargs)
            if name.startswith(("kernel_", "recurrent_", "bias_"))
        }
        cell = PeepholeLSTMCell(
            units,
            peephole,
            forget_gate,
            project_inputs,
            dtype=kwargs.get("dtype"),
            name="cell",
            **of_cell,
        )
        super().__init__(
            cell,
            truncate,
            return_sequences,
            return_state,
            go_backwards,
            **kwargs,
        )

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor arguments as a dict, for `from_config`."""
        config = super().get_config()
        del config["cell"]
        # The layer's name, dtype and trainable replace those of the cell.
        return {**self.cell.get_config(), **config}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "PeepholeLSTM":
        """Rebuilds the layer from its configuration."""
        return cls(**config)
