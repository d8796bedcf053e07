"""`custom_gradient`, as TensorFlow's, without graphs that stay in memory."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

_NAME = "KerasLSTMDSSMGradient"
_ATTRIBUTE = "keras_lstm_dssm_gradient"  # of the graph of a function


def custom_gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    """Does what `tf.custom_gradient` does, and lets graphs end.

    TensorFlow 2.21 registers a gradient for each call in a graph, for good
    (`ops/custom_gradient.py:512`), and with it keeps the graph, the weights
    that it reads and their momentum: a process that trains one model after the
    other would hold them all. Here one gradient is registered for all calls.
    A call in a graph is a `tf.function` of its own, whose graph has the
    gradient as an attribute and ends with the graph that calls it. TensorFlow
    inlines such calls, so that they take no time.

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
            """Returns gradients of the inputs of `identity_n`, below."""
            gradients = gradient(*errors[: len(outputs)])
            if not isinstance(gradients, Sequence):
                gradients = [gradients]
            return [None] * len(outputs) + list(gradients)

        graph = tf.compat.v1.get_default_graph()
        setattr(graph, _ATTRIBUTE, of_inputs)
        with graph.gradient_override_map({"IdentityN": _NAME}):
            same = tf.identity_n([*outputs, *arguments])
        return tf.nest.pack_sequence_as(results, same[: len(outputs)])

    return call


@tf.RegisterGradient(_NAME)
def _gradient(operation: tf.Operation, *errors: tf.Tensor) -> list[Any]:
    """Calls the gradient that the operation's graph has."""
    gradient = getattr(operation.graph, _ATTRIBUTE, None)
    if gradient is None:
        raise LookupError(
            "found a graph that was loaded, expected the model that made it:"
            " SavedModels have no gradients; load the .keras file to train"
        )
    return gradient(*errors)
