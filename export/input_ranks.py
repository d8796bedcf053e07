"""vectors_only: makes a signature refuse inputs that are not vectors."""

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

Method = Callable[..., Any]


def vectors_only(method: Method) -> Method:
    """Makes the graph of a signature refuse inputs of another rank than 1.

    TF Serving does not compare shapes with the signature, and some kernels of
    TF.Text, such as that of `WhitespaceTokenizer`, end the process of the
    server if they are given a scalar.

    Args:
        method: The method of a signature; its inputs are `[batch]`.

    Returns:
        The method, whose graph fails with INVALID_ARGUMENT before any other
        operation reads an input of another rank.

    Example:
    >>> class Length(tf.Module):
    ...     @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    ...     @vectors_only
    ...     def serve(self, text):
    ...         return {"length": tf.strings.length(text)}
    >>> Length().serve(tf.constant(["bolt"]))["length"].numpy()
    array([4], dtype=int32)
    """

    @functools.wraps(method)
    def checked(self: Any, *inputs: tf.Tensor) -> Any:
        return method(self, *[tf.ensure_shape(one, [None]) for one in inputs])

    return checked
