"""RNNCell: the plain recurrence, eq. (1)."""

from typing import Any

import tensorflow as tf

from keras_lstm_dssm.layers.gated_cell import GatedCell, Tensors
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
