"""HttpClient: asks a server over HTTP, without TensorFlow.

Makes the requests of a client over HTTP, in TF Serving's REST form.
HttpConnection: sends requests to one server, and keeps connections open.
"""

import base64
import http.client
import json
import os
import random
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import numpy as np

from lstm_dssm_client.errors import InputError, ServingError, no_answer
from lstm_dssm_client.options import (
    check_certificate_and_key,
    checked_timeout,
    message_bytes,
    token_headers,
)
from lstm_dssm_client.signatures import (
    DEFAULT,
    PREDICT,
    Output,
    Prediction,
    Signature,
    TensorInfo,
    Version,
    VersionStatus,
    check_rows,
    dtype_name,
)
from lstm_dssm_client.text_client import (
    ATTEMPTS,
    Answer,
    Calls,
    Known,
    TextCalls,
    TextClient,
    checked_version,
)

_DTYPES = {"float": "float32", "double": "float64", "half": "float16"}
"""NumPy's names of TensorFlow's dtypes, where they differ."""


class HttpRequest(NamedTuple):
    """Holds one request.

    Attributes:
        path: The path and, after it, what is asked for.
        model: The model's name, for errors.
        body: The body of a POST, as JSON; None for a GET.
    """

    path: str
    model: str
    body: bytes | None = None


class HttpCalls(TextCalls):
    """Makes the calls of one client; each request is an `HttpRequest`.

    The reply that is sent back is the value of its JSON.
    """

    def predict(
        self,
        model: str,
        inputs: Mapping[str, np.ndarray],
        outputs: Iterable[str] = (),
        version: Version = None,
        signature: str = "",
    ) -> Calls[Prediction]:
        """Runs one request; see `TextClient.predict`."""
        key = signature or DEFAULT
        arrays = {name: np.asarray(values) for name, values in inputs.items()}
        body = json.dumps(
            {
                "signature_name": key,
                "inputs": {
                    name: _json_values(name, values)
                    for name, values in arrays.items()
                },
            }
        ).encode()
        path = _model_path(model, version)
        yield from self.check_fit(model, arrays, version, signature)
        reply = yield HttpRequest(f"{path}:predict", model, body)
        known = self._known[model, version].signatures.get(key)
        if known is None or not _names_fit(reply, known):
            # Another version has begun to answer.
            known = (yield from self.current(model, version))[key]
        found = _outputs(model, reply, known)
        wanted = list(outputs)
        return Prediction(
            model,
            version if isinstance(version, int) else None,
            key,
            {n: v for n, v in found.items() if n in wanted or not wanted},
        )

    def _of_one_version(
        self,
        model: str,
        chunks: Sequence[dict[str, np.ndarray]],
        output: Output,
        version: Version,
    ) -> Calls[np.ndarray]:
        """Returns an output for all chunks, of one version.

        A reply does not name its version. So several requests ask for the
        version by its number, and if it is unloaded meanwhile, all of them
        are sent again to the next one.
        """
        if len(chunks) == 1 or isinstance(version, int):
            return (
                yield from super()._of_one_version(
                    model, chunks, output, version
                )
            )
        for attempt in range(ATTEMPTS):
            yield from self.signatures(model, version)
            number = self._known[model, version].version
            try:
                return (
                    yield from super()._of_one_version(
                        model, chunks, output, number
                    )
                )
            except ServingError as error:
                gone = error.code is HTTPStatus.NOT_FOUND
                if not gone or attempt == ATTEMPTS - 1:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def signatures(
        self, model: str, version: Version
    ) -> Calls[dict[str, Signature]]:
        """Reads a model's inputs and outputs; see `HttpClient.signatures`."""
        path = _model_path(model, version)
        reply = yield HttpRequest(f"{path}/metadata", model)
        try:
            number = int(reply["model_spec"]["version"])
            defs = reply["metadata"]["signature_def"]["signature_def"]
            by_name = {
                name: Signature(
                    _specs(value.get("inputs", {})),
                    _specs(value.get("outputs", {})),
                )
                for name, value in sorted(defs.items())
                if value.get("method_name") == PREDICT
            }
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise _no_serving(model, "metadata") from error
        self._known[model, version] = Known(number, by_name)
        return by_name

    def status(self, model: str) -> Calls[dict[int, VersionStatus]]:
        """Reads the states of a model's versions; see `TextClient.status`."""
        reply = yield HttpRequest(_model_path(model, None), model)
        try:
            return {
                int(each["version"]): VersionStatus(
                    each["state"],
                    each["status"]["error_code"],
                    each["status"]["error_message"],
                )
                for each in reply["model_version_status"]
            }
        except (KeyError, TypeError, ValueError) as error:
            raise _no_serving(model, "status") from error


def _model_path(model: str, version: Version) -> str:
    """Returns the path of a model's version."""
    path = f"/v1/models/{quote(model, safe='')}"
    if isinstance(version, str):
        return f"{path}/labels/{quote(version, safe='')}"
    if version is None:
        return path
    return f"{path}/versions/{checked_version(version)}"


def _json_values(name: str, values: np.ndarray) -> Any:
    """Returns an input as nested lists; bytes become text, or base64.

    Raises:
        InputError: There are no rows, or values other than numbers and bytes.
    """
    check_rows(name, values)
    if dtype_name(values) == "string":
        flat = [_json_text(name, value) for value in values.ravel().tolist()]
        return _nested(flat, values.shape)
    if values.dtype.kind not in "biuf":
        raise InputError(
            f"input {name!r} is {values.dtype}; expected an array of numbers,"
            " or of bytes for strings"
        )
    return values.tolist()


def _json_text(name: str, value: Any) -> Any:
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogateescape")
    if not isinstance(value, bytes):
        raise InputError(
            f"input {name!r} has {value!r:.60}; expected an array of numbers,"
            " or of bytes for strings"
        )
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(value).decode()}


def _nested(flat: list[Any], shape: tuple[int, ...]) -> Any:
    """Returns a flat list as nested lists of a shape."""
    for size in reversed(shape[1:]):
        flat = [flat[i : i + size] for i in range(0, len(flat), size)]
    return flat if shape else flat[0]


def _names_fit(reply: Any, signature: Signature) -> bool:
    if not isinstance(reply, dict) or "outputs" not in reply:
        return True  # an error of its own
    if len(signature.outputs) == 1:
        return not isinstance(reply["outputs"], dict)
    found = reply["outputs"]
    return isinstance(found, dict) and found.keys() == signature.outputs.keys()


def _outputs(
    model: str, reply: Any, signature: Signature
) -> dict[str, np.ndarray]:
    """Returns the outputs in a reply, of the signature's dtypes.

    The only output of a signature is not named in the reply.
    """
    try:
        values = reply["outputs"]
        if len(signature.outputs) == 1:
            values = {next(iter(signature.outputs)): values}
        return {
            name: _array(values[name], spec)
            for name, spec in signature.outputs.items()
        }
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise _no_serving(model, "reply") from error


def _array(values: Any, spec: TensorInfo) -> np.ndarray:
    if spec.dtype == "string":
        array = np.array(_bytes(values), object)
    else:
        array = np.array(values, spec.dtype)
    rank = None if spec.shape is None else len(spec.shape)
    if array.ndim == 1 and rank == 2 and not array.size:
        return array.reshape(0, 0)
    return array


def _bytes(values: Any) -> Any:
    """Returns nested lists of texts with each text as bytes."""
    if isinstance(values, list):
        return [_bytes(value) for value in values]
    if isinstance(values, dict):
        return base64.b64decode(values["b64"], validate=True)
    if not isinstance(values, str):
        raise ValueError("a text is missing")
    return values.encode("utf-8", "surrogatepass")


def _specs(infos: Mapping[str, Any]) -> dict[str, TensorInfo]:
    """Returns the tensors of a signature, from the metadata."""
    specs = {}
    for name, info in sorted(infos.items()):
        dtype = info["dtype"].removeprefix("DT_").lower()
        shape = info["tensor_shape"]
        sizes = tuple(int(each["size"]) for each in shape.get("dim", []))
        specs[name] = TensorInfo(
            _DTYPES.get(dtype, dtype),
            None
            if shape.get("unknown_rank", False)
            else tuple(None if size < 0 else size for size in sizes),
        )
    return specs


def _no_serving(model: str, what: str) -> InputError:
    return InputError(
        f"model {model}: the {what} is not in TF Serving's form; give the"
        " address of its REST interface, such as http://127.0.0.1:8501"
    )


_WAITS = (0.1, 0.2, 0.4, 0.8)
"""Seconds before each repetition, each randomly changed by up to a fifth."""

_TRY_AGAIN = (HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS)
_BROKEN = (OSError, http.client.HTTPException)
_PIECE = 1 << 16
_ADVICE = {
    HTTPStatus.NOT_FOUND: (
        "check the model's name and version; `HttpClient.status` returns the"
        " versions"
    ),
    HTTPStatus.BAD_REQUEST: (
        "`HttpClient.signatures` returns the model's inputs and outputs, and"
        " the server's models.config has the labels"
    ),
    HTTPStatus.UNAUTHORIZED: (
        "give the client a token of the server's --token_file"
    ),
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: (
        "send shorter texts, or raise max_message_mb of the server"
    ),
    HTTPStatus.TOO_MANY_REQUESTS: "try again when the server is less busy",
}


def tls_context(
    ca: str | os.PathLike[str] | None = None,
    certificate: str | os.PathLike[str] | None = None,
    key: str | os.PathLike[str] | None = None,
) -> ssl.SSLContext:
    """Returns the settings of TLS of a client over HTTP, from files in PEM.

    Args:
        ca: Authorities that may have signed the server's certificate, or the
            certificate itself; by default those of the system.
        certificate: The client's own certificate, for a server that wants
            one (`--client_ca`).
        key: The private key of `certificate`.

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


class HttpConnection:
    """Sends requests to one server; threads may share it.

    A connection that is open and not in use is used again. A request is sent
    again, four times at most and within its deadline, if the server cannot be
    reached, is not available (503) or too busy (429).

    Args:
        target: The server's address, such as `http://127.0.0.1:8501` or
            `https://db1:8501/prefix`; `http://` may be left out.
        timeout: Seconds that a request may take, its repetitions included.
        max_message_mb: Size of the largest reply, in MiB.
        credentials: Settings of TLS; by default those of the system.
        token: Token that each request has.

    Raises:
        InputError: The address is no URL, a number is out of range, or a
            token would be sent to another machine without encryption.
    """

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
        self._tls: ssl.SSLContext | None
        self._host, self._port, self._prefix, encrypted = _parts(target)
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
        self._lock = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []

    def send(self, request: HttpRequest) -> Any:
        """Sends a request and returns the value of the reply's JSON.

        Raises:
            ServingError: The server rejects the request, does not answer in
                time or cannot be reached.
        """
        end = time.monotonic() + self.timeout
        waits = iter(_WAITS)
        while True:
            try:
                status, body = self._answer(request, end)
                error: Exception | None = None
                if status < 300:
                    return _value(body)
                failure = self._rejected(request, status, body)
            except ServingError:  # the reply is too large
                raise
            except TimeoutError as reason:
                error, failure = reason, self._too_late(request)
            except _BROKEN as reason:
                error = reason
                details = " ".join(str(reason).split()) or repr(reason)
                failure = ServingError(
                    no_answer(self.target, details), None, details,
                    request.model,
                )  # fmt: skip
            again = failure.code is None or failure.code in _TRY_AGAIN
            wait = next(waits, None) if again else None
            if isinstance(error, ssl.SSLCertVerificationError):
                wait = None  # it would not be trusted the next time, either
            if wait is None:
                raise failure from error
            wait *= random.uniform(0.8, 1.2)
            if time.monotonic() + wait >= end:
                raise failure from error
            time.sleep(wait)

    def close(self) -> None:
        """Closes the connections on which no request is running."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _answer(self, request: HttpRequest, end: float) -> tuple[int, bytes]:
        """Returns the status and the body of a reply."""
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            used = connection is not None
            connection = connection or self._connected(end)
            try:
                status, body, keep = self._exchange(connection, request, end)
            except (ConnectionError, http.client.RemoteDisconnected):
                connection.close()
                if used:  # the server closed it while it was not in use
                    continue
                raise
            except BaseException:
                connection.close()
                raise
            if keep:
                with self._lock:
                    self._idle.append(connection)
            else:
                connection.close()
            return status, body

    def _connected(self, end: float) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection(
            self._host, self._port, timeout=_remaining(end)
        )
        try:
            connection.connect()
            connection.sock.setsockopt(
                socket.IPPROTO_TCP, socket.TCP_NODELAY, 1
            )
            if self._tls is not None:
                connection.sock = self._tls.wrap_socket(
                    connection.sock, server_hostname=self._host
                )
        except BaseException:
            connection.close()
            raise
        return connection

    def _exchange(
        self,
        connection: http.client.HTTPConnection,
        request: HttpRequest,
        end: float,
    ) -> tuple[int, bytes, bool]:
        """Sends a request over a connection and reads the reply.

        Returns:
            Status, body, and whether the connection can be used again.
        """
        sock = connection.sock
        sock.settimeout(_remaining(end))
        with suppress(BrokenPipeError, ConnectionResetError):
            # A server may refuse a request before it has read all of it; its
            # reply is read below.
            connection.request(
                "GET" if request.body is None else "POST",
                self._prefix + request.path,
                request.body,
                self._headers,
            )
        reply = connection.getresponse()
        pieces, size = [], 0
        # From Python 3.13 on, the last piece closes the reply, and with it the
        # socket where the server does not keep the connection.
        while not reply.isclosed():
            sock.settimeout(_remaining(end))
            piece = reply.read1(_PIECE)
            if not piece:
                break
            pieces.append(piece)
            size += len(piece)
            if size > self._max_bytes:
                connection.close()
                raise ServingError(
                    f"{self.target}, model {request.model}: the reply is"
                    f" larger than {self._max_bytes:,} bytes; send fewer texts"
                    " or a smaller k, or raise max_message_mb of the client",
                    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                    "the reply is too large",
                    request.model,
                )
        if reply.length:  # the connection was closed before the end
            raise http.client.IncompleteRead(b"".join(pieces), reply.length)
        reply.close()  # the connection is then free for the next request
        return reply.status, b"".join(pieces), not reply.will_close

    def _rejected(
        self, request: HttpRequest, status: int, body: bytes
    ) -> ServingError:
        try:
            code = HTTPStatus(status)
        except ValueError:
            code = HTTPStatus.INTERNAL_SERVER_ERROR
        details = body[:2000].decode(errors="replace")
        with suppress(ValueError, TypeError, KeyError):
            details = str(json.loads(body)["error"])
        if code is HTTPStatus.SERVICE_UNAVAILABLE:
            message = no_answer(self.target, details)
        else:
            advice = f"; {_ADVICE[code]}" if code in _ADVICE else ""
            message = (
                f"{self.target}, model {request.model}: {status}"
                f" {code.phrase}: {details}{advice}"
            )
        return ServingError(
            " ".join(message.split()), code, details, request.model
        )

    def _too_late(self, request: HttpRequest) -> ServingError:
        details = f"no reply within {self.timeout:g} seconds"
        return ServingError(
            f"{self.target}, model {request.model}: {details}; raise timeout,"
            " or send fewer texts in a request",
            HTTPStatus.GATEWAY_TIMEOUT,
            details,
            request.model,
        )


def _parts(target: str) -> tuple[str, int, str, bool]:
    """Returns host, port, prefix of the path, and whether it is https."""
    url = target if "://" in target else f"http://{target}"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    encrypted = parts.scheme == "https"
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or parts.query
        or parts.fragment
        or parts.username is not None
    ):
        raise InputError(
            f"{target!r}: expected the address of a server, such as"
            " http://127.0.0.1:8501 or https://db1:8501"
        )
    port = port or (443 if encrypted else 80)
    return parts.hostname, port, parts.path.rstrip("/"), encrypted


def _remaining(end: float) -> float:
    seconds = end - time.monotonic()
    if seconds <= 0:
        raise TimeoutError("the deadline has passed")
    return seconds


def _value(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None  # the caller says what is missing


class HttpClient(TextClient):
    """Sends texts like `Client`, over HTTP, to either server's REST interface.

    It needs NumPy and the standard library only. Arguments and results of the
    methods are those of `Client`, the client over gRPC, with these
    differences: the `code` of a `ServingError` is an `http.HTTPStatus`, and a
    `Prediction` names its version only where a number was asked for.

    Args:
        target: The server's address, such as `http://127.0.0.1:8501` or
            `https://db1:8501/prefix`; `http://` may be left out.
        timeout: Seconds that each request may take, its repetitions included,
            by default 5. Many texts are sent as several requests, of 512
            texts or pairs, half a megabyte or 262,144 hits each.
        max_message_mb: Size of the largest reply, in MiB, by default 64.
        credentials: Settings of TLS for an address with https, such as from
            `tls_context`; by default the system's authorities.
        token: Token that each request has, as the server's `--token_file`
            wants it.

    Raises:
        InputError: The address is no URL, a number is out of range, or a
            token would be sent to another machine without encryption.

    A request is repeated, up to four times and within `timeout`, if the server
    cannot be reached, is not available (503) or too busy (429). Connections
    are kept open and used again; `$http_proxy` is not used.

    Example:
        >>> with HttpClient("http://127.0.0.1:8501") as client:
        ...     client.search(["angle bracket"], k=2)
        [[Hit(id='steel angle', score=0.91), Hit(id='bracket', score=0.87)]]
    """

    def __init__(
        self,
        target: str,
        timeout: float = 5.0,
        max_message_mb: int = 64,
        credentials: ssl.SSLContext | None = None,
        token: str | None = None,
    ) -> None:
        self._connection = HttpConnection(
            target, timeout, max_message_mb, credentials, token
        )
        self._calls: HttpCalls = HttpCalls()
        self.target = target
        self.timeout = timeout

    def signatures(
        self, model: str, version: Version = None
    ) -> dict[str, Signature]:
        """Returns the inputs and outputs of a model, by signature name."""
        return self._run(self._calls.signatures(model, version))

    def close(self) -> None:
        """Closes the connections; leaving the `with` block does, too."""
        self._connection.close()

    def _run(self, calls: Calls[Answer]) -> Answer:
        try:
            request = next(calls)
            while True:
                try:
                    reply = self._connection.send(request)
                except ServingError as error:
                    request = calls.throw(error)
                else:
                    request = calls.send(reply)
        except StopIteration as end:
            return end.value
