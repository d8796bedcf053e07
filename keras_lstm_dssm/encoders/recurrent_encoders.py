"""Encoders that read word by word: RNN, LSTM-RNN, bidirectional LSTM-RNN."""

from typing import Any

import tensorflow as tf

from keras_lstm_dssm.encoders.text_encoder import TextEncoder
from keras_lstm_dssm.layers import (
    PeepholeLSTM,
    Recurrent,
    RNNCell,
    TrigramEmbedding,
    gather_sum,
    pack,
)
from keras_lstm_dssm.registration import register
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


@register
class LSTMEncoder(TextEncoder):
    """LSTM-RNN over letter trigrams; y at the last word is the vector.

    Palangi et al. 2016, section III-B, eq. (2). The paper's experiments use
    neither peepholes nor forget gate, the default here.

    Args:
        cells: Number of cells, the vector's width.
        peephole: `None`, `"diagonal"` or `"full"`.
        forget_gate: Whether cells can forget.
        truncate: Steps of truncated BPTT, the T of (7); `None` for all.
        **kwargs: See `TextEncoder`.

    Example:
    >>> LSTMEncoder(cells=32)(tf.constant(["hotels in shanghai"])).shape
    TensorShape([1, 32])
    """

    def __init__(
        self,
        cells: int = 96,
        peephole: str | None = None,
        forget_gate: bool = False,
        truncate: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.cells = self.dimension = cells
        self.peephole = peephole
        self.forget_gate = forget_gate
        self.truncate = truncate
        self.embedding, self.lstm = self._direction("")
        self.built = True

    def compose(self, words: WordBatch, training: bool = False) -> tf.Tensor:
        """Reads the words from left to right."""
        return self._read(self.embedding, self.lstm, words, training)

    def _read(
        self,
        embedding: TrigramEmbedding,
        lstm: PeepholeLSTM,
        words: WordBatch,
        training: bool,
    ) -> tf.Tensor:
        steps = pack(words.words, words.lengths)
        projected = lstm.project(embedding(words, training=training))
        values = gather_sum(projected, steps.values, training=training)
        return lstm(steps._replace(values=values), training=training)

    def _direction(self, suffix: str) -> tuple[Any, PeepholeLSTM]:
        """One direction's embedding (of all gates at once) and recurrence."""
        lstm = PeepholeLSTM(
            self.cells,
            self.peephole,
            self.forget_gate,
            self.truncate,
            project_inputs=False,
            dtype=self.dtype_policy,
            name=f"lstm{suffix}",
        )
        width = self.cells * len(lstm.cell.gates)
        lstm.build((None, None, width))
        return self._embedding(width, f"embedding{suffix}"), lstm

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "cells": self.cells,
            "peephole": self.peephole,
            "forget_gate": self.forget_gate,
            "truncate": self.truncate,
        }


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
