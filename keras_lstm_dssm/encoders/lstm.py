"""LSTMEncoder: the paper's own model."""

from typing import Any

import tensorflow as tf

from keras_lstm_dssm.encoders.text_encoder import TextEncoder
from keras_lstm_dssm.layers import (
    PeepholeLSTM,
    TrigramEmbedding,
    gather_sum,
    pack,
)
from keras_lstm_dssm.registry import register
from keras_lstm_dssm.text import WordBatch


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
