"""BidirectionalLSTMEncoder: two LSTMs, one reading from the right."""

from typing import Any

import tensorflow as tf

from keras_lstm_dssm.encoders.lstm import LSTMEncoder
from keras_lstm_dssm.registry import register
from keras_lstm_dssm.text import WordBatch


@register
class BidirectionalLSTMEncoder(LSTMEncoder):
    """A second network, with its own weights, reads right to left.

    Palangi et al. 2016, section V: the two final vectors are concatenated,
    so the vector is twice `cells` wide.

    Args:
        cells: Number of cells of each direction.
        **kwargs: See `LSTMEncoder`.
    """

    def __init__(self, cells: int = 96, **kwargs: Any) -> None:
        super().__init__(cells, **kwargs)
        self.dimension = 2 * cells
        self.backward_embedding, self.backward_lstm = self._direction(
            "_backward"
        )

    def compose(self, words: WordBatch, training: bool = False) -> tf.Tensor:
        """Reads the words in both directions."""
        forward = super().compose(words, training)
        reverse = tf.reverse_sequence(words.words, words.lengths, seq_axis=1)
        backward = self._read(
            self.backward_embedding,
            self.backward_lstm,
            words._replace(words=reverse),
            training,
        )
        return tf.concat([forward, backward], axis=-1)
