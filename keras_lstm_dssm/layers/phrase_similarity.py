"""PhraseSimilarity: how alike every phrase of one text is to every other's."""

from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.layers.scoring_mlp import near_identity, small_uniform
from keras_lstm_dssm.registration import register

KINDS = ("indirect", "direct", "concat")
ACTIVATIONS = ("sigmoid", "relu", "tanh", "linear")


@register
class PhraseSimilarity(keras.layers.Layer):
    """Compares all phrases of two texts, before a monotone activation.

        indirect: f(g1' W g2 + b), W near the identity at the start
        direct:   exp(-|g1 - g2|^2 / (2 beta))
        concat:   f(w' [g1; g2] + b)

    The match feature models of Yin and Schuetze 2015. A call gives the
    argument of f (or of exp), so that a maximum can be taken before `apply`
    computes f of fewer cells: f is monotone.

    Args:
        dimension: Width of the phrase vectors.
        kind: `"indirect"` (default), `"direct"` or `"concat"`.
        activation: The f, `"sigmoid"` (default), `"relu"`, `"tanh"` or
            `"linear"`; not used by `"direct"`.
        use_bias: Whether there is a b. Default `True`.
        beta: The beta of `"direct"`. Default 2.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        query: What `project` returns for the query phrases, `(pairs, m, d)`.
        document: Document phrases `(pairs, n, dimension)`.

    Returns:
        Float `(pairs, m, n)`, before the activation.

    Raises:
        InputError: An argument is not supported.

    Example:
    >>> similarity = PhraseSimilarity(4, kind="direct", beta=0.5)
    >>> query = similarity.project(tf.zeros([1, 2, 4]))
    >>> cells = similarity(query, tf.ones([1, 3, 4]))
    >>> float(cells[0, 0, 0])  # -|g1 - g2|^2 / (2 beta)
    -4.0
    """

    def __init__(
        self,
        dimension: int,
        kind: str = "indirect",
        activation: str = "sigmoid",
        use_bias: bool = True,
        beta: float = 2.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if kind not in KINDS:
            raise InputError(f"kind must be one of {KINDS}, not {kind!r}")
        if activation not in ACTIVATIONS:
            raise InputError(
                f"activation must be one of {ACTIVATIONS}, not {activation!r}"
            )
        if beta <= 0:
            raise InputError(f"beta must be greater than 0, not {beta}")
        self.dimension = dimension
        self.kind = kind
        self.activation = activation
        self.use_bias = use_bias
        self.beta = beta
        self.bias = None
        if kind != "direct":
            indirect = kind == "indirect"
            self.kernel = self.add_weight(
                shape=(dimension if indirect else 2, dimension),
                initializer=near_identity() if indirect else small_uniform(),
                name="kernel",
            )
            if use_bias:
                self.bias = self.add_weight(
                    shape=(), initializer="zeros", name="bias"
                )
        self.built = True

    def project(self, phrases: tf.Tensor) -> tf.Tensor:
        """Compute what depends on the query phrases alone.

        Args:
            phrases: Float `[texts, m, dimension]`.

        Returns:
            g1' W of `"indirect"`, the phrases themselves of the others.
        """
        if self.kind != "indirect":
            return phrases
        return tf.matmul(phrases, tf.convert_to_tensor(self.kernel))

    def call(self, query: tf.Tensor, document: tf.Tensor) -> tf.Tensor:
        """Compute the argument of the activation."""
        if self.kind == "direct":
            products = tf.matmul(query, document, transpose_b=True)
            squares = sum_squares(query)[:, :, tf.newaxis]
            squares += sum_squares(document)[:, tf.newaxis]
            return (products - squares / 2) / self.beta
        if self.kind == "indirect":
            values = tf.matmul(query, document, transpose_b=True)
        else:
            of_query, of_document = tf.unstack(
                tf.convert_to_tensor(self.kernel)
            )
            rows = tf.linalg.matvec(query, of_query)[:, :, tf.newaxis]
            columns = tf.linalg.matvec(document, of_document)
            values = rows + columns[:, tf.newaxis]
        return values if self.bias is None else values + self.bias

    def apply(self, values: tf.Tensor) -> tf.Tensor:
        """Compute f, or exp, of values that a call has returned."""
        if self.kind == "direct":
            return tf.exp(values)
        return keras.activations.get(self.activation)(values)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor arguments as a dict, for `from_config`."""
        return {
            **super().get_config(),
            "dimension": self.dimension,
            "kind": self.kind,
            "activation": self.activation,
            "use_bias": self.use_bias,
            "beta": self.beta,
        }


def sum_squares(vectors: tf.Tensor) -> tf.Tensor:
    """Compute the square of the length of each vector, `[texts, time]`."""
    return tf.reduce_sum(vectors * vectors, axis=-1)
