"""Saves a `tf.Module` as a version of a model, with warm-up requests.

The fingerprint of an encoder, in the folder of its SavedModel.
vectors_only: makes a signature refuse inputs that are not vectors.
Reads the inputs and outputs of a SavedModel without loading it.
"""

import functools
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import write_json
from keras_lstm_dssm.fingerprints import weights_hash
from lstm_dssm_client.signatures import PREDICT

FINGERPRINT_FILE = Path("assets.extra", "encoder.json")


def encoder_fingerprint(encoder: Any) -> str:
    """Returns a hash of what determines the vectors of a trained encoder.

    Args:
        encoder: A `GraphEncoder` or a `KeyVec`, whose weights are up to date.
    """
    scales = getattr(encoder, "scales", ())  # of the parts of a mixture
    return weights_hash([*encoder.weights, *scales])


def write_fingerprint(version: Path, fingerprint: str) -> None:
    """Writes the fingerprint of an encoder into a version's folder."""
    path = version / FINGERPRINT_FILE
    path.parent.mkdir(exist_ok=True)
    write_json(path, {"sha256": fingerprint})


Method = Callable[..., Any]


def vectors_only(method: Method) -> Method:
    """Makes the graph of a signature refuse inputs of another rank than 1.

    TF Serving does not compare shapes with the signature, and some kernels of
    TF.Text, such as that of `WhitespaceTokenizer`, end the process of the
    server if they are given a scalar.

    Args:
        method: The method of a signature; its inputs are `[batch]`.

    Returns:
        The method, whose graph fails with INVALID_ARGUMENT before any other
        operation reads an input of another rank.

    Example:
    >>> class Length(tf.Module):
    ...     @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    ...     @vectors_only
    ...     def serve(self, text):
    ...         return {"length": tf.strings.length(text)}
    >>> Length().serve(tf.constant(["bolt"]))["length"].numpy()
    array([4], dtype=int32)
    """

    @functools.wraps(method)
    def checked(self: Any, *inputs: tf.Tensor) -> Any:
        return method(self, *[tf.ensure_shape(one, [None]) for one in inputs])

    return checked


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


class Signature(NamedTuple):
    """The tensors of one signature, by name.

    Attributes:
        inputs: The tensors of a request, by name.
        outputs: The tensors of a reply, by name.
    """

    inputs: dict[str, tf.TensorSpec]
    outputs: dict[str, tf.TensorSpec]


def signature_defs(folder: str | os.PathLike[str]) -> dict[str, SignatureDef]:
    """Reads the signatures of the graph with the tag `serve`.

    Args:
        folder: A version's folder, with `saved_model.pb` in it.

    Returns:
        Signature name to `SignatureDef`, including internal ones of
        TensorFlow.

    Raises:
        InputError: The folder holds no SavedModel.
    """
    path = Path(folder, "saved_model.pb")
    try:
        model = SavedModel.FromString(path.read_bytes())
        (graph,) = (
            graph
            for graph in model.meta_graphs
            if "serve" in graph.meta_info_def.tags
        )
    except (OSError, DecodeError, ValueError) as error:
        raise InputError(
            f"{path}: not a SavedModel for serving; publish the model again "
            "with lstm-dssm-export"
        ) from error
    return dict(graph.signature_def)


def signatures(defs: Mapping[str, SignatureDef]) -> dict[str, Signature]:
    """Selects the signatures that Predict can call, ascending by name.

    Args:
        defs: Signature name to `SignatureDef`, from `signature_defs` or from
            a reply to GetModelMetadata.

    Example:
        >>> signatures(signature_defs("models/query_encoder/1"))
        {'serving_default': Signature(
            inputs={'text': TensorSpec(shape=(None,), dtype=tf.string, ...)},
            outputs={'embedding': TensorSpec(shape=(None, 96), ...)})}
    """

    def specs(infos: Mapping) -> dict[str, tf.TensorSpec]:
        return {
            alias: tf.TensorSpec(info.tensor_shape, info.dtype, name=alias)
            for alias, info in sorted(infos.items())
        }

    return {
        name: Signature(specs(value.inputs), specs(value.outputs))
        for name, value in sorted(defs.items())
        # TensorFlow stores the op that initialises the graph as a signature.
        if value.method_name == PREDICT
    }
