"""HttpConnection: sends requests to one server, and keeps connections open."""

import http.client
import json
import os
import random
import socket
import ssl
import threading
import time
from contextlib import suppress
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from lstm_dssm_client.connection_options import (
    check_certificate_and_key,
    checked_timeout,
    message_bytes,
    token_headers,
)
from lstm_dssm_client.errors import InputError, ServingError, no_answer
from lstm_dssm_client.http_calls import HttpRequest

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
