"""SentenceReader: the probability that a sentence is key, in its context."""

from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.layers.bidirectional_recurrence import run_on_rows
from keras_lstm_dssm.layers.flat_packing import RowSequences
from keras_lstm_dssm.layers.peephole_lstm import PeepholeLSTM
from keras_lstm_dssm.private_api import accept_any_inputs
from keras_lstm_dssm.registration import register


@register
class SentenceReader(keras.layers.Layer):
    """Computes states and probabilities of sentences by a bidirectional LSTM.

        h_i = [h_forward(i); h_backward(i)]
        p_i = sigmoid(w_l' h_i + b_l)

    Eq. (2) of Bi and Ma 2017: an LSTM with forget gate in each direction; p_i
    is the probability that sentence i is a key sentence. The backward LSTM
    starts at the last sentence of each document. There is no padding: the
    time is proportional to the number of sentences.

    Args:
        sentence_dimension: Width of the vectors of sentences. Default 150.
        units: Width of the LSTM of each direction. Default 100.
        scores: Whether there are w_l and b_l. Default `True`; with `False`
            all logits are 0, so that all sentences have the same weight.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        sentences: Float `(u, sentence_dimension)`, distinct sentences.
        index: int32 `(n,)`, for each sentence of each document its row in
            `sentences`; one document after the other.
        lengths: int32 `(documents,)`, the number of sentences of each
            document, at least 1.
        training: Whether a gradient will be computed. Default `False`.

    Returns:
        h, float `(n, 2 * units)`; and the logits of p, float `(n,)`.

    Raises:
        InputError: A width is less than 1.

    Example:
    >>> reader = SentenceReader(7, units=5)
    >>> states, logits = reader(tf.ones([2, 7]), [0, 1, 1], [1, 2])
    >>> states.shape, logits.shape
    (TensorShape([3, 10]), TensorShape([3]))
    """

    def __init__(
        self,
        sentence_dimension: int = 150,
        units: int = 100,
        scores: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if sentence_dimension < 1 or units < 1:
            raise InputError(
                "sentence_dimension and units must be at least 1, not "
                f"{sentence_dimension} and {units}"
            )
        self.sentence_dimension = sentence_dimension
        self.units = units
        self.scores = scores
        self.forward_lstm, self.backward_lstm = (
            PeepholeLSTM(
                units, forget_gate=True, dtype=self.dtype_policy, name=name
            )
            for name in ("forward", "backward")
        )
        for layer in (self.forward_lstm, self.backward_lstm):
            layer.build((None, None, sentence_dimension))
        if scores:
            self.score = keras.layers.Dense(
                1, dtype=self.dtype_policy, name="score"
            )
            self.score.build((None, 2 * units))
        accept_any_inputs(self)
        self.built = True

    def call(
        self,
        sentences: tf.Tensor,
        index: tf.Tensor,
        lengths: tf.Tensor,
        training: bool = False,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Compute h and the logits of p."""
        layers = self.forward_lstm, self.backward_lstm
        rows = RowSequences(
            sentences,
            tf.convert_to_tensor(index, tf.int32),
            tf.convert_to_tensor(lengths, tf.int32),
        )
        states = run_on_rows(layers, rows, training)
        if not self.scores:
            return states, tf.zeros(tf.shape(states)[:1], states.dtype)
        return states, self.score(states)[:, 0]

    def get_config(self) -> dict[str, Any]:
        """Return the constructor arguments as a dict, for `from_config`."""
        return {
            **super().get_config(),
            "sentence_dimension": self.sentence_dimension,
            "units": self.units,
            "scores": self.scores,
        }
