"""The parts of a client's requests, as messages of TF Serving."""

import numpy as np
from tensorflow.core.framework.tensor_pb2 import TensorProto
from tensorflow_serving.apis.model_pb2 import ModelSpec

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.signatures import Signature
from keras_lstm_dssm.serving.tensor_protos import to_proto
from lstm_dssm_client import signatures
from lstm_dssm_client.results import Version
from lstm_dssm_client.signatures import TensorInfo


def plain_signature(signature: Signature) -> signatures.Signature:
    """Returns a signature without types of TensorFlow."""
    inputs, outputs = (
        {
            name: TensorInfo(
                spec.dtype.name,
                None if spec.shape.rank is None else (*spec.shape.as_list(),),
            )
            for name, spec in specs.items()
        }
        for specs in signature
    )
    return signatures.Signature(inputs, outputs)


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
