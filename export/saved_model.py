"""Encoders as SavedModels: strings in, unit vectors out."""

import os
from pathlib import Path

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.encoders import TextEncoder
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.model_versions import publish
from keras_lstm_dssm.export.warmup import write_warmup

SIGNATURE = tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY


class EncoderModule(tf.Module):
    """What an exported encoder is made of: its variables and one function.

    The Keras model itself is not exported: Keras would trace a float32
    signature for it, and a server needs no more than this.

    Args:
        encoder: The trained encoder.

    Raises:
        InputError: A weight is NaN or infinite.
    """

    def __init__(self, encoder: TextEncoder) -> None:
        super().__init__()
        for weight in encoder.weights:
            # Its vectors would be finite all the same, one for all texts.
            if not np.isfinite(weight.numpy()).all():
                raise InputError(
                    f"{weight.path}: found numbers that are not finite; the "
                    "training failed: export an earlier checkpoint"
                )
        self._encode = encoder.unit_vectors
        self.weights = [weight.value for weight in encoder.weights]

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
    def serve(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Signature `serving_default`.

        Args:
            text: Strings `[batch]`.

        Returns:
            `embedding`, float32 `[batch, d]`, rows of length 1.
        """
        return {"embedding": self._encode(text)}


def export_encoder(
    encoder: TextEncoder,
    base: str | os.PathLike[str],
    version: int | None = None,
) -> Path:
    """Publishes an encoder as a version of a model, for TF Serving.

    Args:
        encoder: A trained encoder.
        base: The model's folder; the version is a folder in it.
        version: Its number, by default the next free one.

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
    module: tf.Module, base: str | os.PathLike[str], version: int | None
) -> Path:
    """Publishes a module with a function `serve` as `serving_default`.

    Requests to warm up a server lie beside the graph; see `write_warmup`.
    """

    def write(folder: Path) -> None:
        tf.saved_model.save(
            module,
            str(folder),
            signatures={SIGNATURE: module.serve},
            # A server takes no gradients.
            options=tf.saved_model.SaveOptions(
                experimental_custom_gradients=False
            ),
        )
        write_warmup(folder, Path(base).resolve().name)

    return publish(base, write, version)
