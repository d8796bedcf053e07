"""RNNEncoder: the recurrence without LSTM cells."""

from typing import Any

import tensorflow as tf

from keras_lstm_dssm.encoders.text_encoder import TextEncoder
from keras_lstm_dssm.layers import Recurrent, RNNCell, gather_sum, pack
from keras_lstm_dssm.registry import register
from keras_lstm_dssm.text import WordBatch


@register
class RNNEncoder(TextEncoder):
    """RNN over letter trigrams; y at the last word is the vector.

    Palangi et al. 2016, section III-A, eq. (1); 288 units have as many
    parameters as 96 LSTM cells.

    Args:
        units: Width of the state and of the vector.
        truncate: Steps of truncated BPTT, the T of (7); `None` for all.
        **kwargs: See `TextEncoder`.
    """

    def __init__(
        self, units: int = 288, truncate: int | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.units = self.dimension = units
        self.truncate = truncate
        self.embedding = self._embedding(units, "embedding")
        cell = RNNCell(
            units, project_inputs=False, dtype=self.dtype_policy, name="cell"
        )
        self.rnn = Recurrent(
            cell, truncate, dtype=self.dtype_policy, name="rnn"
        )
        self.rnn.build((None, None, units))
        self.built = True

    def compose(self, words: WordBatch, training: bool = False) -> tf.Tensor:
        """Reads the words from left to right."""
        steps = pack(words.words, words.lengths)
        rows = self.embedding(words, training=training)
        projected = self.rnn.project(rows)
        values = gather_sum(projected, steps.values, training=training)
        return self.rnn(steps._replace(values=values), training=training)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "units": self.units,
            "truncate": self.truncate,
        }
