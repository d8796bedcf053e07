"""GatedCell: what the recurrent cells share, the gates' linear part."""

from typing import Any

import keras
import tensorflow as tf


class GatedCell(keras.layers.Layer):
    """Base of the cells: `W x(t) + W_rec y(t-1) + b` for all gates at once.

    Args:
        units: Width of the state.
        gates: Number of gates, whose units lie side by side.
        project_inputs: True, the cell owns the input weights W and takes any
            features, like a stock Keras cell. False, the inputs are
            `W l(t)` already, `(batch, gates * units)`: `TrigramEmbedding`
            has made them for each distinct word once.
    """

    def __init__(
        self, units: int, gates: int, project_inputs: bool, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.units = units
        self.project_inputs = project_inputs
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

    def _initial_bias(self, shape: Any, dtype: Any = None) -> tf.Tensor:
        return tf.zeros(shape, dtype)

    def _preactivation(self, inputs: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        """The part before peepholes and squashing, `(batch, width)`."""
        if self.project_inputs:
            inputs = tf.matmul(inputs, self.kernel)
        return inputs + tf.matmul(y, self.recurrent_kernel) + self.bias

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "units": self.units,
            "project_inputs": self.project_inputs,
        }
