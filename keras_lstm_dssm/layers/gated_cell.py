"""GatedCell: what the recurrent cells share, the gates' linear part."""

from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.errors import InputError

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
