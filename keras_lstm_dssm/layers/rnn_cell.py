"""RNNCell: the plain recurrence, eq. (1)."""

from typing import Any

import tensorflow as tf

from keras_lstm_dssm.layers.gated_cell import GatedCell
from keras_lstm_dssm.registry import register


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
        super().__init__(units, 1, project_inputs, **kwargs)
        self.state_size = [units]
        self.output_size = units

    def activations(
        self, inputs: tf.Tensor, states: list[tf.Tensor]
    ) -> dict[str, tf.Tensor]:
        """Returns y(t), the only activation, under its name."""
        return {"y": tf.tanh(self._preactivation(inputs, states[0]))}

    def call(
        self, inputs: tf.Tensor, states: list[tf.Tensor]
    ) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """Takes one step: `(y(t), [y(t)])`."""
        y = self.activations(inputs, states)["y"]
        return y, [y]
