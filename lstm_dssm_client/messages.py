"""The messages of TF Serving's API over gRPC, without TensorFlow.

`tensorflow_serving.apis` has them, too, but imports TensorFlow, which takes
seconds. These have the same fields and numbers, and so the same bytes, as far
as clients use them. They are in a pool of their own, under names of their own:
a process may use both.

Sources: `tensorflow_serving/apis/*.proto` and `util/status.proto` of
https://github.com/tensorflow/serving; `core/framework/tensor.proto`,
`tensor_shape.proto` and `core/protobuf/meta_graph.proto` of TensorFlow.
"""

from typing import Any

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClassesForFiles

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
    """Returns the class of a message.

    Args:
        name: A key of `MESSAGES`.

    Example:
        >>> message_class("ModelSpec")(name="retriever").ByteSize()
        11
    """
    return _CLASSES[f"{_PACKAGE}.{name}"]
