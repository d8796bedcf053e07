"""Exports an encoder as a SavedModel from strings to unit vectors."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.export.encoder_details import encoder_fingerprint
from keras_lstm_dssm.export.input_ranks import vectors_only
from keras_lstm_dssm.export.saved_module import finite_weights, publish_module
from keras_lstm_dssm.text import encode_in_batches

_ENCODE_BATCH = 2048


class GraphEncoder(Protocol):
    """Protocol of what is exported: a `TextEncoder` or a `MixtureEncoder`."""

    @property
    def weights(self) -> list[Any]:
        """The variables."""

    def sync_weights(self) -> None:
        """Brings the weights up to date."""

    def unit_vectors(self, texts: tf.Tensor) -> tf.Tensor:
        """Encodes strings `[batch]` into unit vectors `[batch, d]`."""

    def unit_vector(self, text: tf.Tensor) -> tf.Tensor:
        """Encodes a batch of one text that `is_short`, faster; `[1, d]`."""

    def is_short(self, texts: tf.Tensor) -> tf.Tensor:
        """Returns whether `unit_vector` takes a batch: one text, not long."""


class EncoderModule(tf.Module):
    """Holds an encoder's variables and the function that a server calls.

    The Keras model itself is not exported, because Keras would trace a
    float32 signature for its string input.

    Args:
        encoder: The trained encoder, float32 or float64, or those of a
            mixture.

    Attributes:
        weights: The variables.
        resources: Other objects of the graph, such as tables: none.
        fingerprint: Hash of what determines the vectors.

    Raises:
        InputError: A weight is NaN or infinite.
    """

    def __init__(self, encoder: GraphEncoder) -> None:
        super().__init__()
        encoder.sync_weights()
        # Methods: Keras would be saved with the encoder itself.
        self._is_short = encoder.is_short
        self._unit_vector = encoder.unit_vector
        self._unit_vectors = encoder.unit_vectors
        self.weights = finite_weights(encoder)
        self.fingerprint = encoder_fingerprint(encoder)
        self.resources: list[Any] = []

    def encode(self, text: tf.Tensor) -> tf.Tensor:
        """Encodes strings `[batch]` into unit vectors, float32 `[batch, d]`.

        The output is float32 for float64 models, too: clients expect it.
        """
        vectors = tf.cond(
            self._is_short(text),
            lambda: self._unit_vector(text),
            lambda: self._unit_vectors(text),
        )
        return tf.cast(vectors, tf.float32)

    def encode_all(
        self, texts: Sequence[str | bytes], progress: bool = False
    ) -> np.ndarray:
        """Encodes any number of texts into unit vectors, float32 `[n, d]`.

        Args:
            texts: The texts.
            progress: Whether to show a progress bar. Default `False`.
        """
        return encode_in_batches(self.encode, texts, _ENCODE_BATCH, progress)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
    @vectors_only
    def serve(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Encodes texts; the signature `serving_default`.

        Args:
            text: Strings `[batch]`.

        Returns:
            `embedding`, float32 `[batch, d]`, rows of length 1.
        """
        return {"embedding": self.encode(text)}


def export_encoder(
    encoder: GraphEncoder,
    base: str | os.PathLike[str],
    version: int | None = None,
) -> Path:
    """Publishes an encoder as a version of a model, for TF Serving.

    Args:
        encoder: The trained encoder.
        base: The model's folder, in which the version's folder is made.
        version: The version number, by default one above the largest.

    Returns:
        `base/<number>`, which holds `saved_model.pb`.

    Raises:
        InputError: The version exists already, or a weight is not finite.

    Example:
    >>> export_encoder(model.query_encoder, "models/query_encoder")
    PosixPath('models/query_encoder/1')
    """
    return publish_module(EncoderModule(encoder), base, version)
