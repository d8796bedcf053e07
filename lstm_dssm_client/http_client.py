"""A client of TF Serving's REST API, with NumPy and the standard library only.

The client keeps connections open, and repeats requests after a failed
connection or a reply of 503 or 429. One deadline limits connecting, sending and
receiving together.
"""

import base64
import http.client
import io
import json
import math
import os
import random
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlsplit

import numpy as np

from lstm_dssm_client.errors import InputError, ServingError, serving_error
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
    GetMetadata,
    GetStatus,
    Metadata,
    Predict,
    Request,
    TextClient,
)


def tls_context(
    ca: str | os.PathLike[str] | None = None,
    certificate: str | os.PathLike[str] | None = None,
    key: str | os.PathLike[str] | None = None,
) -> ssl.SSLContext:
    """Returns the TLS settings of an HTTP client, from files in PEM format.

    Args:
        ca: File with the certificates of trusted authorities, or of the server.
            By default the system's authorities are trusted.
        certificate: File of the client's certificate, for a server that
            requires client certificates (`--client_ca`).
        key: File of the private key of `certificate`.

    Raises:
        InputError: A file cannot be read or is not PEM, or only one of
            `certificate` and `key` is given.

    Example:
        >>> HttpClient("https://db1:8501", credentials=tls_context("ca.crt"))
    """
    check_certificate_and_key(certificate, key)
    try:
        context = ssl.create_default_context(cafile=ca)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if certificate is not None:
            context.load_cert_chain(certificate, key, password=lambda: "")
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        names = ", ".join(os.fspath(p) for p in (ca, certificate, key) if p)
        reason = getattr(error, "reason", None) or error.args[-1]
        raise InputError(f"{names}: {reason}; expected files in PEM") from error
    return context


def _path(model: str, version: Version) -> str:
    path = f"/v1/models/{quote(model, safe='')}"
    if isinstance(version, str):
        return f"{path}/labels/{quote(version, safe='')}"
    return path if version is None else f"{path}/versions/{version}"


def _path_and_body(request: Request) -> tuple[str, bytes | None]:
    if isinstance(request, GetStatus):
        return _path(request.model, None), None
    path = _path(request.model, request.version)
    if isinstance(request, GetMetadata):
        return f"{path}/metadata", None
    inputs = {
        name: _json_values(name, values)
        for name, values in request.inputs.items()
    }
    body = {"signature_name": request.signature, "inputs": inputs}
    return f"{path}:predict", json.dumps(body).encode()


def _json_values(name: str, values: np.ndarray) -> Any:
    """Converts an array to nested lists, with bytes as text or base64."""
    if dtype_name(values) == "string":
        flat = [_json_text(name, value) for value in values.ravel().tolist()]
        return np.array(flat, object).reshape(values.shape).tolist()
    if values.dtype.kind not in "biuf":
        raise _not_json(name, f"is {values.dtype}")
    return values.tolist()


def _json_text(name: str, value: Any) -> Any:
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogateescape")
    if not isinstance(value, bytes):
        raise _not_json(name, f"has {value!r:.60}")
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(value).decode()}


def _not_json(name: str, problem: str) -> InputError:
    return InputError(
        f"input {name!r} {problem}; expected an array of numbers, or of bytes"
        " for strings"
    )


@contextmanager
def _tf_serving_form(request: Request) -> Iterator[None]:
    """Raises `InputError` if the `with` block fails to read a reply."""
    try:
        yield
    except (
        AttributeError,
        KeyError,
        TypeError,
        ValueError,
        OverflowError,
        RecursionError,
    ) as error:
        names = {GetMetadata: "metadata", GetStatus: "status"}
        raise InputError(
            f"model {request.model}: the {names.get(type(request), 'reply')} is"
            " not in TF Serving's form; give the address of TF Serving's REST"
            " interface, such as http://127.0.0.1:8501"
        ) from error


def _reply(request: Request, body: bytes) -> Any:
    with _tf_serving_form(request):
        reply = json.loads(body)
        if isinstance(request, Predict):
            return _PredictReply(request, reply["outputs"])
        if isinstance(request, GetMetadata):
            return _metadata(reply)
        return {
            int(version["version"]): VersionStatus(
                version["state"],
                version["status"]["error_code"],
                version["status"]["error_message"],
            )
            for version in reply["model_version_status"]
        }


class _PredictReply:
    """See `text_client.PredictReply`."""

    def __init__(self, request: Predict, outputs: Any) -> None:
        version = request.version
        self.version = version if isinstance(version, int) else None
        self._request = request
        self._outputs = outputs

    def outputs(
        self, signature: Signature | None
    ) -> dict[str, np.ndarray] | None:
        if signature is None:
            return None
        with _tf_serving_form(self._request):
            by_name = self._outputs
            if len(signature.outputs) == 1:  # the reply has no output names
                if isinstance(by_name, dict):
                    return None
                by_name = dict.fromkeys(signature.outputs, by_name)
            elif by_name.keys() != signature.outputs.keys():
                return None
            names = self._request.outputs or signature.outputs
            return {
                name: _array(by_name[name], spec)
                for name, spec in signature.outputs.items()
                if name in names
            }


def _array(values: Any, spec: TensorInfo) -> np.ndarray:
    if spec.dtype == "string":
        array = np.array(_bytes(values), object)
    else:
        array = np.array(values, spec.dtype)
    if array.shape == (0,) and spec.shape and len(spec.shape) == 2:
        return array.reshape(0, 0)
    return array


def _bytes(values: Any) -> Any:
    """Converts each text in nested lists to bytes."""
    if isinstance(values, list):
        return [_bytes(value) for value in values]
    if isinstance(values, dict):
        return base64.b64decode(values["b64"], validate=True)
    if not isinstance(values, str):
        raise ValueError("a text is missing")
    return values.encode("utf-8", "surrogatepass")


def _metadata(reply: Any) -> Metadata:
    by_name = reply["metadata"]["signature_def"]["signature_def"]
    return Metadata(
        int(reply["model_spec"]["version"]),
        {
            name: Signature(
                _specs(value.get("inputs", {})),
                _specs(value.get("outputs", {})),
            )
            for name, value in sorted(by_name.items())
            if value.get("method_name") == PREDICT
        },
    )


_DTYPES = {"float": "float32", "double": "float64", "half": "float16"}
"""TensorFlow's name of a dtype -> NumPy's name, if they differ."""


def _specs(infos: Mapping[str, Any]) -> dict[str, TensorInfo]:
    specs = {}
    for name, info in sorted(infos.items()):
        dtype = info["dtype"].removeprefix("DT_").lower()
        shape = info["tensor_shape"]
        sizes = [int(dim["size"]) for dim in shape.get("dim", [])]
        specs[name] = TensorInfo(
            _DTYPES.get(dtype, dtype),
            None
            if shape.get("unknown_rank", False)
            else tuple(None if size < 0 else size for size in sizes),
        )
    return specs


class _TimedSocket:
    """Socket for `http.client` with one deadline for all bytes of a request."""

    # The timeout of a plain socket starts again at each call.
    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self.end = 0.0  # deadline of the request, by time.monotonic

    def limit_wait(self) -> None:
        """Sets the timeout of the next call to the time until the deadline."""
        self._sock.settimeout(_remaining(self.end))

    def sendall(self, data: bytes) -> None:
        unsent = memoryview(data)
        while unsent:
            self.limit_wait()
            unsent = unsent[self._sock.send(unsent) :]

    def makefile(self, _: str) -> io.BufferedReader:
        raw = self._sock.makefile("rb", buffering=0)
        return io.BufferedReader(_TimedReader(self, raw))

    def close(self) -> None:
        self._sock.close()


def _remaining(end: float) -> float:
    seconds = end - time.monotonic()
    if seconds <= 0:
        raise TimeoutError("the deadline has passed")
    return seconds


class _TimedReader(io.RawIOBase):
    """Reads a reply from a `_TimedSocket` until the socket's deadline."""

    def __init__(self, sock: _TimedSocket, raw: io.RawIOBase) -> None:
        self._sock = sock
        self._raw = raw

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.limit_wait()
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


_WAITS = (0.1, 0.2, 0.4, 0.8)
"""Seconds before each repetition of a request, with a jitter of 20 %."""

_TRY_AGAIN = (
    None,  # no reply
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.TOO_MANY_REQUESTS,
)


class _HttpTransport:
    """Sends requests over HTTP for an `HttpClient`; keeps connections open."""

    def __init__(
        self,
        target: str,
        timeout: float,
        max_message_mb: int,
        credentials: ssl.SSLContext | None,
        token: str | None,
    ) -> None:
        self.target = target
        self.timeout = checked_timeout(timeout)
        self._max_bytes = message_bytes(max_message_mb)
        self._host, self._port, self._prefix, encrypted = _split_url(target)
        if credentials is not None and not encrypted:
            raise InputError(
                f"{target}: credentials are for https, expected an address"
                " such as https://db1:8501"
            )
        self._tls = (credentials or tls_context()) if encrypted else None
        self._headers = {
            "accept": "application/json",
            "content-type": "application/json",
            **dict(token_headers(token, self._host, encrypted)),
        }
        self._idle: list[http.client.HTTPConnection] = []

    def send(self, request: Request) -> Any:
        path, body = _path_and_body(request)
        end = time.monotonic() + self.timeout
        waits = iter(_WAITS)
        while True:
            try:
                return _reply(request, self._fetch(request, path, body, end))
            except ServingError as error:
                wait = next(waits, math.inf) * random.uniform(0.8, 1.2)
                if (
                    error.code not in _TRY_AGAIN
                    or isinstance(error.__cause__, ssl.SSLCertVerificationError)
                    or time.monotonic() + wait >= end
                ):
                    raise
            time.sleep(wait)

    def close(self) -> None:
        with suppress(IndexError):
            while True:
                self._idle.pop().close()

    def _fetch(
        self, request: Request, path: str, body: bytes | None, end: float
    ) -> bytes:
        """Returns the body of the reply; raises `ServingError` for errors."""

        def error(code: Any, details: str, status: str = "") -> ServingError:
            return serving_error(
                code, details, self.target, request.model, status
            )

        try:
            status, reply = self._answer(path, body, end)
        except TimeoutError as reason:
            raise error(
                HTTPStatus.GATEWAY_TIMEOUT,
                f"no reply within {self.timeout:g} seconds",
            ) from reason
        except (OSError, UnicodeError, http.client.HTTPException) as reason:
            details = " ".join(str(reason).split()) or repr(reason)
            raise error(None, details) from reason
        if len(reply) > self._max_bytes:
            raise error(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"the reply is larger than {self._max_bytes:,} bytes",
            )
        if status < 300:
            return reply
        details = reply[:2000].decode(errors="replace")
        with suppress(ValueError, TypeError, KeyError):
            details = str(json.loads(reply)["error"])
        try:
            code = HTTPStatus(status)
        except ValueError:
            code = HTTPStatus.INTERNAL_SERVER_ERROR
        raise error(code, details, f"{status} {code.phrase}")

    def _answer(
        self, path: str, body: bytes | None, end: float
    ) -> tuple[int, bytes]:
        """Sends a request; returns the status and the body of the reply."""
        while True:
            try:
                connection, reused = self._idle.pop(), True
            except IndexError:
                connection, reused = self._connected(end), False
            try:
                reply, data = self._exchange(connection, path, body, end)
            except BaseException as error:
                connection.close()
                if reused and isinstance(error, ConnectionError):
                    continue  # the server closed the idle connection
                raise
            if reply.isclosed() and not reply.will_close:
                self._idle.append(connection)
            else:
                reply.close()
                connection.close()
            return reply.status, data

    def _connected(self, end: float) -> http.client.HTTPConnection:
        """Connects to the first of the host's addresses that answers."""
        addresses = socket.getaddrinfo(
            self._host, self._port, type=socket.SOCK_STREAM
        )
        for untried in range(len(addresses), 0, -1):
            family, kind, protocol, _, address = addresses[-untried]
            sock = socket.socket(family, kind, protocol)
            try:
                sock.settimeout(_remaining(end) / untried)
                sock.connect(address)
                break
            except OSError:
                sock.close()
                if untried == 1:
                    raise
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                sock.settimeout(_remaining(end))
                sock = self._tls.wrap_socket(sock, server_hostname=self._host)
        except BaseException:
            sock.close()
            raise
        connection = http.client.HTTPConnection(self._host, self._port)
        connection.sock = _TimedSocket(sock)
        return connection

    def _exchange(
        self,
        connection: http.client.HTTPConnection,
        path: str,
        body: bytes | None,
        end: float,
    ) -> tuple[http.client.HTTPResponse, bytes]:
        """Sends a request; reads up to `_max_bytes` + 1 bytes of the reply."""
        sock: Any = connection.sock  # a _TimedSocket
        sock.end = end
        with suppress(BrokenPipeError, ConnectionResetError):
            # A server may reply with an error and close the connection before
            # the server has read the request. The reply is read below.
            connection.request(
                "GET" if body is None else "POST",
                self._prefix + path,
                body,
                self._headers,
            )
        reply = connection.getresponse()
        data = reply.read(self._max_bytes + 1)  # + 1 detects a larger reply
        if reply.length and len(data) <= self._max_bytes:
            raise http.client.IncompleteRead(data, reply.length)
        return reply, data


def _split_url(target: str) -> tuple[str, int, str, bool]:
    """Returns the host, the port, the path's prefix, and whether to use TLS."""
    try:
        url = urlsplit(target if "://" in target else f"http://{target}")
        port = url.port
    except ValueError:
        url, port = urlsplit(""), None
    encrypted = url.scheme == "https"
    if (
        url.scheme not in ("http", "https")
        or not url.hostname
        or url.query
        or url.fragment
        or url.username is not None
    ):
        raise InputError(
            f"{target!r}: expected the address of a server, such as"
            " http://127.0.0.1:8501 or https://db1:8501"
        )
    port = port or (443 if encrypted else 80)
    return url.hostname, port, url.path.rstrip("/"), encrypted


class HttpClient(TextClient):
    """Sends texts to the REST interface of TF Serving or `lstm-dssm-serve`.

    The methods have the arguments and results of `Client`, except that the
    version of a `Prediction` is None if the request had no version number. The
    `code` of a `ServingError` is an `http.HTTPStatus`.

    Args:
        target: The server's address, such as `http://127.0.0.1:8501` or
            `https://db1:8501/prefix`; `http://` may be left out.
        timeout: Maximum seconds of a request and its repetitions, by default 5.
            A look-up of the host's name is not interrupted. Many texts are
            sent in several requests, each with this timeout. A request has at
            most 512 texts or pairs and half a megabyte of text, and asks for at
            most 262,144 hits.
        max_message_mb: Maximum size of a reply, in MiB, by default 64.
        credentials: TLS settings for an https address, for example from
            `tls_context`; by default the system's authorities are trusted.
        token: Token to send with each request, from the server's
            `--token_file`.

    Raises:
        InputError: The address is no URL, `credentials` are given for an http
            address, a number is out of range, the token is malformed, or the
            token would be sent to another machine without encryption.

    A request is repeated up to four times within `timeout` if a connection
    fails, or if the server replies with 503 or 429. `$http_proxy` is ignored.

    Example:
        >>> with HttpClient("http://127.0.0.1:8501") as client:
        ...     client.search(["angle bracket"], k=2)
        [[Hit(id='a7', score=0.91, title='steel angle'), Hit(...)]]
    """

    def __init__(
        self,
        target: str,
        timeout: float = 5.0,
        max_message_mb: int = 64,
        credentials: ssl.SSLContext | None = None,
        token: str | None = None,
    ) -> None:
        super().__init__(
            _HttpTransport(target, timeout, max_message_mb, credentials, token)
        )
