"""Clients of TF Serving's gRPC API: `Client`, and `AsyncClient` for asyncio."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import numpy as np

from lstm_dssm_client.errors import InputError, serving_error
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
from lstm_dssm_client.signatures import Signature, VersionStatus
from lstm_dssm_client.text_client import (
    AsyncTextClient,
    GetMetadata,
    GetStatus,
    Metadata,
    Predict,
    Request,
    TextClient,
)


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


_METHODS = {
    Predict: "PredictionService/Predict",
    GetMetadata: "PredictionService/GetModelMetadata",
    GetStatus: "ModelService/GetModelStatus",
}
"""Kind of a request -> the method of TF Serving's API."""


def _message(request: Request) -> Any:
    """Returns the message of a request."""
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
    10: "START",
    20: "LOADING",
    30: "AVAILABLE",
    40: "UNLOADING",
    50: "END",
}
_CODES = {code.value[0]: code.name for code in grpc.StatusCode}


def _reply(request: Request, message: Any) -> Any:
    """Reads the message of the reply to a request."""
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
    """The `Transport` of a `Client`, or of an `AsyncClient` with `grpc.aio`."""

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
                " of its gRPC, which lstm-dssm-serve prints after `serving on`;"
                " HttpClient asks its HTTP port"
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
        self.channel = channel = (
            channels.insecure_channel(target, options=options)
            if credentials is None
            else channels.secure_channel(target, credentials, options=options)
        )
        self._calls = {}
        for kind, path in _METHODS.items():
            method = path.partition("/")[2]
            self._calls[kind] = channel.unary_unary(
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
        """Calls a method: the reply, or of `grpc.aio` an awaitable of it."""
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
    """Sends texts like `Client`, with coroutines.

    It is made and used in a running event loop. Arguments, results and errors
    are those of `Client`.

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
        """Closes the connection; leaving the `async with` block does, too."""
        await self._transport.channel.close()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class Client(TextClient):
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
