"""Reads the inputs and outputs of a SavedModel without loading it."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

from keras_lstm_dssm.errors import InputError
from lstm_dssm_client.signatures import PREDICT


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
