"""GateHistograms: how open the gates are, epoch by epoch, in TensorBoard."""

import os
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.analysis.activations import (
    each_activations,
    networks_of,
)
from keras_lstm_dssm.data import ClickLog
from keras_lstm_dssm.encoders import TextEncoder


class GateHistograms(keras.callbacks.Callback):
    """Writes histograms of i, f, c, o and y of both towers.

    After each epoch the same texts are read with the weights as they are
    then; what is shown is each activation at each word. Gates that stand at
    0 or 1 from the start learn nothing.

    Args:
        logs: Folder for TensorBoard, such as a run's `logs/gates`.
        queries: What the query encoder reads; some hundred are enough.
        documents: What the document encoder reads.

    Example:
    >>> gates = GateHistograms("run/logs/gates", queries[:256], titles[:256])
    >>> model.fit(pairs, callbacks=[gates])
    """

    def __init__(
        self,
        logs: str | os.PathLike[str],
        queries: Sequence[str],
        documents: Sequence[str],
    ) -> None:
        super().__init__()
        self.logs = Path(logs)
        self.texts = {"query": queries, "document": documents}

    @classmethod
    def of(
        cls,
        logs: str | os.PathLike[str],
        model: Any,
        log: ClickLog,
        texts: int = 256,
    ) -> "GateHistograms":
        """Takes the first pairs of a log as texts.

        Raises:
            InputError: A tower has no recurrence (DSSM, CLSM).
        """
        for encoder in (model.query_encoder, model.document_encoder):
            networks_of(encoder)
        queries, documents = zip(*islice(log, texts), strict=True)
        return cls(logs, queries, documents)

    def on_train_begin(self, logs: Any = None) -> None:
        """Opens the file."""
        self._writer = tf.summary.create_file_writer(str(self.logs))

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Writes the histograms; `TwoTower.fit` has settled the weights."""
        with self._writer.as_default():
            for tower, texts in self.texts.items():
                encoder = getattr(self.model, f"{tower}_encoder")
                for name, values in _gates(encoder, texts).items():
                    tf.summary.histogram(f"{tower}/{name}", values, epoch)
        self._writer.flush()

    def on_train_end(self, logs: Any = None) -> None:
        """Closes the file."""
        self._writer.close()


def _gates(encoder: TextEncoder, texts: Sequence[str]) -> dict[str, np.ndarray]:
    """Name -> all values; of a bidirectional encoder both networks'."""
    found: dict[str, list[np.ndarray]] = {}
    for read in each_activations(encoder, texts):
        for place, one in enumerate(read.directions):
            for name, values in one.arrays.items():
                key = f"backward/{name}" if place else name
                found.setdefault(key, []).append(values.ravel())
    return {name: np.concatenate(values) for name, values in found.items()}
