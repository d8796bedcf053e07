"""Saves a `tf.Module` as a version of a model, with warm-up requests."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.encoder_details import write_fingerprint
from keras_lstm_dssm.export.model_versions import Write, publish
from keras_lstm_dssm.export.warmup import WARMUP_SIZES, write_warmup

SIGNATURE = tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY
"""Name of the signature of an exported model's method `serve`."""


def finite_weights(layer: Any) -> list[Any]:
    """Returns the TensorFlow variables of a layer, after checking their values.

    The `tf.Module` that is exported must have them as an attribute: TF Serving
    restores only variables that it finds there.

    Args:
        layer: An encoder or a model, with Keras variables as `weights` that
            are up to date.

    Raises:
        InputError: A weight is NaN or infinite.
    """
    for weight in layer.weights:
        # The outputs may still be finite, but equal for all texts.
        if not np.isfinite(weight.numpy()).all():
            raise InputError(
                f"{weight.path}: found numbers that are not finite; the "
                "training failed: export an earlier checkpoint"
            )
    return [weight.value for weight in layer.weights]


def publish_module(
    module: tf.Module, base: str | os.PathLike[str], version: int | None = None
) -> Path:
    """Publishes the module of an encoder, retriever, scorer or KeyVec.

    Args:
        module: See `saved_model_writer`.
        base: The model's folder, in which the version's folder is made.
        version: The version number, by default one above the largest.

    Returns:
        `base/<number>`, which holds `saved_model.pb`.

    Raises:
        InputError: The version exists already.
    """
    name = Path(base).resolve().name
    return publish(base, saved_model_writer(module, name), version)


def save_module(module: tf.Module, folder: Path) -> None:
    """Writes the SavedModel of a module, without warm-up requests.

    Args:
        module: Its method `serve` is the signature `serving_default`; the
            methods that its attribute `further_signatures` names, if it has
            one, are signatures of their own names.
        folder: The folder to write.
    """
    further = getattr(module, "further_signatures", ())
    tf.saved_model.save(
        module,
        str(folder),
        signatures={SIGNATURE: module.serve}
        | {name: getattr(module, name) for name in further},
        # A server computes no gradients.
        options=tf.saved_model.SaveOptions(experimental_custom_gradients=False),
    )


def saved_model_writer(
    module: tf.Module, name: str, sizes: Sequence[int] = WARMUP_SIZES
) -> Write:
    """Returns a function that saves a module with its warm-up requests.

    Args:
        module: An `EncoderModule`, a `RetrieverModule`, a `ScorerModule` or
            a `KeyVecModule`.
        name: The name that the model will be served under.
        sizes: Numbers of rows of the warm-up requests; see `write_warmup`.
    """

    def write(folder: Path) -> None:
        save_module(module, folder)
        write_warmup(folder, name, sizes)
        if hasattr(module, "fingerprint"):  # an encoder
            write_fingerprint(folder, module.fingerprint)
        if getattr(module, "details", None):  # a retriever
            module.details.write(folder)

    return write
