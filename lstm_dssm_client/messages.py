"""The protobuf messages of TF Serving's gRPC API, without TensorFlow.

`tensorflow_serving.apis` has them, too, but imports TensorFlow, which takes
seconds. These have the fields that clients use, with the same numbers and so
the same bytes, in another pool and under other names: a process may use both.

Sources: `tensorflow_serving/apis/*.proto` and `util/status.proto` of
https://github.com/tensorflow/serving; `core/framework/tensor.proto`,
`tensor_shape.proto` and `core/protobuf/meta_graph.proto` of TensorFlow.
"""

import math
from typing import Any

import numpy as np
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClassesForFiles

from lstm_dssm_client.errors import InputError
from lstm_dssm_client.signatures import (
    PREDICT,
    Signature,
    TensorInfo,
    Version,
    dtype_name,
)

_PACKAGE = "lstm_dssm_client"
_FILE = f"{_PACKAGE}/messages.proto"

MESSAGES: dict[str, dict[str, tuple[int, str]]] = {
    "Int64Value": {"value": (1, "int64")},
    "Any": {"type_url": (1, "string"), "value": (2, "bytes")},
    "Dim": {"size": (1, "int64")},
    "TensorShapeProto": {
        "dim": (2, "repeated Dim"),
        "unknown_rank": (3, "bool"),
    },
    "TensorProto": {
        "dtype": (1, "int32"),
        "tensor_shape": (2, "TensorShapeProto"),
        "tensor_content": (4, "bytes"),
        "float_val": (5, "repeated float"),
        "double_val": (6, "repeated double"),
        "int_val": (7, "repeated int32"),
        "string_val": (8, "repeated bytes"),
        "scomplex_val": (9, "repeated float"),
        "int64_val": (10, "repeated int64"),
        "bool_val": (11, "repeated bool"),
        "dcomplex_val": (12, "repeated double"),
        "half_val": (13, "repeated int32"),
        "uint32_val": (16, "repeated uint32"),
        "uint64_val": (17, "repeated uint64"),
    },
    "ModelSpec": {
        "name": (1, "string"),
        "version": (2, "Int64Value"),
        "signature_name": (3, "string"),
        "version_label": (4, "string"),
    },
    "PredictRequest": {
        "model_spec": (1, "ModelSpec"),
        "inputs": (2, "map TensorProto"),
        "output_filter": (3, "repeated string"),
    },
    "PredictResponse": {
        "outputs": (1, "map TensorProto"),
        "model_spec": (2, "ModelSpec"),
    },
    "TensorInfo": {
        "dtype": (2, "int32"),
        "tensor_shape": (3, "TensorShapeProto"),
    },
    "SignatureDef": {
        "inputs": (1, "map TensorInfo"),
        "outputs": (2, "map TensorInfo"),
        "method_name": (3, "string"),
    },
    "SignatureDefMap": {"signature_def": (1, "map SignatureDef")},
    "GetModelMetadataRequest": {
        "model_spec": (1, "ModelSpec"),
        "metadata_field": (2, "repeated string"),
    },
    "GetModelMetadataResponse": {
        "model_spec": (1, "ModelSpec"),
        "metadata": (2, "map Any"),
    },
    "StatusProto": {"error_code": (1, "int32"), "error_message": (2, "string")},
    "ModelVersionStatus": {
        "version": (1, "int64"),
        "state": (2, "int32"),
        "status": (3, "StatusProto"),
    },
    "GetModelStatusRequest": {"model_spec": (1, "ModelSpec")},
    "GetModelStatusResponse": {
        "model_version_status": (1, "repeated ModelVersionStatus")
    },
}
"""Message -> field -> its number and its type: a type of protobuf or a message
of this table; `repeated` many of it; or a `map` from strings to it. An enum is
an `int32`, which has the same bytes."""


def _file() -> FileDescriptorProto:
    """Returns `MESSAGES` as the description of a .proto file."""
    file = FileDescriptorProto(name=_FILE, package=_PACKAGE, syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            form, _, element = kind.rpartition(" ")
            if form == "map":  # on the wire: repeated pairs of key and value
                entry = message.nested_type.add(
                    name=f"{field.title().replace('_', '')}Entry"
                )
                entry.options.map_entry = True
                _add(entry, "key", 1, "string")
                _add(entry, "value", 2, element)
                element = f"{name}.{entry.name}"
            _add(message, field, number, element, repeated=bool(form))
    return file


def _add(
    message: DescriptorProto,
    name: str,
    number: int,
    kind: str,
    repeated: bool = False,
) -> None:
    field = message.field.add(name=name, number=number)
    field.label = (
        FieldDescriptorProto.LABEL_REPEATED
        if repeated
        else FieldDescriptorProto.LABEL_OPTIONAL
    )
    if kind[0].isupper():
        field.type = FieldDescriptorProto.TYPE_MESSAGE
        field.type_name = f".{_PACKAGE}.{kind}"
    else:
        field.type = FieldDescriptorProto.Type.Value(f"TYPE_{kind.upper()}")


_pool = DescriptorPool()
_pool.AddSerializedFile(_file().SerializeToString())
_CLASSES: dict[str, Any] = GetMessageClassesForFiles([_FILE], _pool)


def message_class(name: str) -> Any:
    """Returns the class of a message, by its key in `MESSAGES`."""
    return _CLASSES[f"{_PACKAGE}.{name}"]


_KINDS = {
    "float32": (1, "float_val"),
    "float64": (2, "double_val"),
    "int32": (3, "int_val"),
    "uint8": (4, "int_val"),
    "int16": (5, "int_val"),
    "int8": (6, "int_val"),
    "string": (7, "string_val"),
    "complex64": (8, "scomplex_val"),
    "int64": (9, "int64_val"),
    "bool": (10, "bool_val"),
    "bfloat16": (14, "half_val"),
    "uint16": (17, "int_val"),
    "complex128": (18, "dcomplex_val"),
    "float16": (19, "half_val"),
    "uint32": (22, "uint32_val"),
    "uint64": (23, "uint64_val"),
}
"""Name of a dtype -> its number in TensorFlow's `DataType`, and the field."""

_NAMES = {number: name for name, (number, _) in _KINDS.items()}

_STORED = {
    "half_val": np.uint16,  # the 16 bits of each number
    "scomplex_val": np.float32,  # real and imaginary part in turn
    "dcomplex_val": np.float64,
}
"""Field -> what it holds, where that is not the tensor's own dtype."""


def has_field(values: np.ndarray) -> bool:
    """Returns whether `write_tensor` has a field for an array's dtype."""
    return dtype_name(values) in _KINDS


def write_tensor(values: np.ndarray, proto: Any) -> None:
    """Writes an array into the typed field of its dtype, as TF Serving does.

    Raises `TypeError` for a dtype without a counterpart in TensorFlow.
    """
    if not has_field(values):
        raise TypeError(f"there is no tensor of dtype {values.dtype}")
    proto.dtype, field = _KINDS[dtype_name(values)]
    proto.tensor_shape.SetInParent()  # set for a scalar, too
    for size in values.shape:
        proto.tensor_shape.dim.add(size=size)
    flat = values.ravel()
    if field in _STORED:
        flat = flat.astype(flat.dtype.newbyteorder("=")).view(_STORED[field])
    # `tolist` is five times as fast as passing NumPy's own scalars.
    getattr(proto, field).extend(flat.tolist())


def read_tensor(proto: Any) -> np.ndarray:
    """Returns the array that a message `TensorProto` holds, in either form.

    In the typed field of a dtype the last value stands for those that are
    missing. Strings are an object array of bytes.
    """
    name = dtype_of(proto.dtype)
    if name not in _KINDS:
        raise InputError(
            f"found a tensor of {name}, which NumPy does not have; ask for "
            "other outputs"
        )
    shape = [dim.size for dim in proto.tensor_shape.dim]
    field = _KINDS[name][1]
    dtype = np.dtype(object) if name == "string" else _numbers(name)
    if proto.tensor_content:
        values = np.frombuffer(proto.tensor_content, dtype).copy()
    else:
        sent = getattr(proto, field)
        values = np.fromiter(sent, _STORED.get(field, dtype), len(sent))
        values = values.view(dtype)
        missing = math.prod(shape) - len(values)
        if missing > 0:
            default = b"" if name == "string" else 0
            last = values[-1] if len(values) else default
            rest = np.full(missing, last, dtype)
            values = np.concatenate([values, rest])
    return values.reshape(shape)


def _numbers(name: str) -> np.dtype:
    if name == "bfloat16":
        try:
            import ml_dtypes
        except ModuleNotFoundError as error:
            raise InputError(
                "the server replied with bfloat16, which needs: pip install "
                "ml_dtypes"
            ) from error
        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def dtype_of(number: int) -> str:
    """Returns NumPy's name of a number of `DataType`, `string` for texts."""
    return _NAMES.get(number, f"DataType {number}")


def input_proto(name: str, values: np.ndarray) -> Any:
    """Returns an input as a message `TensorProto`, or raises `InputError`."""
    proto = message_class("TensorProto")()
    try:
        write_tensor(values, proto)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"input {name!r}: {error}; expected an array of numbers, or of "
            "bytes for strings"
        ) from error
    return proto


def model_spec(model: str, version: Version, signature: str = "") -> Any:
    """Returns the message `ModelSpec`: model, version and signature."""
    spec = message_class("ModelSpec")(name=model, signature_name=signature)
    if isinstance(version, str):
        spec.version_label = version
    elif version is not None:
        spec.version.value = version
    return spec


def signatures(packed: bytes) -> dict[str, Signature]:
    """Reads the signatures that Predict can call from a `SignatureDefMap`.

    They are ascending by name.
    """

    def tensors(infos: Any) -> dict[str, TensorInfo]:
        return {
            name: TensorInfo(dtype_of(info.dtype), _shape(info.tensor_shape))
            for name, info in sorted(infos.items())
        }

    packed_map = message_class("SignatureDefMap").FromString(packed)
    return {
        name: Signature(tensors(value.inputs), tensors(value.outputs))
        for name, value in sorted(packed_map.signature_def.items())
        # TensorFlow stores the op that initialises the graph as a signature.
        if value.method_name == PREDICT
    }


def _shape(shape: Any) -> tuple[int | None, ...] | None:
    if shape.unknown_rank:
        return None
    return tuple(None if dim.size < 0 else dim.size for dim in shape.dim)
