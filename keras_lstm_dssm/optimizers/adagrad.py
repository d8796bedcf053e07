"""Adagrad, which updates only the rows that a batch reads."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.errors import PRECISIONS, InputError
from keras_lstm_dssm.private_api import JointUpdateOptimizer, only_copy
from keras_lstm_dssm.registration import Configured, register


def sum_rows(gradient: Any) -> Any:
    """Sums the rows of a sparse gradient that have the same index."""
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    indices, positions = tf.unique(gradient.indices)
    values = tf.math.unsorted_segment_sum(
        gradient.values, positions, tf.size(indices)
    )
    return tf.IndexedSlices(values, indices, gradient.dense_shape)


@register
class Adagrad(Configured, JointUpdateOptimizer):
    """Optimizes by Adagrad, and updates only the rows that a batch has read.

        G <- G + g * g          W <- W - rate g / (sqrt(G) + epsilon)

    W are the weights, g is the gradient, and G starts at 0 (Duchi et al. 2011;
    Wan et al. 2016). Rows without a gradient do not change. Keras's `Adagrad`
    adds epsilon inside the root.

    Args:
        learning_rate: A float or a `LearningRateSchedule`. Default 0.03.
        epsilon: Constant that prevents a division by zero. Default 1e-7.
        multipliers: Factors of the learning rate, by name. A name is a section
            of a variable's `path`, such as `"embedding"` or
            `"matcher/kernel"`. If several names occur in a path, their factors
            are multiplied. Default `None`: 1 for all variables.
        name: Name of the optimizer.
        **kwargs: See `keras.optimizers.Optimizer`.

    Raises:
        InputError: A name of `multipliers` occurs in no variable's path, or a
            variable has half precision.

    Example:
    >>> model.compile(Adagrad(0.03), PairwiseHinge())
    """

    def __init__(
        self,
        learning_rate: Any = 0.03,
        epsilon: float = 1e-7,
        multipliers: Mapping[str, float] | None = None,
        name: str = "adagrad",
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, name=name, **kwargs)
        self.epsilon = epsilon
        self.multipliers = dict(multipliers or {})

    def build(self, variables: Sequence[keras.Variable]) -> None:
        """Creates the accumulator G of each variable."""
        if self.built:
            return
        for variable in variables:
            # In half precision, G would lose the squares of small gradients.
            if variable.dtype not in PRECISIONS:
                raise InputError(
                    f"{variable.path} is of {variable.dtype}: expected "
                    "float32 or float64; pass dtype='float32' to its layer"
                )
        super().build(variables)
        self._accumulators = self.add_optimizer_variables(
            variables, "accumulator"
        )
        paths = [f"/{variable.path}/" for variable in variables]
        for name in self.multipliers:
            if not any(f"/{name}/" in path for path in paths):
                listed = ", ".join(path.strip("/") for path in paths)
                raise InputError(
                    f"multipliers: found {name!r}, expected whole sections of "
                    f"one of the paths {listed}"
                )
        self._factors = [
            math.prod(
                factor
                for name, factor in self.multipliers.items()
                if f"/{name}/" in path
            )
            for path in paths
        ]

    def update_variables(
        self,
        gradients: Sequence[Any],
        variables: Sequence[tf.Variable],
        learning_rate: tf.Tensor,
    ) -> None:
        """Updates the rows of each variable that have a gradient."""
        for gradient, variable in zip(gradients, variables, strict=True):
            self.update_step(sum_rows(gradient), variable, learning_rate)

    def update_step(
        self, gradient: Any, variable: tf.Variable, learning_rate: tf.Tensor
    ) -> None:
        """Updates a variable; a sparse gradient must not repeat an index."""
        index = self.variable_index(variable)
        accumulator = only_copy(self._accumulators[index].value)
        rate = tf.cast(learning_rate, variable.dtype) * self._factors[index]
        sparse = isinstance(gradient, tf.IndexedSlices)
        values = gradient.values if sparse else gradient
        if sparse:
            # `scatter_add` would be slower, because it allows repeated indices.
            indices = gradient.indices
            total = tf.gather(accumulator, indices) + tf.square(values)
            accumulator.scatter_update(tf.IndexedSlices(total, indices))
        else:
            total = accumulator.assign_add(tf.square(values))
        change = rate * values / (tf.sqrt(total) + self.epsilon)
        if sparse:
            rows = tf.gather(variable, indices) - change
            variable.scatter_update(tf.IndexedSlices(rows, indices))
        else:
            variable.assign_sub(change)
