"""DocumentEncoder: the states of sentences -> the vector of a document."""

from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.private_api import accept_any_inputs
from keras_lstm_dssm.registration import register


def sentence_weights(logits: tf.Tensor, document: tf.Tensor) -> tf.Tensor:
    """Compute the weights p_i / sum_j p_j of sentences within documents.

    This is the softmax of log p_i. It is defined even where all p_i of a
    document are too small for a float.

    Args:
        logits: Float `(n,)`, the logits of p.
        document: int32 `(n,)`, the document of each sentence, ascending.

    Returns:
        Float `(n,)`, of sum 1 in each document.

    Example:
    >>> sentence_weights(tf.constant([-500.0, -500.0, 3.0]), [0, 0, 1]).numpy()
    array([0.5, 0.5, 1. ], dtype=float32)
    """
    log_p = tf.math.log_sigmoid(logits)
    largest = tf.stop_gradient(tf.math.segment_max(log_p, document))
    terms = tf.exp(log_p - tf.gather(largest, document))
    return terms / tf.gather(tf.math.segment_sum(terms, document), document)


@register
class DocumentEncoder(keras.layers.Layer):
    """Represents documents by a weighted mean of their sentences.

        d = tanh(W_d (sum_i p_i / (sum_j p_j) h_i) + b_d)

    Eq. (3) of Bi and Ma 2017.

    Args:
        state_dimension: Width of the states h. Default 200.
        dimension: Width of d. Default 100.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        states: Float `(n, state_dimension)`, h of each sentence.
        logits: Float `(n,)`, the logits of p.
        document: int32 `(n,)`, the document of each sentence: ascending,
            with at least one sentence for each document.

    Returns:
        Float `(documents, dimension)`.

    Raises:
        InputError: A width is less than 1.

    Example:
    >>> DocumentEncoder()(tf.ones([3, 200]), tf.zeros([3]), [0, 1, 1]).shape
    TensorShape([2, 100])
    """

    def __init__(
        self, state_dimension: int = 200, dimension: int = 100, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        if state_dimension < 1 or dimension < 1:
            raise InputError(
                "state_dimension and dimension must be at least 1, not "
                f"{state_dimension} and {dimension}"
            )
        self.state_dimension = state_dimension
        self.dimension = dimension
        self.dense = keras.layers.Dense(
            dimension, "tanh", dtype=self.dtype_policy, name="dense"
        )
        self.dense.build((None, state_dimension))
        accept_any_inputs(self)
        self.built = True

    def call(
        self, states: tf.Tensor, logits: tf.Tensor, document: tf.Tensor
    ) -> tf.Tensor:
        """Compute d of each document."""
        weights = sentence_weights(logits, document)[:, tf.newaxis]
        return self.dense(tf.math.segment_sum(weights * states, document))

    def get_config(self) -> dict[str, Any]:
        """Return the constructor arguments as a dict, for `from_config`."""
        return {
            **super().get_config(),
            "state_dimension": self.state_dimension,
            "dimension": self.dimension,
        }
