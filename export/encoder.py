"""Exports an encoder as a SavedModel from strings to unit vectors."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.encoders import TextEncoder
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.model_versions import Write, publish
from keras_lstm_dssm.export.warmup import WARMUP_SIZES, write_warmup

SIGNATURE = tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY
"""Name of the only signature that exported models have."""


class EncoderModule(tf.Module):
    """Holds an encoder's variables and the function that a server calls.

    The Keras model itself is not exported, because Keras would trace a
    float32 signature for its string input.

    Args:
        encoder: The trained encoder, float32 or float64.

    Raises:
        InputError: A weight is NaN or infinite.
    """

    def __init__(self, encoder: TextEncoder) -> None:
        super().__init__()
        encoder.sync_weights()
        for weight in encoder.weights:
            # The vectors may still be finite, but equal for all texts.
            if not np.isfinite(weight.numpy()).all():
                raise InputError(
                    f"{weight.path}: found numbers that are not finite; the "
                    "training failed: export an earlier checkpoint"
                )
        self._unit_vectors = encoder.unit_vectors
        self.weights = [weight.value for weight in encoder.weights]

    def encode(self, text: tf.Tensor) -> tf.Tensor:
        """Encodes strings `[batch]` into unit vectors, float32 `[batch, d]`.

        The output is float32 for float64 models, too: clients expect it.
        """
        return tf.cast(self._unit_vectors(text), tf.float32)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
    def serve(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Encodes texts; the signature `serving_default`.

        Args:
            text: Strings `[batch]`.

        Returns:
            `embedding`, float32 `[batch, d]`, rows of length 1.
        """
        return {"embedding": self.encode(text)}


def export_encoder(
    encoder: TextEncoder,
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


def publish_module(
    module: tf.Module, base: str | os.PathLike[str], version: int | None = None
) -> Path:
    """Publishes an encoder's or a retriever's module; see `export_encoder`."""
    name = Path(base).resolve().name
    return publish(base, saved_model_writer(module, name), version)


def saved_model_writer(
    module: tf.Module, name: str, sizes: Sequence[int] = WARMUP_SIZES
) -> Write:
    """Returns a function that saves a module with its warm-up requests.

    Args:
        module: An `EncoderModule` or a `RetrieverModule`.
        name: The name that the model will be served under.
        sizes: Numbers of rows of the warm-up requests; see `write_warmup`.
    """

    def write(folder: Path) -> None:
        tf.saved_model.save(
            module,
            str(folder),
            signatures={SIGNATURE: module.serve},
            # A server computes no gradients.
            options=tf.saved_model.SaveOptions(
                experimental_custom_gradients=False
            ),
        )
        write_warmup(folder, name, sizes)

    return write
