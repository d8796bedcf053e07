"""The parts of a client's requests over gRPC, and those of its replies."""

from typing import Any

import numpy as np

from lstm_dssm_client.calls import checked_version
from lstm_dssm_client.errors import InputError
from lstm_dssm_client.messages import message_class
from lstm_dssm_client.results import Version
from lstm_dssm_client.signatures import (
    PREDICT,
    Signature,
    TensorInfo,
    check_rows,
)
from lstm_dssm_client.tensors import dtype_of, write_tensor

_ModelSpec = message_class("ModelSpec")
_SignatureDefMap = message_class("SignatureDefMap")
_TensorProto = message_class("TensorProto")


def input_proto(name: str, values: np.ndarray) -> Any:
    """Returns an input as a message `TensorProto`.

    Raises:
        InputError: There are no rows, or values other than numbers and bytes.
    """
    check_rows(name, values)
    proto = _TensorProto()
    try:
        write_tensor(values, proto)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"input {name!r}: {error}; expected an array of numbers, or of "
            "bytes for strings"
        ) from error
    return proto


def model_spec(model: str, version: Version, signature: str = "") -> Any:
    """Returns the message `ModelSpec`: model, version and signature.

    Raises:
        InputError: `version` is a number out of range.
    """
    spec = _ModelSpec(name=model, signature_name=signature)
    if isinstance(version, str):
        spec.version_label = version
    elif version is not None:
        spec.version.value = checked_version(version)
    return spec


def signatures(packed: bytes) -> dict[str, Signature]:
    """Selects the signatures that Predict can call, ascending by name.

    Args:
        packed: The bytes of a `SignatureDefMap`.
    """

    def tensors(infos: Any) -> dict[str, TensorInfo]:
        return {
            name: TensorInfo(dtype_of(info.dtype), _shape(info.tensor_shape))
            for name, info in sorted(infos.items())
        }

    by_name = _SignatureDefMap.FromString(packed).signature_def
    return {
        name: Signature(tensors(value.inputs), tensors(value.outputs))
        for name, value in sorted(by_name.items())
        # TensorFlow stores the op that initialises the graph as a signature.
        if value.method_name == PREDICT
    }


def _shape(shape: Any) -> tuple[int | None, ...] | None:
    if shape.unknown_rank:
        return None
    return tuple(None if dim.size < 0 else dim.size for dim in shape.dim)
