"""Client: asks a server over gRPC; threads may share it.

Makes the requests of a client over gRPC, and reads the replies.
Options and errors of a client's connection: sizes, deadlines, retries.
Connection: the base of `Client` and `AsyncClient`, and their TLS.
AsyncClient: asks a server over gRPC, with coroutines.
"""

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import numpy as np

from lstm_dssm_client.errors import InputError, ServingError, no_answer
from lstm_dssm_client.messages import (
    input_proto,
    message_class,
    model_spec,
    read_tensor,
    signatures,
)
from lstm_dssm_client.options import (
    check_certificate_and_key,
    checked_timeout,
    message_bytes,
    token_headers,
)
from lstm_dssm_client.signatures import (
    Hit,
    KeyParts,
    Prediction,
    Signature,
    Version,
    VersionStatus,
)
from lstm_dssm_client.text_client import (
    Answer,
    Calls,
    Known,
    TextCalls,
    TextClient,
)

_PredictRequest = message_class("PredictRequest")
_GetModelMetadataRequest = message_class("GetModelMetadataRequest")
_GetModelStatusRequest = message_class("GetModelStatusRequest")

_CODES = {code.value[0]: code.name for code in grpc.StatusCode}
_STATES = {
    10: "START",
    20: "LOADING",
    30: "AVAILABLE",
    40: "UNLOADING",
    50: "END",
}


class Call(NamedTuple):
    """Holds one request.

    Attributes:
        method: The method's name in TF Serving's API, such as `Predict`.
        request: The message of that method.
    """

    method: str
    request: Any


class ModelCalls(TextCalls):
    """Makes the calls of one client; each request is a `Call`."""

    def predict(
        self,
        model: str,
        inputs: Mapping[str, np.ndarray],
        outputs: Iterable[str] = (),
        version: Version = None,
        signature: str = "",
    ) -> Calls[Prediction]:
        """Runs one request; see `Client.predict`."""
        arrays = {name: np.asarray(values) for name, values in inputs.items()}
        request = _PredictRequest(
            model_spec=model_spec(model, version, signature),
            inputs={
                name: input_proto(name, rows) for name, rows in arrays.items()
            },
            output_filter=outputs,
        )
        yield from self.check_fit(model, arrays, version, signature)
        reply = yield Call("Predict", request)
        spec = reply.model_spec
        known = self._known.get((model, version))
        if known and known.version != spec.version.value:
            self._known.pop((model, version), None)
        return Prediction(
            spec.name,
            spec.version.value,
            spec.signature_name,
            {name: read_tensor(p) for name, p in reply.outputs.items()},
        )

    def signatures(
        self, model: str, version: Version
    ) -> Calls[dict[str, Signature]]:
        """Reads a model's inputs and outputs; see `Client.signatures`."""
        reply = yield Call(
            "GetModelMetadata",
            _GetModelMetadataRequest(
                model_spec=model_spec(model, version),
                metadata_field=["signature_def"],
            ),
        )
        by_name = signatures(reply.metadata["signature_def"].value)
        self._known[model, version] = Known(
            reply.model_spec.version.value, by_name
        )
        return by_name

    def status(self, model: str) -> Calls[dict[int, VersionStatus]]:
        """Reads the states of a model's versions; see `Client.status`."""
        reply = yield Call(
            "GetModelStatus",
            _GetModelStatusRequest(model_spec=model_spec(model, None)),
        )
        return {
            status.version: VersionStatus(
                _STATES.get(status.state, "UNKNOWN"),
                _CODES[status.status.error_code],
                status.status.error_message,
            )
            for status in reply.model_version_status
        }


_ADVICE = {
    grpc.StatusCode.NOT_FOUND: (
        "check the model's name and version; `lstm-dssm-query --status` lists "
        "the versions"
    ),
    grpc.StatusCode.INVALID_ARGUMENT: (
        "`Client.signatures` returns the model's inputs and outputs, and the "
        "server's models.config has the labels"
    ),
    grpc.StatusCode.FAILED_PRECONDITION: (
        "`Client.signatures` returns the model's inputs and outputs"
    ),
    grpc.StatusCode.DEADLINE_EXCEEDED: (
        "raise timeout, or send fewer texts in a request"
    ),
    grpc.StatusCode.RESOURCE_EXHAUSTED: (
        "send shorter texts or a smaller k, or raise max_message_mb of the "
        "client or the server; if the server is busy, try again later"
    ),
    grpc.StatusCode.UNAUTHENTICATED: (
        "give the client a token of the server's --token_file"
    ),
}


def serving_error(
    error: grpc.RpcError, target: str, model: str
) -> ServingError:
    """Returns the `ServingError` for an error of gRPC.

    Args:
        error: The error that gRPC raised.
        target: The server's address.
        model: The name of the requested model.
    """
    code, details = error.code(), error.details()
    if code is grpc.StatusCode.UNAVAILABLE:
        message = no_answer(target, details)
    else:
        advice = f"; {_ADVICE[code]}" if code in _ADVICE else ""
        message = f"{target}, model {model}: {code.name}: {details}{advice}"
    return ServingError(" ".join(message.split()), code, details, model)


# gRPC's own retries. They count against the call's deadline, wait 0.1, 0.2,
# 0.4 and 0.8 seconds, each randomly changed by up to a fifth, and resend
# only requests that the server did not process (UNAVAILABLE: it is starting
# or stopping, or its queue is full). A message above a size limit
# (RESOURCE_EXHAUSTED) would be rejected each time.
# https://grpc.io/docs/guides/retry/
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


def channel_options(max_message_mb: int) -> list[tuple[str, Any]]:
    """Returns the gRPC options of a client's connection.

    Args:
        max_message_mb: Size of the largest message sent or accepted, in MiB.

    Raises:
        InputError: `max_message_mb` is not from 1 to 2047.
    """
    size = message_bytes(max_message_mb)
    return [
        ("grpc.max_receive_message_length", size),
        ("grpc.max_send_message_length", size),
        # gRPC would send even 127.0.0.1 through $http_proxy.
        ("grpc.enable_http_proxy", 0),
        ("grpc.service_config", json.dumps(_RETRIES)),
        # A request that does not fit into this buffer is not retried.
        ("grpc.per_rpc_retry_buffer_size", size),
        # Short enough to reach a restarted server during the retries.
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 1000),
        # By default all clients of a process share one connection.
        ("grpc.use_local_subchannel_pool", 1),
    ]


_SERVICES = {
    "Predict": "PredictionService",
    "GetModelMetadata": "PredictionService",
    "GetModelStatus": "ModelService",
}
"""A method that a client calls -> the service of TF Serving's API with it."""


def tls_credentials(
    ca: str | os.PathLike[str] | None = None,
    certificate: str | os.PathLike[str] | None = None,
    key: str | os.PathLike[str] | None = None,
) -> grpc.ChannelCredentials:
    """Returns the credentials of a client over gRPC, from files in PEM.

    Args:
        ca: Authorities that may have signed the server's certificate, or the
            certificate itself; by default those that gRPC comes with.
        certificate: The client's own certificate, for a server that wants
            one (`--client_ca`).
        key: The private key of `certificate`.

    Raises:
        InputError: A file cannot be read, or only one of `certificate` and
            `key` is given.

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
        raise InputError(f"{path}: expected a file in PEM, found another")
    return data


class Connection:
    """Base of `Client` and `AsyncClient`: their channel and its methods."""

    insecure_channel: Callable[..., Any]
    secure_channel: Callable[..., Any]

    def __init__(
        self,
        target: str,
        timeout: float = 5.0,
        max_message_mb: int = 64,
        credentials: grpc.ChannelCredentials | None = None,
        token: str | None = None,
    ) -> None:
        self.target = target
        self.timeout = checked_timeout(timeout)
        self._metadata = token_headers(
            token, _host(target), credentials is not None
        )
        options = channel_options(max_message_mb)
        self._channel = channel = (
            self.insecure_channel(target, options=options)
            if credentials is None
            else self.secure_channel(target, credentials, options=options)
        )
        self._methods: dict[str, Callable[..., Any]] = {
            method: channel.unary_unary(
                f"/tensorflow.serving.{service}/{method}",
                message_class(f"{method}Request").SerializeToString,
                message_class(f"{method}Response").FromString,
            )
            for method, service in _SERVICES.items()
        }
        self._calls: TextCalls = ModelCalls()

    def _error(self, error: grpc.RpcError, request: Any) -> ServingError:
        return serving_error(error, self.target, request.model_spec.name)


def _host(target: str) -> str:
    """Returns the host of an address such as `[::1]:8500`."""
    host, colon, port = target.rpartition(":")
    return host if colon and port.isdecimal() else target


class AsyncClient(Connection):
    """Sends texts like `Client`, with coroutines.

    It is made and used in a running event loop. Arguments, results and errors
    are those of `Client`.

    Example:
        >>> async def main():
        ...     async with AsyncClient("127.0.0.1:8500") as client:
        ...         return await client.search(["angle bracket"], k=1)
        >>> asyncio.run(main())
        [[Hit(id='steel angle', score=0.91)]]
    """

    insecure_channel = staticmethod(grpc.aio.insecure_channel)
    secure_channel = staticmethod(grpc.aio.secure_channel)

    async def encode(
        self,
        texts: Iterable[str | bytes],
        model: str = "query_encoder",
        version: Version = None,
    ) -> np.ndarray:
        """See `Client.encode`."""
        return await self._run(self._calls.encode(texts, model, version))

    async def search(
        self,
        texts: Iterable[str | bytes],
        k: int = 5,
        model: str = "retriever",
        version: Version = None,
        tags: Iterable[str] = (),
    ) -> list[list[Hit]]:
        """See `Client.search`."""
        return await self._run(
            self._calls.search(texts, k, model, version, tags)
        )

    async def score(
        self,
        query: str | bytes,
        documents: Iterable[str | bytes],
        model: str = "scorer",
        version: Version = None,
    ) -> np.ndarray:
        """See `Client.score`."""
        return await self._run(
            self._calls.score(query, documents, model, version)
        )

    async def score_pairs(
        self,
        queries: Iterable[str | bytes],
        documents: Iterable[str | bytes],
        model: str = "scorer",
        version: Version = None,
    ) -> np.ndarray:
        """See `Client.score_pairs`."""
        return await self._run(
            self._calls.score_pairs(queries, documents, model, version)
        )

    async def keys(
        self,
        texts: Iterable[str | bytes],
        n: int = 5,
        model: str = "keyvec",
        version: Version = None,
    ) -> list[KeyParts]:
        """See `Client.keys`."""
        return await self._run(self._calls.keys(texts, n, model, version))

    async def predict(
        self,
        model: str,
        inputs: dict[str, np.ndarray],
        outputs: Iterable[str] = (),
        version: Version = None,
        signature: str = "",
    ) -> Prediction:
        """See `Client.predict`."""
        return await self._run(
            self._calls.predict(model, inputs, outputs, version, signature)
        )

    async def signatures(
        self, model: str, version: Version = None
    ) -> dict[str, Signature]:
        """See `Client.signatures`."""
        return await self._run(self._calls.signatures(model, version))

    async def status(self, model: str) -> dict[int, VersionStatus]:
        """See `Client.status`."""
        return await self._run(self._calls.status(model))

    async def close(self) -> None:
        """Closes the connection; leaving the `async with` block does, too."""
        await self._channel.close()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _run(self, calls: Calls[Answer]) -> Answer:
        reply = None
        while True:
            try:
                method, request = calls.send(reply)
            except StopIteration as end:
                return end.value
            call = self._methods[method]
            try:
                reply = await call(
                    request, timeout=self.timeout, metadata=self._metadata
                )
            except grpc.RpcError as error:
                raise self._error(error, request) from error


class Client(Connection, TextClient):
    """Sends texts to a server's models; threads may share a client.

    Inputs are checked against the model's signature before they are sent: on
    a server that batches, one request without rows, or of a wrong dtype or
    rank, would fail the requests of others. The signature is read before the
    first request for a model, and again after another version has answered.

    Args:
        target: The server's gRPC address, for example `127.0.0.1:8500`.
        timeout: Seconds that each request may take, its retries included, by
            default 5. Many texts are sent as several requests, of 512 texts
            or pairs, half a megabyte or 262,144 hits each.
        max_message_mb: Size of the largest message sent or accepted, in MiB,
            by default 64 (gRPC's own default is 4: 10,000 vectors of 96
            numbers).
        credentials: The certificates with which connections are encrypted,
            from `tls_credentials` or of gRPC's own functions; by default they
            are not encrypted.
        token: Token that each request has, as the server's `--token_file`
            wants it.

    Raises:
        InputError: A number is out of range; or a token would be sent to
            another machine without encryption.

    A request is retried, up to four times and within `timeout`, if the
    server is not available. Every method raises `ServingError` if the
    server rejects a request, does not answer in time or cannot be reached.
    `AsyncClient` has the same methods as coroutines.

    Example:
        >>> with Client("127.0.0.1:8500") as client:
        ...     client.encode(["angle bracket"]).shape
        ...     client.search(["angle bracket"], k=2)
        (1, 96)
        [[Hit(id='steel angle', score=0.91), Hit(id='bracket', score=0.87)]]
    """

    insecure_channel = staticmethod(grpc.insecure_channel)
    secure_channel = staticmethod(grpc.secure_channel)

    def signatures(
        self, model: str, version: Version = None
    ) -> dict[str, Signature]:
        """Returns the inputs and outputs of a model, by signature name."""
        return self._run(self._calls.signatures(model, version))

    def close(self) -> None:
        """Closes the connection; leaving the `with` block closes it, too."""
        self._channel.close()

    def _run(self, calls: Calls[Answer]) -> Answer:
        reply = None
        while True:
            try:
                method, request = calls.send(reply)
            except StopIteration as end:
                return end.value
            try:
                reply = self._methods[method](
                    request, timeout=self.timeout, metadata=self._metadata
                )
            except grpc.RpcError as error:
                raise self._error(error, request) from error
