"""Base class of the recurrent cells, and the RNN cell of eq. (1)."""

from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.errors import check_at_least
from keras_lstm_dssm.layers.packed_sequence import last_rows
from keras_lstm_dssm.registration import register

Tensors = dict[str, tf.Tensor]


class RecurrentCell(keras.layers.Layer):
    """Base of the cells: computes `z(t) = W x(t) + b + W_rec y(t-1)`.

    A subclass implements `activate`, which computes the new states from z(t),
    and its gradient, `backpropagate`. A cell runs in `keras.layers.RNN` and,
    faster, in `Recurrent`.

    Args:
        units: Width of the states.
        gates: Number of gates. z holds the units of all gates side by side.
        states: Names of the states among the activations; the first one is
            the output.
        project_inputs: Whether the cell has input weights W, as the cells of
            Keras do. If `False`, the inputs are `W x(t)` already, `(batch,
            gates * units)`, which an encoder computes once for each distinct
            word (`TrigramEmbedding`).
        bias_initializer: Default `None`: zeros, and ones for a forget gate.
        **kwargs: Initializers, regularizers and constraints of W (`kernel`),
            of W_rec and peepholes (`recurrent`) and of b (`bias`), as in Keras;
            and arguments of `keras.layers.Layer`.
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
        # Names stay names until `build`: an initializer object draws its seed
        # when it is created, which must be when its weight is created.
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
        """States whose values at all steps `weight_gradients` needs."""
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
        """Computes the inputs' part of all gates, `W x(t) + b`.

        It has the shape `(..., gates * units)`, and does not depend on
        the states.
        """
        if self.project_inputs:
            inputs = tf.matmul(inputs, self.kernel)
        return inputs + self.bias

    def recurrent_weights(self) -> Tensors:
        """Returns the weights that multiply the previous states, by name.

        `recurrent` is the matrix W_rec, which multiplies the output
        y(t-1).
        """
        return {"recurrent": tf.convert_to_tensor(self.recurrent_kernel)}

    def activate(
        self, z: tf.Tensor, states: Tensors, weights: Tensors
    ) -> Tensors:
        """Computes all activations at time t, the new states among them.

        Takes z `(batch, gates * units)`, the states at t-1 by name, and the
        result of `recurrent_weights`; returns each activation `(batch, units)`
        by name.
        """
        raise NotImplementedError(f"{type(self).__name__}.activate")

    def backpropagate(
        self, now: Tensors, before: Tensors, errors: Tensors, weights: Tensors
    ) -> tuple[tf.Tensor, Tensors]:
        """Computes gradients for z(t) and for the states at t-1.

        Takes the activations at t, the `gradient_states` at t-1, and the
        gradients of the loss for the states at t. Those for the states at t-1
        are without the term of `W_rec y(t-1)`, which is the same for all cells
        and is added by the caller.
        """
        raise NotImplementedError(f"{type(self).__name__}.backpropagate")

    def weight_gradients(
        self, dz: tf.Tensor, now: Tensors, before: Tensors
    ) -> Tensors:
        """Sums the outer products of all steps, by one large matrix product.

        `dz` is `(steps, gates * units)`; `now` has the `gradient_states` at all
        steps, and `before` those one step earlier, from time 1 on. Returns the
        gradient for each weight of `recurrent_weights`, by name.
        """
        later = last_rows(dz, before["y"])
        return {"recurrent": tf.matmul(before["y"], later, transpose_a=True)}

    def step(self, x: tf.Tensor, states: Tensors, weights: Tensors) -> Tensors:
        """Computes all activations of a time step from projected inputs.

        These are a result of `project`.
        """
        z = x + tf.matmul(states["y"], weights["recurrent"])
        return self.activate(z, states, weights)

    def call(
        self, inputs: tf.Tensor, states: list[tf.Tensor]
    ) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """Computes a time step: the output y(t) and the new states.

        It has the signature of a cell of `keras.layers.RNN`.
        """
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
    """Computes `y(t) = tanh(W l(t) + W_rec y(t-1) + b)`, eq. (1).

    The RNN cell of Palangi et al. 2016.

    Args:
        units: Width of y.
        project_inputs: Whether the cell has input weights W, default `True`;
            see `RecurrentCell`.
        **kwargs: Initializers, regularizers and constraints, see
            `RecurrentCell`.

    Call arguments:
        inputs: `(batch, features)`, or `(batch, units)` without
            `project_inputs`.
        states: `[y(t-1)]`, `(batch, units)`.

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
        """Computes the output y(t) of the RNN cell: tanh of the sum z(t)."""
        return {"y": tf.tanh(z)}

    def backpropagate(
        self, now: Tensors, before: Tensors, errors: Tensors, weights: Tensors
    ) -> tuple[tf.Tensor, Tensors]:
        """Computes the gradient for z(t) from that for y(t), by eq. (10).

        It is (1 - y) o (1 + y) o the gradient for y(t).
        """
        return tf.raw_ops.TanhGrad(y=now["y"], dy=errors["y"]), {}
