"""PositionalBiLSTM: a vector for each position of a text, read both ways."""

from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.layers import PeepholeLSTM, WordSequences, unit
from keras_lstm_dssm.layers.bidirectional_recurrence import run_on_rows
from keras_lstm_dssm.layers.flat_packing import RowSequences
from keras_lstm_dssm.layers.scoring_mlp import small_uniform
from keras_lstm_dssm.layers.trigram_embedding import gather_sum
from keras_lstm_dssm.registration import register


@register
class PositionalBiLSTM(keras.layers.Layer):
    """Represents each position of a text by an LSTM in each direction.

        p_t = [h_forward(t); h_backward(t)]

    Wan et al. 2016, section "Positional Sentence Representation". The LSTMs
    have a forget gate and no peepholes, all biases start at 0 and all weights
    as U(-0.1, 0.1). The backward LSTM starts at the last word of each text;
    padding is never read.

    Args:
        word_dimension: Width of the word vectors. Default 50.
        units: Width of h of each direction. Default 50.
        include_word: Whether p_t is [x_t; h_forward(t); h_backward(t)], with
            the word vector x_t, as in the authors' programs. Default `False`.
        unit_length: Whether p_t is scaled to length 1. Default `False`.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        texts: `WordSequences`; the order of the texts does not matter.
        training: Whether a gradient will be computed. Default `False`.

    Returns:
        `(texts, time, dimension)`, zero past the end of a text.

    Attributes:
        dimension: Width of p_t.
    """

    def __init__(
        self,
        word_dimension: int = 50,
        units: int = 50,
        include_word: bool = False,
        unit_length: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.word_dimension = word_dimension
        self.units = units
        self.include_word = include_word
        self.unit_length = unit_length
        self.dimension = 2 * units + (word_dimension if include_word else 0)
        with keras.name_scope(self.name):  # tells both sides' weights apart
            self.forward_lstm, self.backward_lstm = (
                lstm(
                    word_dimension,
                    units,
                    return_sequences=True,
                    dtype=self.dtype_policy,
                    name=name,
                )
                for name in ("forward", "backward")
            )
        self.built = True

    def call(self, texts: WordSequences, training: bool = False) -> tf.Tensor:
        """Compute p_t of all positions."""
        rows = RowSequences.from_padded(texts.vectors, texts.lengths)
        flat = self.flat(rows, training)
        return rows.padded(flat, tf.shape(texts.vectors)[1])

    def flat(self, texts: RowSequences, training: bool = False) -> tf.Tensor:
        """Compute p_t of all positions, one text after the other.

        Args:
            texts: The word vectors.
            training: As for a call.

        Returns:
            `(words, dimension)`.
        """
        layers = self.forward_lstm, self.backward_lstm
        outputs = run_on_rows(layers, texts, training)
        if self.include_word:
            words = gather_sum(texts.table, texts.index, training=training)
            outputs = tf.concat([words, outputs], axis=1)
        return unit(outputs) if self.unit_length else outputs

    def get_config(self) -> dict[str, Any]:
        """Return the constructor arguments as a dict, for `from_config`."""
        return {
            **super().get_config(),
            "word_dimension": self.word_dimension,
            "units": self.units,
            "include_word": self.include_word,
            "unit_length": self.unit_length,
        }


def lstm(
    word_dimension: int,
    units: int,
    return_sequences: bool,
    forget_bias: float = 0.0,
    **kwargs: Any,
) -> PeepholeLSTM:
    """Create the LSTM of Wan et al. 2016, with its weights.

    Args:
        word_dimension: Width of the inputs.
        units: Width of the outputs.
        return_sequences: Whether it returns the outputs at all steps.
        forget_bias: Start of the bias of the forget gate. Default 0, as in
            the authors' programs; all other biases start at 0.
        **kwargs: Arguments of `keras.layers.Layer`.
    """
    layer = PeepholeLSTM(
        units,
        forget_gate=True,
        return_sequences=return_sequences,
        kernel_initializer=small_uniform(),
        recurrent_initializer=small_uniform(),
        **kwargs,
    )
    layer.build((None, None, word_dimension))
    bias = layer.cell.bias  # 1 for the forget gate, 0 for the others
    bias.assign(forget_bias * bias)
    return layer
