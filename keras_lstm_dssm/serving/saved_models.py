"""Exported models in process, from the SavedModel alone."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers the ops of the graph)

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.model_versions import version_folders
from keras_lstm_dssm.export.saved_model import SIGNATURE
from keras_lstm_dssm.serving.client.calls import (
    Hit,
    as_hits,
    chunked,
    rows_for,
)
from keras_lstm_dssm.text import encode_in_batches


class SavedEncoder:
    """An exported encoder: encodes texts without the model's Python code.

    A bulk engine loads one in each worker and maps it over a corpus.

    Args:
        path: A version's folder, or a model's folder for its newest version.

    Raises:
        InputError: There is no SavedModel of an encoder.

    Example:
    >>> SavedEncoder("models/query_encoder").encode(["bolt"]).shape
    (1, 96)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._model, self._serve = _load(path, {"text"})

    def encode(
        self,
        texts: Sequence[str | bytes],
        batch_size: int = 2048,
        progress: bool = False,
    ) -> np.ndarray:
        """Encodes texts into unit vectors, float32 `[len(texts), d]`."""
        return encode_in_batches(
            lambda text: self._serve(text=text)["embedding"],
            texts,
            batch_size,
            progress,
        )


class SavedRetriever:
    """An exported retriever: finds documents in process.

    Args:
        path: A version's folder, or a model's folder for its newest version.

    Raises:
        InputError: There is no SavedModel of a retriever.

    Example:
    >>> SavedRetriever("models/retriever").search(["angle bracket"], k=1)
    [[Hit(id='Simpson 12-Gauge Angle', score=0.83)]]
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._model, self._serve = _load(path, {"text", "k"})

    def search(
        self, texts: Sequence[str | bytes], k: int = 5
    ) -> list[list[Hit]]:
        """Returns the k best documents of each query, best first.

        Raises:
            InputError: k is below 1, or no int32.
        """
        hits: list[list[Hit]] = []
        # The scores of one block, 64 KiB a query, are in memory together.
        for rows in chunked(texts, rows_for(k)):
            found = self._serve(
                text=tf.constant(rows.tolist()), k=tf.fill([len(rows)], k)
            )
            hits += as_hits(found["ids"].numpy(), found["scores"].numpy())
        return hits


def _load(path: str | os.PathLike[str], inputs: set[str]) -> tuple[Any, Any]:
    """Loads a SavedModel; the model is returned to keep its variables."""
    folder = Path(path)
    versions = version_folders(folder)
    if versions:
        folder = versions[max(versions)]
    try:
        model = tf.saved_model.load(str(folder))
        serve = model.signatures[SIGNATURE]
        found = set(serve.structured_input_signature[1])
    except (OSError, KeyError, ValueError, tf.errors.OpError) as error:
        raise InputError(
            f"{path}: no SavedModel here that can be loaded; name a model's "
            "folder as lstm-dssm-export writes it, such as "
            "MODELS/query_encoder"
        ) from error
    if found != inputs:
        raise InputError(
            f"{path}: its inputs are {sorted(found)}, expected "
            f"{sorted(inputs)}; name the folder of another model"
        )
    return model, serve
