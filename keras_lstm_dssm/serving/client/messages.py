"""What a client's requests and replies hold, checked, as NumPy arrays."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf
from tensorflow.core.framework.tensor_pb2 import TensorProto
from tensorflow_serving.apis.model_pb2 import ModelSpec

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.signatures import Signature
from keras_lstm_dssm.serving.tensor_protos import to_proto

Version = int | str | None
"""A version's number, its label (such as "canary"), or None for the newest."""


class Prediction(NamedTuple):
    """Holds the reply of a server to a Predict request.

    Attributes:
        model: The model's name.
        version: The version's number.
        signature: The signature's name.
        outputs: Arrays by the outputs' names.
    """

    model: str
    version: int
    signature: str
    outputs: dict[str, np.ndarray]


class VersionStatus(NamedTuple):
    """Holds the state of one version of a model on a server.

    Attributes:
        state: START, LOADING, AVAILABLE, UNLOADING or END.
        code: "OK", or the error code of a version that did not load.
        message: Why the version did not load; empty otherwise.
    """

    state: str
    code: str
    message: str


class Output(NamedTuple):
    """What a client expects of an output; its first axis is the rows."""

    name: str
    dtype: type[np.generic]
    rank: int


# Of an encoder, a retriever, a pair scorer and the key parts of a KeyVec.
EMBEDDING = Output("embedding", np.float32, 2)
IDS, SCORES = Output("ids", np.object_, 2), Output("scores", np.float32, 2)
SCORE = Output("score", np.float32, 1)
KEY_PARTS = (
    Output("sentences", np.object_, 2),
    Output("probabilities", np.float32, 2),
    Output("words", np.object_, 2),
)


def input_proto(name: str, values: np.ndarray) -> TensorProto:
    """Returns an input as a message.

    Raises:
        InputError: There are no rows, or values other than numbers and bytes.
    """
    if values.ndim and not len(values):
        raise InputError(f"input {name!r} has no rows; expected one or more")
    try:
        return to_proto(values)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"input {name!r}: {error}; expected an array of numbers, or of "
            "bytes for strings"
        ) from error


def describe_misfit(
    arrays: dict[str, np.ndarray], signature: Signature | None
) -> str:
    """Describes an input whose dtype or shape does not fit the signature.

    Returns "" if all fit. The server checks the names before it batches.
    """
    specs = signature.inputs if signature else {}
    for name in arrays.keys() & specs.keys():
        values, spec = arrays[name], specs[name]
        dtype = tf.as_dtype(values.dtype)
        if dtype != spec.dtype or not spec.shape.is_compatible_with(
            values.shape
        ):
            return (
                f"input {name!r} is {dtype.name} {values.shape}, expected "
                f"{spec.dtype.name} {spec.shape}"
            )
    return ""


def checked_output(
    prediction: Prediction, output: Output, rows: int
) -> np.ndarray:
    """Returns an output after checking its dtype and shape."""
    name, dtype, rank = output
    values = prediction.outputs[name]
    if values.dtype != dtype or values.ndim != rank or len(values) != rows:
        shape = ", ".join([str(rows), "any"][:rank])
        raise InputError(
            f"model {prediction.model}: its output {name} is {values.dtype} "
            f"{list(values.shape)}, expected {np.dtype(dtype)} [{shape}]; "
            "name a model that lstm-dssm-export wrote"
        )
    return values


def model_spec(model: str, version: Version, signature: str = "") -> ModelSpec:
    """Returns the part of a request that names model, version, signature.

    Raises:
        InputError: `version` is a number out of range.
    """
    spec = ModelSpec(name=model, signature_name=signature)
    if isinstance(version, str):
        spec.version_label = version
    elif version is not None:
        if not 0 <= version < 2**63:
            raise InputError(
                f"version is {version}; expected a number of 63 bits, or a "
                "label"
            )
        spec.version.value = version
    return spec
