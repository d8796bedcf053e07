"""`custom_gradient`: a `tf.custom_gradient` that does not leak graphs."""

import uuid
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

Gradient = Callable[..., Sequence[Any]]
"""A gradient of `identity_n`: errors of its outputs -> those of its inputs."""


def custom_gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    """Does what `tf.custom_gradient` does, without keeping graphs in memory.

    TensorFlow 2.21 registers the gradient of each call in a graph, for good
    (`ops/custom_gradient.py:512`), and with it keeps the graph, the weights
    that it reads and their momentum: a process that trains one model after the
    other would hold them all. Here a call in a graph is a `tf.function` of its
    own, whose graph holds the gradient, and ends with the graph that calls it.
    TensorFlow inlines such calls, so that they take no time.

    Args:
        function: Takes tensors; returns a tensor, or a list of tensors, and the
            function from the errors of these to a gradient of each argument.
    """
    eager = tf.custom_gradient(function)

    @tf.autograph.experimental.do_not_convert
    def call(*arguments: Any) -> Any:
        if tf.executing_eagerly():
            return eager(*arguments)
        tensors = [tf.convert_to_tensor(each) for each in arguments]
        specs = [tf.TensorSpec(each.shape, each.dtype) for each in tensors]
        return tf.function(in_graph).get_concrete_function(*specs)(*tensors)

    @tf.autograph.experimental.do_not_convert
    def in_graph(*arguments: tf.Tensor) -> Any:
        results, gradient = function(*arguments)
        outputs = tf.nest.flatten(results)

        def of_inputs(*errors: tf.Tensor) -> list[Any]:
            gradients = gradient(*errors[: len(outputs)])
            if not isinstance(gradients, Sequence):
                gradients = [gradients]
            return [None] * len(outputs) + list(gradients)

        graph = tf.compat.v1.get_default_graph()
        name = _hold(graph, of_inputs)
        with graph.gradient_override_map({"IdentityN": name}):
            same = tf.identity_n([*outputs, *arguments])
        return tf.nest.pack_sequence_as(results, same[: len(outputs)])

    return call


_gradients: weakref.WeakValueDictionary[str, Gradient] = (
    weakref.WeakValueDictionary()
)
"""Registered name -> the gradient, which its graph holds."""

_unused_names: list[str] = []
"""Registered names whose graphs are freed; they are used again."""


def _hold(graph: tf.Graph, gradient: Gradient) -> str:
    """Stores a gradient in its graph; returns its registered name.

    TensorFlow has no public way to remove a name, so names are used again.
    """
    name = _unused_names.pop() if _unused_names else _new_name()
    graph.keras_lstm_dssm_gradient = gradient
    _gradients[name] = gradient
    weakref.finalize(graph, _unused_names.append, name)
    return name


def _new_name() -> str:
    """Registers a name, which no other process has: it is in SavedModels."""
    name = f"KerasLSTMDSSM-{uuid.uuid4()}"

    @tf.RegisterGradient(name)
    @tf.autograph.experimental.do_not_convert
    def gradient(op: tf.Operation | None, *errors: tf.Tensor) -> Sequence[Any]:
        # The name of an operation of a SavedModel may be another graph's now.
        # TensorFlow gives no operation when it saves a gradient.
        held = (
            _gradients.get(name)
            if op is None
            else getattr(op.graph, "keras_lstm_dssm_gradient", None)
        )
        if held is None:
            raise LookupError(
                f"{name}: the SavedModel was saved without its gradients:"
                " save it with experimental_custom_gradients=True"
            )
        return held(*errors)

    return name
