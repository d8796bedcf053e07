"""Functions of tensors: custom gradients, unit vectors and cosines."""

import uuid
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

Gradient = Callable[..., Sequence[Any]]
"""Maps the gradients of an op's outputs to the gradients of its inputs."""


def custom_gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    """Does what `tf.custom_gradient` does, without keeping graphs in memory."""
    # In graphs, TensorFlow 2.21 registers a gradient for each call, and never
    # frees the gradient or the graph (`ops/custom_gradient.py:512`). Here the
    # graph of a `tf.function` holds the gradient, and both can be freed.
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
            copies = tf.identity_n([*outputs, *arguments])
        return tf.nest.pack_sequence_as(results, copies[: len(outputs)])

    return call


_gradients: weakref.WeakValueDictionary[str, Gradient] = (
    weakref.WeakValueDictionary()
)
"""Registered name -> gradient. A graph holds the gradient; see `_hold`."""

_unused_names: list[str] = []
"""Registered names of freed graphs; `_hold` uses the names again."""


def _hold(graph: tf.Graph, gradient: Gradient) -> str:
    """Stores a gradient in `graph`; returns the gradient's registered name."""
    name = _unused_names.pop() if _unused_names else _new_name()
    graph.keras_lstm_dssm_gradient = gradient
    _gradients[name] = gradient
    weakref.finalize(graph, _unused_names.append, name)
    return name


def _new_name() -> str:
    """Registers a gradient's name, unique in all processes and saved models."""
    name = f"KerasLSTMDSSM-{uuid.uuid4()}"

    @tf.RegisterGradient(name)
    @tf.autograph.experimental.do_not_convert
    def gradient(op: tf.Operation | None, *errors: tf.Tensor) -> Sequence[Any]:
        # `op` is None when TensorFlow saves a gradient. Otherwise the gradient
        # is read from the graph of `op`, because `_gradients[name]` may by now
        # be the gradient of another graph.
        registered = (
            _gradients.get(name)
            if op is None
            else getattr(op.graph, "keras_lstm_dssm_gradient", None)
        )
        if registered is None:
            raise LookupError(
                f"{name}: the SavedModel was saved without its gradients:"
                " save it with experimental_custom_gradients=True"
            )
        return registered(*errors)

    return name


def unit(y: tf.Tensor) -> tf.Tensor:
    """Scales the vectors of a float tensor `(..., d)` to unit length.

    A zero vector (sum of squares up to 1e-30) becomes the first basis vector,
    with gradient 0. A vector with a NaN becomes NaN.

    Example:
    >>> unit(tf.constant([[0.0, 2.0], [0.0, 0.0]])).numpy().tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    return _unit_and_scale(y)[0]


def _unit_and_scale(y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns unit vectors, and 1 / length `(..., 1)` (0 for zero vectors)."""
    square = tf.reduce_sum(y * y, axis=-1, keepdims=True)
    # A division by 0 would give NaN. For zero vectors, `rsqrt(square + 1e-12)`
    # would give gradients of 1e6.
    zero = square <= 1e-30  # False for NaN
    basis = tf.one_hot(0, tf.shape(y)[-1], dtype=y.dtype)
    scale = tf.math.rsqrt(tf.where(zero, tf.ones_like(square), square))
    return (
        tf.where(zero, basis, y * scale),
        tf.where(zero, tf.zeros_like(scale), scale),
    )


def cosine_pairs(query: tf.Tensor, document: tf.Tensor) -> tf.Tensor:
    """Computes cosines of pairs, `(n,)`: R of eq. (3), Palangi et al. 2016."""
    return tf.reduce_sum(unit(query) * unit(document), axis=-1)


def cosine_matrix(query: tf.Tensor, document: tf.Tensor) -> tf.Tensor:
    """Computes the cosines of all queries and documents, `(n, m)`.

    R and its gradient: eq. (3) and (15) of Palangi et al. 2016.
    """

    @custom_gradient
    def cosines(query: tf.Tensor, document: tf.Tensor) -> Any:
        q, query_scale = _unit_and_scale(query)
        d, document_scale = _unit_and_scale(document)
        result = tf.matmul(q, d, transpose_b=True)

        def gradient(error: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            # Eq. (15): a vector's gradient has no component along the vector.
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
