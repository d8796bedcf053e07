"""Clients of TF Serving's gRPC API: `Client`, and `AsyncClient` for asyncio.

`tensorflow_serving.apis` has the API's protobuf messages, but imports
TensorFlow, which takes seconds. This module therefore declares the messages
again, with the API's field numbers, but only the fields that clients use. The
package name `lstm_dssm_client` and a separate descriptor pool avoid conflicts
with TensorFlow's messages.

Sources: `tensorflow_serving/apis/*.proto` and `util/status.proto` of
https://github.com/tensorflow/serving; `core/framework/tensor.proto`,
`tensor_shape.proto` and `core/protobuf/meta_graph.proto` of TensorFlow.
"""

import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import numpy as np
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClassesForFiles

from lstm_dssm_client.errors import InputError, serving_error
from lstm_dssm_client.options import (
    check_certificate_and_key,
    checked_timeout,
    message_bytes,
    token_headers,
)
from lstm_dssm_client.signatures import (
    PREDICT,
    Signature,
    TensorInfo,
    Version,
    VersionStatus,
    dtype_name,
)
from lstm_dssm_client.text_client import (
    AsyncTextClient,
    GetMetadata,
    GetStatus,
    Metadata,
    Predict,
    Request,
    TextClient,
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
"""Message -> field -> the field's number and type. Types are protobuf scalars
or messages. The prefix `repeated` marks lists, and the prefix `map` marks maps
with string keys. Enums are declared as `int32`, which gives equal bytes."""


def _file() -> FileDescriptorProto:
    """Returns `MESSAGES` as the description of a .proto file."""
    file = FileDescriptorProto(name=_FILE, package=_PACKAGE, syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            label, _, element = kind.rpartition(" ")
            # Protobuf encodes a map as a list of messages with key and value.
            if label == "map":
                entry = message.nested_type.add(
                    name=f"{field.title().replace('_', '')}Entry"
                )
                entry.options.map_entry = True
                _add(entry, "key", 1, "string")
                _add(entry, "value", 2, element)
                element = f"{name}.{entry.name}"
            _add(message, field, number, element, repeated=bool(label))
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


_FIELDS = {
    "float32": (1, "float_val"), "float64": (2, "double_val"),
    "int32": (3, "int_val"), "uint8": (4, "int_val"), "int16": (5, "int_val"),
    "int8": (6, "int_val"), "string": (7, "string_val"),
    "complex64": (8, "scomplex_val"), "int64": (9, "int64_val"),
    "bool": (10, "bool_val"), "bfloat16": (14, "half_val"),
    "uint16": (17, "int_val"), "complex128": (18, "dcomplex_val"),
    "float16": (19, "half_val"), "uint32": (22, "uint32_val"),
    "uint64": (23, "uint64_val"),
}  # fmt: skip
"""Dtype -> its number in TensorFlow's `DataType`, and a `TensorProto` field."""

_NAMES = {number: name for name, (number, _) in _FIELDS.items()}

_STORED = {
    "half_val": np.uint16,  # the 16 bits of each number
    "scomplex_val": np.float32,  # alternating real and imaginary parts
    "dcomplex_val": np.float64,
}
"""Field -> dtype. The field has the tensor's numbers, viewed as this dtype."""


def has_field(values: np.ndarray) -> bool:
    """Returns whether `write_tensor` has a field for an array's dtype."""
    return dtype_name(values) in _FIELDS


def write_tensor(values: np.ndarray, proto: Any) -> None:
    """Fills a `TensorProto`; raises `TypeError` for an unknown dtype."""
    if not has_field(values):
        raise TypeError(f"there is no tensor of dtype {values.dtype}")
    proto.dtype, field = _FIELDS[dtype_name(values)]
    proto.tensor_shape.SetInParent()  # a scalar needs an empty shape
    for size in values.shape:
        proto.tensor_shape.dim.add(size=size)
    flat = values.ravel()
    if field in _STORED:
        flat = flat.astype(flat.dtype.newbyteorder("=")).view(_STORED[field])
    # `extend` is five times as fast with Python's numbers as with NumPy's.
    getattr(proto, field).extend(flat.tolist())


def read_tensor(proto: Any) -> np.ndarray:
    """Converts a message `TensorProto` to an array; texts become bytes."""
    name = dtype_of(proto.dtype)
    if name not in _FIELDS:
        raise InputError(
            f"found a tensor of {name}, which NumPy does not have; ask for "
            "other outputs"
        )
    shape = [dim.size for dim in proto.tensor_shape.dim]
    field = _FIELDS[name][1]
    dtype = np.dtype(object) if name == "string" else _number_dtype(name)
    if proto.tensor_content:
        values = np.frombuffer(proto.tensor_content, dtype).copy()
    else:
        stored = getattr(proto, field)
        values = np.fromiter(stored, _STORED.get(field, dtype), len(stored))
        values = values.view(dtype)
        # As in TensorFlow, the last value stands for all missing values.
        missing = math.prod(shape) - len(values)
        if missing > 0:
            default = b"" if name == "string" else 0
            last = values[-1] if len(values) else default
            values = np.append(values, np.full(missing, last, dtype))
    return values.reshape(shape)


def _number_dtype(name: str) -> np.dtype:
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
    """Returns the key of `_FIELDS` for a number, or `DataType NUMBER`."""
    return _NAMES.get(number, f"DataType {number}")


def input_proto(name: str, values: np.ndarray) -> Any:
    """Converts an input to a message `TensorProto`."""
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
    """Reads the signatures for Predict from a serialised `SignatureDefMap`."""

    def tensors(infos: Any) -> dict[str, TensorInfo]:
        return {
            name: TensorInfo(dtype_of(info.dtype), _shape(info.tensor_shape))
            for name, info in sorted(infos.items())
        }

    by_name = message_class("SignatureDefMap").FromString(packed).signature_def
    return {
        name: Signature(tensors(value.inputs), tensors(value.outputs))
        for name, value in sorted(by_name.items())
        # Skips the initialising op, which TensorFlow stores as a signature.
        if value.method_name == PREDICT
    }


def _shape(shape: Any) -> tuple[int | None, ...] | None:
    if shape.unknown_rank:
        return None
    return tuple(None if dim.size < 0 else dim.size for dim in shape.dim)


def tls_credentials(
    ca: str | os.PathLike[str] | None = None,
    certificate: str | os.PathLike[str] | None = None,
    key: str | os.PathLike[str] | None = None,
) -> grpc.ChannelCredentials:
    """Returns the TLS credentials of a gRPC client, from files in PEM format.

    Args:
        ca: File with the certificates of trusted authorities, or of the server.
            By default the client trusts gRPC's default authorities.
        certificate: File of the client's certificate, for a server that
            requires client certificates (`--client_ca`).
        key: File of the private key of `certificate`.

    Raises:
        InputError: A file cannot be read or is not PEM, or only one of
            `certificate` and `key` is given.

    Example:
        >>> Client("db1:8500", credentials=tls_credentials("ca.crt"))
    """
    check_certificate_and_key(certificate, key)
    return grpc.ssl_channel_credentials(*map(_read, (ca, key, certificate)))


def _read(path: str | os.PathLike[str] | None) -> bytes | None:
    if path is None:
        return None
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(
            f"{path}: {error.strerror}; expected a file in PEM"
        ) from error
    if b"-----BEGIN" not in data:
        raise InputError(f"{path}: expected a file in PEM, found no BEGIN line")
    return data


# A server that starts, stops or has a full queue replies UNAVAILABLE, without
# processing the request. gRPC repeats the request after 0.1, 0.2, 0.4 and 0.8
# seconds, with a jitter of 20 %. https://grpc.io/docs/guides/retry/
_RETRIES = {
    "methodConfig": [
        {
            "name": [{}],
            "retryPolicy": {
                "maxAttempts": 5,
                "initialBackoff": "0.1s",
                "maxBackoff": "2s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE"],
            },
        }
    ]
}

_METHODS = {
    Predict: "PredictionService/Predict",
    GetMetadata: "PredictionService/GetModelMetadata",
    GetStatus: "ModelService/GetModelStatus",
}
"""Class of a request -> service and method of TF Serving's API."""


def _message(request: Request) -> Any:
    if isinstance(request, GetStatus):
        return message_class("GetModelStatusRequest")(
            model_spec=model_spec(request.model, None)
        )
    if isinstance(request, GetMetadata):
        return message_class("GetModelMetadataRequest")(
            model_spec=model_spec(request.model, request.version),
            metadata_field=["signature_def"],
        )
    return message_class("PredictRequest")(
        model_spec=model_spec(
            request.model, request.version, request.signature
        ),
        inputs={
            name: input_proto(name, values)
            for name, values in request.inputs.items()
        },
        output_filter=request.outputs,
    )


_STATES = {
    10: "START", 20: "LOADING", 30: "AVAILABLE", 40: "UNLOADING", 50: "END",
}  # fmt: skip
_CODES = {code.value[0]: code.name for code in grpc.StatusCode}


def _reply(request: Request, message: Any) -> Any:
    """Converts a reply's message to the type that `TextClient` reads."""
    if isinstance(request, Predict):
        return _PredictReply(message)
    if isinstance(request, GetMetadata):
        packed = message.metadata["signature_def"].value
        return Metadata(message.model_spec.version.value, signatures(packed))
    return {
        status.version: VersionStatus(
            _STATES.get(status.state, "UNKNOWN"),
            _CODES[status.status.error_code],
            status.status.error_message,
        )
        for status in message.model_version_status
    }


class _PredictReply:
    """See `text_client.PredictReply`."""

    def __init__(self, message: Any) -> None:
        self._message = message
        self.version: int | None = message.model_spec.version.value

    def outputs(self, _: Signature | None) -> dict[str, np.ndarray]:
        protos = self._message.outputs
        return {name: read_tensor(proto) for name, proto in protos.items()}


class _GrpcTransport:
    """Sends requests over gRPC, with the module `grpc` or `grpc.aio`."""

    def __init__(
        self,
        channels: Any,
        target: str,
        timeout: float,
        max_message_mb: int,
        credentials: grpc.ChannelCredentials | None,
        token: str | None,
    ) -> None:
        if target.startswith(("http://", "https://")):
            raise InputError(
                f"found the server's address {target!r:.80}, expected HOST:PORT"
                " of gRPC, which lstm-dssm-serve prints after `serving on`; for"
                " the HTTP port use HttpClient"
            )
        self.target = target
        self.timeout = checked_timeout(timeout)
        self._metadata = token_headers(
            token, _host(target), credentials is not None
        )
        size = message_bytes(max_message_mb)
        options = [
            ("grpc.max_receive_message_length", size),
            ("grpc.max_send_message_length", size),
            # gRPC would connect even to 127.0.0.1 through $http_proxy.
            ("grpc.enable_http_proxy", 0),
            ("grpc.service_config", json.dumps(_RETRIES)),
            # gRPC does not repeat a request that exceeds this buffer.
            ("grpc.per_rpc_retry_buffer_size", size),
            # gRPC waits only this long between attempts to connect. So gRPC
            # reaches a restarted server before the last retry of a request.
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 1000),
            # Otherwise all clients in a process would share a connection.
            ("grpc.use_local_subchannel_pool", 1),
        ]
        self.channel = channel = (
            channels.insecure_channel(target, options=options)
            if credentials is None
            else channels.secure_channel(target, credentials, options=options)
        )
        self._calls = {}
        for request_class, path in _METHODS.items():
            method = path.partition("/")[2]
            self._calls[request_class] = channel.unary_unary(
                f"/tensorflow.serving.{path}",
                message_class(f"{method}Request").SerializeToString,
                message_class(f"{method}Response").FromString,
            )

    def send(self, request: Request) -> Any:
        with self._errors(request):
            return _reply(request, self._call(request))

    async def send_async(self, request: Request) -> Any:
        with self._errors(request):
            return _reply(request, await self._call(request))

    def close(self) -> None:
        self.channel.close()

    def _call(self, request: Request) -> Any:
        """Returns the reply's message; with `grpc.aio`, as an awaitable."""
        return self._calls[type(request)](
            _message(request), timeout=self.timeout, metadata=self._metadata
        )

    @contextmanager
    def _errors(self, request: Request) -> Iterator[None]:
        try:
            yield
        except grpc.RpcError as error:
            code = error.code()
            raise serving_error(
                code, error.details(), self.target, request.model, code.name
            ) from error


def _host(target: str) -> str:
    """Returns the host of an address such as `[::1]:8500`."""
    host, colon, port = target.rpartition(":")
    return host if colon and port.isdecimal() else target


class AsyncClient(AsyncTextClient):
    """Has the methods of `Client` as coroutines, for asyncio.

    Arguments, results and errors are the same as in `Client`.

    Example:
        >>> async def main():
        ...     async with AsyncClient("127.0.0.1:8500") as client:
        ...         return await client.search(["angle bracket"], k=1)
        >>> asyncio.run(main())
        [[Hit(id='a7', score=0.91, title='steel angle')]]
    """

    def __init__(
        self,
        target: str,
        timeout: float = 5.0,
        max_message_mb: int = 64,
        credentials: grpc.ChannelCredentials | None = None,
        token: str | None = None,
    ) -> None:
        self._transport = _GrpcTransport(
            grpc.aio, target, timeout, max_message_mb, credentials, token
        )
        super().__init__(self._transport.send_async)
        self.target = target
        self.timeout = timeout

    async def close(self) -> None:
        """Closes the connection; `async with` closes it at the block's end."""
        await self._transport.channel.close()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class Client(TextClient):
    """Sends texts to a server's models over gRPC; threads may share a client.

    Inputs are checked against the model's signature before they are sent. The
    client reads the signature before the first request for a model, and again
    after a new version has answered.

    Args:
        target: The server's gRPC address, for example `127.0.0.1:8500`.
        timeout: Maximum seconds of a request and its retries, by default 5.
            Many texts are sent in several requests, each with this timeout. A
            request has at most 512 texts or pairs, half a megabyte of text and
            262,144 hits.
        max_message_mb: Maximum size of a message, in MiB, by default 64.
        credentials: TLS credentials from `tls_credentials` or gRPC; by default
            the connection is not encrypted.
        token: Token to send with each request, from the server's
            `--token_file`.

    Raises:
        InputError: `target` is a URL, a number is out of range, the token is
            malformed, or the token would be sent to another machine without
            encryption.

    If the server is not available, a request is repeated up to four times
    within `timeout`. Every method raises `ServingError` if the server rejects a
    request, does not answer in time or cannot be reached. `AsyncClient` has the
    same methods as coroutines.

    Example:
        >>> with Client("127.0.0.1:8500") as client:
        ...     client.encode(["angle bracket"]).shape
        ...     client.search(["angle bracket"], k=2)
        (1, 96)
        [[Hit(id='a7', score=0.91, title='steel angle'), Hit(...)]]
    """

    def __init__(
        self,
        target: str,
        timeout: float = 5.0,
        max_message_mb: int = 64,
        credentials: grpc.ChannelCredentials | None = None,
        token: str | None = None,
    ) -> None:
        super().__init__(
            _GrpcTransport(
                grpc, target, timeout, max_message_mb, credentials, token
            )
        )
