"""Functions of tensors: a custom gradient, unit vectors, and their cosines."""

import uuid
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

Gradient = Callable[..., Sequence[Any]]
"""A gradient of `identity_n`: errors of the outputs -> errors of the inputs."""


def custom_gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    """Does what `tf.custom_gradient` does, without keeping graphs in memory.

    TensorFlow 2.21 registers the gradient of each call in a graph for good
    (`ops/custom_gradient.py:512`), and so keeps the graph and its weights: a
    process that trains several models would hold them all. Here a call in a
    graph is a `tf.function`, whose graph holds the gradient and ends with the
    calling graph. TensorFlow inlines such calls, so that they take no time.

    Args:
        function: Takes tensors; returns a tensor, or a list of tensors, and the
            function that maps their errors to a gradient for each argument.
    """
    eager = tf.custom_gradient(function)

    @tf.autograph.experimental.do_not_convert
    def call(*arguments: Any) -> Any:
        if tf.executing_eagerly():
            return eager(*arguments)
        tensors = [tf.convert_to_tensor(argument) for argument in arguments]
        specs = [
            tf.TensorSpec(argument.shape, argument.dtype)
            for argument in tensors
        ]
        return tf.function(in_graph).get_concrete_function(*specs)(*tensors)

    @tf.autograph.experimental.do_not_convert
    def in_graph(*arguments: tf.Tensor) -> Any:
        results, gradient = function(*arguments)
        outputs = tf.nest.flatten(results)

        def input_gradients(*errors: tf.Tensor) -> list[Any]:
            gradients = gradient(*errors[: len(outputs)])
            if not isinstance(gradients, Sequence):
                gradients = [gradients]
            return [None] * len(outputs) + list(gradients)

        graph = tf.compat.v1.get_default_graph()
        name = _hold(graph, input_gradients)
        with graph.gradient_override_map({"IdentityN": name}):
            same = tf.identity_n([*outputs, *arguments])
        return tf.nest.pack_sequence_as(results, same[: len(outputs)])

    return call


_gradients: weakref.WeakValueDictionary[str, Gradient] = (
    weakref.WeakValueDictionary()
)
"""Registered name -> the gradient, which its graph holds."""

_unused_names: list[str] = []
"""Registered names whose graphs have been freed, to be used again."""


def _hold(graph: tf.Graph, gradient: Gradient) -> str:
    """Stores a gradient in its graph; returns its registered name."""
    name = _unused_names.pop() if _unused_names else _new_name()
    graph.keras_lstm_dssm_gradient = gradient
    _gradients[name] = gradient
    weakref.finalize(graph, _unused_names.append, name)
    return name


def _new_name() -> str:
    """Registers a new name, unique in all processes, since models store it."""
    name = f"KerasLSTMDSSM-{uuid.uuid4()}"

    @tf.RegisterGradient(name)
    @tf.autograph.experimental.do_not_convert
    def gradient(op: tf.Operation | None, *errors: tf.Tensor) -> Sequence[Any]:
        # The names in a SavedModel may belong to other graphs by now. When
        # TensorFlow saves a gradient, it gives no operation.
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


def unit(y: tf.Tensor) -> tf.Tensor:
    """Scales vectors to unit length.

    A zero vector (sum of squares up to 1e-30) becomes the first basis vector
    and gets no gradient: division would give NaN, and an epsilon in the
    denominator a gradient of 1e6. A vector with a NaN stays NaN, so that
    training stops.

    Args:
        y: Float tensor `(..., d)`.

    Returns:
        Tensor of the same shape, of vectors of length 1.

    Example:
    >>> unit(tf.constant([[0.0, 2.0], [0.0, 0.0]])).numpy().tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    return _unit_and_scale(y)[0]


def _unit_and_scale(y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns unit vectors and factors `(..., 1)`, 0 for zero vectors."""
    square = tf.reduce_sum(y * y, axis=-1, keepdims=True)
    zero = square <= 1e-30  # False for NaN
    basis = tf.one_hot(0, tf.shape(y)[-1], dtype=y.dtype)
    scale = tf.math.rsqrt(tf.where(zero, tf.ones_like(square), square))
    return (
        tf.where(zero, basis, y * scale),
        tf.where(zero, tf.zeros_like(scale), scale),
    )


def cosine_pairs(query: tf.Tensor, document: tf.Tensor) -> tf.Tensor:
    """Computes R of each query and the document of the same index, (3)."""
    return tf.reduce_sum(unit(query) * unit(document), axis=-1)


def cosine_matrix(query: tf.Tensor, document: tf.Tensor) -> tf.Tensor:
    """Computes R of every query and document, (3), with the gradient (15)."""

    @custom_gradient
    def cosines(query: tf.Tensor, document: tf.Tensor) -> Any:
        q, query_scale = _unit_and_scale(query)
        d, document_scale = _unit_and_scale(document)
        result = tf.matmul(q, d, transpose_b=True)

        def gradient(error: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            # (15) subtracts the part in the direction of the vector itself.
            along = error * result
            query_gradient = tf.matmul(error, d)
            query_gradient -= q * tf.reduce_sum(along, axis=1)[:, tf.newaxis]
            document_gradient = tf.matmul(error, q, transpose_a=True)
            document_gradient -= d * tf.reduce_sum(along, axis=0)[:, tf.newaxis]
            return (
                query_gradient * query_scale,
                document_gradient * document_scale,
            )

        return result, gradient

    return cosines(query, document)
