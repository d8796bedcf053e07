"""Connection: the base of `Client` and `AsyncClient`, and their TLS."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc

from lstm_dssm_client.calls import TextCalls
from lstm_dssm_client.connection_options import (
    check_certificate_and_key,
    checked_timeout,
    token_headers,
)
from lstm_dssm_client.errors import InputError, ServingError
from lstm_dssm_client.grpc_calls import ModelCalls
from lstm_dssm_client.grpc_channel import channel_options, serving_error
from lstm_dssm_client.messages import message_class

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
