"""Wraps the undocumented names of Keras, TensorFlow and Ray that we use.

Undocumented names can change in any release. Only this file uses them, and
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
# This module of Ray reads the variable above when the module is imported.
_RAY_CONSTANTS = "ray._private.ray_constants"


@contextmanager
def ray_on_loopback() -> Iterator[None]:
    """Limits Ray to the loopback address if Ray starts in the block."""
    # Otherwise Ray 2.60 listens on all addresses, even if told 127.0.0.1.
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
    """Lets a layer be called with strings, lists and tuples of tensors."""
    # Otherwise Keras would convert strings to the layer's dtype.
    layer._convert_input_args = False
    accept_any_arguments(layer)


def accept_any_arguments(layer: keras.layers.Layer) -> None:
    """Lets a layer be called with lists as positional arguments."""
    layer._allow_non_tensor_positional_args = True


def mark_as_built(
    layer: keras.layers.Layer, shape: tuple[int | None, ...]
) -> None:
    """Marks a layer as built; unlike `build`, this allows new sublayers."""
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
    """Returns whether model and optimizer share a `tf.distribute` strategy."""
    return model.distribute_strategy is optimizer._distribution_strategy


def only_copy(variable: tf.Variable) -> tf.Variable:
    """Returns the only replica's copy of a variable, for updates of rows."""
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
    """Base class of models whose constructor creates all weights."""

    # Under `tf.distribute`, Keras's method would average the first batches of
    # the replicas. The average of strings fails.
    def _maybe_symbolic_build(self, **_: Any) -> None:
        pass


class DirectedMean(MetricsList):
    """A weighted mean that tells `EarlyStopping` whether to maximise it."""

    # `EarlyStopping` with `mode="auto"` reads the direction only from a list of
    # metrics. This class is a list of one metric.
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
"""For variables with this many rows or more, only updated rows are stored."""


class JointUpdateOptimizer(keras.optimizers.Optimizer):
    """Base class of optimizers that update all variables in one method."""

    def save_own_variables(self, store: Any) -> None:
        """Saves variables; saves only the updated rows of large variables."""
        for number, variable in enumerate(self.variables):
            value = variable.numpy()
            if value.ndim and len(value) >= _MANY_ROWS:
                # A large integer variable has, for each row, the number of the
                # step that last updated the row (`LazyRows`). Most rows have
                # the smallest number, and are not written.
                start = value.min() if value.dtype.kind == "i" else 0
                write_table(store, str(number), value, start)
            else:
                store[str(number)] = value

    def load_own_variables(self, store: Any) -> None:
        """Loads the variables, or warns if their number in the file differs."""
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
        """Updates all variables; Keras's `update_step` updates one variable."""
        raise NotImplementedError(f"{type(self).__name__}.update_variables")

    @property
    def built_variables(self) -> Sequence[keras.Variable]:
        """The variables that `build` was given."""
        return self._trainable_variables

    def variable_key(self, variable: Any) -> str:
        """Returns a key that all replicas' copies of a variable share."""
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
