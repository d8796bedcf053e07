"""A callback that writes histograms of an LSTM's gates to TensorBoard."""

import os
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.encoders.activations import (
    each_activations,
    recurrent_networks,
)
from keras_lstm_dssm.encoders.text_encoder import TextEncoder
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.models.kinds import TOWERS, kind_of


class GateHistograms(keras.callbacks.Callback):
    """Writes histograms of the activations of both encoders after each epoch.

    A histogram has the values of i, f, c, o or y of all cells at all words of
    the same texts, those of the first 256 clicks of a log, computed with the
    weights at the end of the epoch. They show, for example, gates that are
    saturated near 0 or 1. `folder` is where TensorBoard's files are written.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        model: Any,
        clicks: Iterable[tuple[str, str]] | None,
    ) -> None:
        super().__init__()
        if clicks is None or kind_of(model) is not TOWERS:
            raise InputError(
                "histograms are those of the gates of two towers, and a "
                f"{type(model).__name__} has none: leave them out"
            )
        for encoder in (model.query_encoder, model.document_encoder):
            recurrent_networks(encoder)
        queries, documents = zip(*islice(clicks, 256), strict=True)
        self.folder = Path(folder)
        self.texts = {"query": queries, "document": documents}

    def on_train_begin(self, logs: Any = None) -> None:
        """Opens TensorBoard's file."""
        self._writer = tf.summary.create_file_writer(str(self.folder))

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Writes the histograms of an epoch."""
        with self._writer.as_default():
            for tower, texts in self.texts.items():
                encoder = getattr(self.model, f"{tower}_encoder")
                for name, values in _all_values(encoder, texts).items():
                    tf.summary.histogram(f"{tower}/{name}", values, epoch)
        self._writer.flush()

    def on_train_end(self, logs: Any = None) -> None:
        """Closes TensorBoard's file."""
        self._writer.close()


def _all_values(
    encoder: TextEncoder, texts: Sequence[str]
) -> dict[str, np.ndarray]:
    """Returns name -> all values, for each network of the encoder."""
    values: dict[str, list[np.ndarray]] = {}
    for read in each_activations(encoder, texts):
        for network in read.directions:
            for name, array in network.arrays.items():
                key = f"backward/{name}" if network.reverse else name
                values.setdefault(key, []).append(array.ravel())
    return {name: np.concatenate(arrays) for name, arrays in values.items()}
