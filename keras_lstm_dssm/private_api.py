"""Wraps all undocumented names of Keras, TensorFlow and Ray that are in use.

Such names can change in any release. They are used in this file only, and
`tests/test_private_api.py` checks that they exist.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras.src.trainers.compile_utils import MetricsList
from tensorflow.core.protobuf.config_pb2 import CallableOptions

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.tables import read_table, write_table

TRIED_WITH = {"keras": "3.15.1", "tensorflow": "2.21.0"}
"""The releases with which this module was tested."""

_RAY_CLUSTERS = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
_RAY_CONSTANTS = "ray._private.ray_constants"  # reads the variable on import


@contextmanager
def ray_on_loopback() -> Iterator[None]:
    """Makes Ray, if it starts in the block, listen on the loopback address.

    Ray 2.60 otherwise listens on all addresses, even if it is given 127.0.0.1.
    """
    constants = sys.modules.get(_RAY_CONSTANTS)
    variable = os.environ.get(_RAY_CLUSTERS)
    enabled = getattr(constants, "ENABLE_RAY_CLUSTER", None)
    os.environ[_RAY_CLUSTERS] = "0"
    if constants:
        constants.ENABLE_RAY_CLUSTER = False  # type: ignore[attr-defined]
    try:
        yield
    finally:
        if variable is None:
            del os.environ[_RAY_CLUSTERS]
        else:
            os.environ[_RAY_CLUSTERS] = variable
        if constants:
            constants.ENABLE_RAY_CLUSTER = enabled  # type: ignore[attr-defined]


def accept_any_inputs(layer: keras.layers.Layer) -> None:
    """Lets a layer be called with strings, lists and tuples of tensors.

    Keras would convert the arguments to the layer's dtype, and raise a
    `ValueError` for positional arguments that are not tensors.
    """
    layer._convert_input_args = False
    accept_any_arguments(layer)


def accept_any_arguments(layer: keras.layers.Layer) -> None:
    """Lets a layer be called with lists as positional arguments."""
    layer._allow_non_tensor_positional_args = True


def mark_as_built(
    layer: keras.layers.Layer, shape: tuple[int | None, ...]
) -> None:
    """Marks a layer as built, but unlike `build` allows new sublayers."""
    layer.built = True
    layer._build_shapes_dict = {"input_shape": shape}


def all_layers(model: keras.layers.Layer) -> list[keras.layers.Layer]:
    """Returns a layer and all layers inside it, without duplicates."""
    return list(model._flatten_layers())


def is_distributed(model: keras.Model) -> bool:
    """Returns whether a `tf.distribute` strategy trains a model."""
    with model.distribute_strategy.scope():
        return tf.distribute.has_strategy()


def shares_strategy(
    model: keras.Model, optimizer: keras.optimizers.Optimizer
) -> bool:
    """Returns whether model and optimizer have one `tf.distribute` strategy."""
    return model.distribute_strategy is optimizer._distribution_strategy


def only_copy(variable: tf.Variable) -> tf.Variable:
    """Returns the variable of the only replica: its rows can be assigned."""
    if isinstance(variable, tf.distribute.DistributedValues):
        check_one_replica(len(variable.values))
        (variable,) = variable.values
    return variable


def check_one_replica(replicas: int) -> None:
    """Raises `InputError` if `tf.distribute` has several replicas."""
    if replicas > 1:
        raise InputError(
            f"found a tf.distribute strategy of {replicas} replicas, "
            "expected one replica: to train on several devices, start "
            "several processes with lstm-dssm-train --workers"
        )


def session_callable(
    session: tf.compat.v1.Session, inputs: Sequence[str], outputs: Sequence[str]
) -> Callable[..., Sequence[np.ndarray | np.generic | bytes]]:
    """Prepares thread-safe calls of a session, 0.1 ms faster than `run`."""
    return session._make_callable_from_options(
        CallableOptions(feed=inputs, fetch=outputs)
    )


class BuiltModel(keras.Model):
    """Base of a model whose weights all exist after its constructor."""

    # Under `tf.distribute`, Keras would average the replicas' first batches to
    # compute the shapes of weights, but strings have no average.
    def _maybe_symbolic_build(self, **_: Any) -> None:
        pass


class DirectedMean(MetricsList):
    """A weighted mean, with the direction that `EarlyStopping` looks for.

    `EarlyStopping` with `mode="auto"` finds a direction only in a list of
    metrics, so this is a list of one. `grows`: larger values are better.
    """

    def __init__(self, name: str, grows: bool) -> None:
        mean = keras.metrics.Mean(name=name)
        mean._direction = "up" if grows else "down"
        super().__init__([mean], name=name)

    @property
    def total(self) -> keras.Variable:
        """The sum of the weighted values."""
        return self.metrics[0].total

    @property
    def count(self) -> keras.Variable:
        """The sum of the weights."""
        return self.metrics[0].count

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        """Adds values to the weighted mean."""
        self.metrics[0].update_state(values, sample_weight=sample_weight)

    def result(self) -> tf.Tensor:
        """Returns the mean."""
        return self.metrics[0].result()


_MANY_ROWS = 4096
"""Number of rows from which only the updated rows of a variable are stored."""


class JointUpdateOptimizer(keras.optimizers.Optimizer):
    """Base of an optimizer that updates all variables in one method.

    A subclass implements `update_variables` in place of Keras's `update_step`,
    which has a single variable, and so can compute a norm over all gradients.
    """

    def save_own_variables(self, store: Any) -> None:
        """Saves the variables; of large variables only the updated rows."""
        for number, variable in enumerate(self.variables):
            value = variable.numpy()
            if value.ndim and len(value) >= _MANY_ROWS:
                # Integers are steps of last updates (`LazyRows`); most rows
                # have the smallest.
                start = value.min() if value.dtype.kind == "i" else 0
                write_table(store, str(number), value, start)
            else:
                store[str(number)] = value

    def load_own_variables(self, store: Any) -> None:
        """Loads the variables; warns if there is another number of them."""
        stored = {key.split("_")[0] for key in store.keys()}
        if len(stored) != len(self.variables):
            super().load_own_variables(store)  # warns, and loads nothing
            return
        for number, variable in enumerate(self.variables):
            variable.assign(read_table(store, str(number), variable.shape))

    def update_variables(
        self,
        gradients: Sequence[Any],
        variables: Sequence[tf.Variable],
        learning_rate: tf.Tensor,
    ) -> None:
        """Updates all variables from their gradients."""
        raise NotImplementedError(f"{type(self).__name__}.update_variables")

    @property
    def built_variables(self) -> Sequence[keras.Variable]:
        """The variables that `build` was given."""
        return self._trainable_variables

    def variable_key(self, variable: Any) -> str:
        """Returns a key of a variable; a replica's copy has the same key."""
        return self._var_key(variable)

    def variable_index(self, variable: Any) -> int:
        """Returns a variable's index among those passed to `build`."""
        return self._get_variable_index(variable)

    def _backend_update_step(
        self,
        grads: Sequence[Any],
        trainable_variables: Sequence[keras.Variable],
        learning_rate: tf.Tensor,
    ) -> None:
        variables = [
            only_copy(variable.value) for variable in trainable_variables
        ]
        self.update_variables(grads, variables, learning_rate)
