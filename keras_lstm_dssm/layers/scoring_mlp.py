"""ScoringMLP: the dense layers that turn features of a pair into its score."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.errors import check_each_at_least
from keras_lstm_dssm.registration import Configured, register


def small_uniform(
    limit: float = 0.1, seed: int | None = None
) -> keras.initializers.Initializer:
    """Returns a new U(-limit, limit), by default that of Wan et al. 2016.

    One initializer would give equal values to weights of equal shape.
    """
    return keras.initializers.RandomUniform(-limit, limit, seed)


def near_identity() -> Callable[..., tf.Tensor]:
    """Returns a new initializer: the identity plus U(-0.01, 0.01)."""
    noise = small_uniform(0.01)

    def initialize(shape: Any, dtype: Any = None) -> tf.Tensor:
        identity = tf.eye(shape[-1], dtype=dtype or keras.config.floatx())
        return identity + noise(shape, dtype)

    return initialize


@register
class ScoringMLP(Configured, keras.layers.Layer):
    """Computes the score of a pair from its features.

        r = f(W_r q + b_r) for each hidden layer;  s = W_s r + b_s

    The weights of the last layer are 0 at the start, so that all scores are
    0 and a hinge loss of margin 1 is exactly 1. Takes features `(pairs,
    width)`; returns scores `(pairs,)`.
    """

    def __init__(
        self,
        hidden: Sequence[int] = (200,),
        activation: str = "relu",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.hidden = list(hidden)
        self.activation = activation
        check_each_at_least(1, hidden=self.hidden)
        self.dense = [
            keras.layers.Dense(
                width,
                activation,
                kernel_initializer=small_uniform(),
                dtype=self.dtype_policy,
                name=f"hidden_{number}",
            )
            for number, width in enumerate(self.hidden)
        ]
        self.score = keras.layers.Dense(
            1,
            kernel_initializer="zeros",
            dtype=self.dtype_policy,
            name="score",
        )

    def build(self, input_shape: Any) -> None:
        """Creates the weights."""
        width = input_shape[-1]
        for layer in [*self.dense, self.score]:
            layer.build((None, width))
            width = layer.units

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Computes the scores."""
        values = inputs
        for layer in self.dense:
            values = layer(values)
        return self.score(values)[:, 0]
