"""The HTTP server: time limits of connections, checks of requests, routes.

`Connection` limits the time that a client may take to send a request or to
read a reply. `Guard` checks host, token and size of each request before REST
or one of the other routes answers. `HttpServer` starts and stops listening.
"""

import asyncio
import math
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from email.utils import formatdate
from functools import partial
from http import HTTPStatus
from typing import Any

import h11
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.serving.limits import QUICK_BYTES, RequestSlots, overdue
from keras_lstm_dssm.serving.metrics import CONTENT_TYPE, RequestMetrics
from keras_lstm_dssm.serving.model_registry import ModelRegistry
from keras_lstm_dssm.serving.protocols import error_body
from keras_lstm_dssm.serving.rest_api import HTTP_CODES, RestApi
from keras_lstm_dssm.serving.security import NO_TOKEN, Security, ServerTLS
from keras_lstm_dssm.serving.servable import StatusError

Headers = Sequence[tuple[bytes, bytes]]

REQUEST_SECONDS = 30.0
"""Time limit for a request to arrive, not extended by parts of the request."""

REPLY_SECONDS = 30.0
"""Time limit for a client to read a reply."""

KEEP_ALIVE_SECONDS = 75
"""Time after which a connection without a request is closed."""

HANDSHAKE_SECONDS = 30.0
"""Time limit for the handshake of TLS."""

DRAIN_SECONDS = 5.0
"""Time for which the rest of a refused request is read and discarded."""

INCOMPLETE_BODIES = 16
"""Limit on the total size of incomplete bodies, in bodies of maximum size."""

METRICS_PATH = "/monitoring/prometheus/metrics"
REST_PREFIXES = ("/v1/", "/v2/rerank")

HEALTH_PATHS = ("/livez", "/readyz")
"""Health checks, without a token: the process runs; all models are served."""

_NO_SNIFF = (b"x-content-type-options", b"nosniff")


class Connection(H11Protocol):
    """A connection of uvicorn that waits for its client for a limited time.

    `update`, called a few times a second, records since when it waits for the
    rest of a request, or for the client to read; see `limits.Waiting`.
    """

    since = 0.0
    seconds = math.inf
    _state: object = None

    @property
    def peer(self) -> str:
        """The client's address, without its port."""
        return self.client[0] if self.client else ""

    def connection_made(self, transport: Any) -> None:
        """Adds the connection to the scope of requests; asyncio calls it."""
        super().connection_made(transport)
        self.app_state = {"connection": self}

    def update(self, now: float) -> None:
        """Records whether the connection waits for its client, and for what."""
        seconds = math.inf
        if self.transport.get_write_buffer_size():
            seconds = REPLY_SECONDS
        elif (
            self.conn.their_state in (h11.IDLE, h11.SEND_BODY)
            and self.timeout_keep_alive_task is None
        ):
            seconds = REQUEST_SECONDS
        # Each request has its own cycle.
        if self._state != (seconds, self.cycle):
            self._state = (seconds, self.cycle)
            self.since, self.seconds = now, seconds

    def end(self) -> None:
        """Closes the connection, if possible with the reason."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        elif self.conn.their_state is h11.SEND_BODY:
            self.send_error(
                408,
                f"the request did not arrive within {REQUEST_SECONDS:g} "
                "seconds",
            )
        else:
            self.transport.close()

    def send_error(self, status: int, message: str) -> None:
        """Sends an error unless a reply has begun, and closes."""
        if self.cycle is None or not self.cycle.response_started:
            body = error_body("", status, message)
            self.transport.write(
                f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
                "content-type: application/json\r\n"
                f"content-length: {len(body)}\r\n"
                "x-content-type-options: nosniff\r\n"
                "connection: close\r\n\r\n".encode()
                + body
            )
        self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Refuses bytes that are no HTTP; uvicorn calls it."""
        if self.cycle is not None and self.cycle.response_complete:
            self.cycle = None  # type: ignore[assignment]
        self.send_error(400, msg)

    def on_response_complete(self) -> None:
        """Closes if there is another request already; uvicorn calls it.

        Replies to pipelined requests would add up if nobody read them.
        """
        if self.conn.trailing_data[0]:
            self.transport.close()
        super().on_response_complete()

    def timeout_keep_alive_handler(self) -> None:
        """Closes after `KEEP_ALIVE_SECONDS`; uvicorn calls it."""
        self.transport.close()

    def shutdown(self) -> None:
        """Closes, once a request that is computed has been answered."""
        cycle = self.cycle
        if cycle is None or cycle.response_complete or cycle.more_body:
            self.transport.close()
        else:
            cycle.keep_alive = False


class _RefusedError(Exception):
    """Raised within `Guard` for a request that fails a check."""

    def __init__(
        self, status: int, message: str, headers: Headers = ()
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, headers


class Guard:
    """The ASGI application that checks and reads each request.

    The checks are, in this order, `Host`, the framing of the body, the token,
    and the size of the body. REST is answered without Starlette, whose objects
    would take a fifth of the time of a small request.
    """

    def __init__(
        self,
        rest: RestApi,
        slots: RequestSlots,
        pages: ASGIApp,
        security: Security,
        host: str,
        max_bytes: int,
    ) -> None:
        self._rest, self._slots, self._pages = rest, slots, pages
        self._security, self._host = security, host
        self._max_bytes = max_bytes
        # The sizes of incomplete bodies, the oldest first.
        self._bodies: dict[Connection, int] = {}

    async def __call__(
        self, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Answers one request, unless the client goes before."""
        try:
            self._check_head(scope)
            body = await self._body(scope, receive)
        except _RefusedError as error:
            body = error_body(scope["path"], error.status, error.message)
            await _refuse(receive, send, error, body)
            return
        if body is None:
            return
        try:
            if scope["path"].startswith(REST_PREFIXES):
                await self._answer(scope, body, send)
            else:
                await self._pass_on(scope, body, receive, send)
        except asyncio.CancelledError:  # at the end of the grace
            with suppress(RuntimeError):  # the reply has begun
                stops = error_body(scope["path"], 503, "the server stops")
                await _send(send, 503, stops)

    async def _pass_on(
        self, scope: Scope, body: bytes, receive: Receive, send: Send
    ) -> None:
        whole = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return whole.pop() if whole else await receive()

        await self._pages(scope, replay, send)

    def _check_head(self, scope: Scope) -> None:
        headers = scope["headers"]
        hosts = [value for key, value in headers if key == b"host"]
        if not all(self._security.allows_host(self._host, h) for h in hosts):
            raise _RefusedError(
                400, "the header Host names another machine than this one"
            )
        names = [key for key, _ in headers]
        if b"content-length" in names and b"transfer-encoding" in names:
            # Two servers could see two different ends of the request.
            raise _RefusedError(
                400, "both content-length and transfer-encoding"
            )
        tokens = self._security.tokens
        if tokens is None or scope["path"] in HEALTH_PATHS:
            return
        values = [value for key, value in headers if key == b"authorization"]
        # Of several headers none is taken.
        if len(values) != 1 or not tokens.allows(values[0]):
            raise _RefusedError(
                401,
                NO_TOKEN,
                [
                    (b"www-authenticate", b"Bearer"),
                    # A browser asks for a name and a password.
                    (b"www-authenticate", b'Basic realm="token"'),
                ],
            )

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        """Returns the body; None if the client goes before."""
        connection = scope["state"]["connection"]
        stated = [v for k, v in scope["headers"] if k == b"content-length"]
        too_large = _RefusedError(
            413, f"the request is larger than {self._max_bytes:,} bytes"
        )
        if stated and int(stated[0]) > self._max_bytes:
            raise too_large
        parts: list[bytes] = []
        size, more = 0, True
        self._bodies[connection] = 0
        try:
            while more:
                message = await receive()
                if message["type"] != "http.request":
                    return None
                parts.append(message["body"])
                size += len(parts[-1])
                if size > self._max_bytes:
                    raise too_large
                more = message["more_body"]
                if more:
                    self._bodies[connection] = size
                    self._make_room()
        finally:
            self._bodies.pop(connection, None)
        return b"".join(parts)

    def _make_room(self) -> None:
        """Closes the oldest connection if incomplete bodies are too large."""
        limit = INCOMPLETE_BODIES * self._max_bytes
        if sum(self._bodies.values()) > limit:
            oldest = next(iter(self._bodies))
            del self._bodies[oldest]
            oldest.transport.abort()

    async def _answer(self, scope: Scope, body: bytes, send: Send) -> None:
        method = scope["method"]
        path = scope["raw_path"].decode("ascii", errors="replace")
        key = None
        if len(body) <= QUICK_BYTES:
            key = self._rest.known(method, path)
        headers: Headers = ()
        try:
            status, reply = await self._slots.run(
                key, partial(self._rest.answer, method, path, body)
            )
        except StatusError as error:
            status = HTTP_CODES[error.code.name]
            reply = error_body(path, status, error.details)
            headers = [(b"retry-after", b"1")]
        await _send(send, status, reply, headers)


async def _send(
    send: Send,
    status: int,
    body: bytes,
    headers: Headers = (),
    more: bool = False,
) -> None:
    """Sends JSON, and ends the reply unless `more` of the body follows."""
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [
                (b"content-type", b"application/json"),
                (b"content-length", str(len(body)).encode()),
                *headers,
            ],
        }
    )
    await send({"type": "http.response.body", "body": body, "more_body": more})


async def _refuse(
    receive: Receive, send: Send, error: _RefusedError, body: bytes
) -> None:
    """Sends an error before the body of a request is read.

    A connection that is closed while its client still sends is reset, and many
    clients then never read the answer. So the body is read and thrown away, for
    `DRAIN_SECONDS` at most.
    """
    headers = [(b"connection", b"close"), *error.headers]
    await _send(send, error.status, body, headers, more=True)
    with suppress(asyncio.TimeoutError):  # in 3.10 not the builtin
        await asyncio.wait_for(_drain(receive), DRAIN_SECONDS)
    await send({"type": "http.response.body"})


async def _drain(receive: Receive) -> None:
    while (await receive()).get("more_body", False):
        pass


def new_pages(
    models: ModelRegistry,
    metrics: RequestMetrics,
    routes: Sequence[BaseRoute] = (),
) -> ASGIApp:
    """Returns the application that answers all paths outside of REST.

    `/livez` answers 200 while the process runs; `/readyz` answers 200 when
    each model has a version that is served, otherwise 503. `METRICS_PATH` shows
    the metrics. Further routes are those of the page.
    """

    async def live(_: Request) -> Response:
        return JSONResponse({"status": "alive"})

    async def ready(_: Request) -> Response:
        missing = models.unavailable()
        if missing:
            error = f"no version is served of {', '.join(missing)}"
            return JSONResponse({"error": error}, 503)
        return JSONResponse({"status": "ready"})

    async def measured(_: Request) -> Response:
        return Response(metrics.text(), headers={"content-type": CONTENT_TYPE})

    async def failed(_: Request, error: Exception) -> Response:
        if isinstance(error, StatusError):
            status, headers = HTTP_CODES[error.code.name], {"retry-after": "1"}
            return JSONResponse({"error": error.details}, status, headers)
        assert isinstance(error, HTTPException)
        return JSONResponse(
            {"error": error.detail}, error.status_code, error.headers
        )

    application = Starlette(
        routes=[
            Route("/livez", live),
            Route("/readyz", ready),
            Route(METRICS_PATH, measured),
            *routes,
        ],
        exception_handlers={HTTPException: failed, StatusError: failed},
    )
    application.router.redirect_slashes = False
    return application


class HttpServer:
    """Runs an ASGI application on a port, in a running event loop.

    Port 0 takes a free one; `port` and `address` then say which.
    """

    def __init__(
        self,
        application: ASGIApp,
        port: int = 8501,
        host: str = "127.0.0.1",
        tls: ServerTLS | None = None,
    ) -> None:
        host = host.removeprefix("[").removesuffix("]")
        self._ssl = tls.ssl_context() if tls else None
        self._socket = listening_socket(host, port)
        self.port = self._socket.getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        scheme = "https" if tls else "http"
        self.address = f"{scheme}://{shown}:{self.port}"
        self._config = uvicorn.Config(
            application,
            http=Connection,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="error",  # not a line for each malformed request
            access_log=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
        )
        self._state = ServerState()

    async def start(self) -> None:
        """Listens from now on."""
        self._config.load()
        self.tick()
        self._server = await asyncio.get_running_loop().create_server(
            lambda: Connection(self._config, self._state, {}),
            sock=self._socket,
            backlog=2048,
            ssl=self._ssl,
            ssl_handshake_timeout=HANDSHAKE_SECONDS if self._ssl else None,
        )

    def tick(self) -> None:
        """Closes the connections that have waited too long for clients.

        The server calls it a few times a second.
        """
        date = formatdate(time.time(), usegmt=True).encode()
        self._state.default_headers = [(b"date", date), _NO_SNIFF]
        now = asyncio.get_running_loop().time()
        connections: list[Any] = list(self._state.connections)
        for connection in connections:
            connection.update(now)
        waiting = [each for each in connections if each.seconds < math.inf]
        for connection in overdue(waiting, now):
            connection.end()

    async def stop(self, seconds: float) -> None:
        """Stops listening, and closes when the requests are answered.

        After a number of seconds the other connections are aborted.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        self._server.close()
        for connection in list(self._state.connections):
            connection.shutdown()
        while self._state.connections and loop.time() < end:
            await asyncio.sleep(0.01)
        for task in list(self._state.tasks):
            task.cancel()
        for connection in list(self._state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)


def listening_socket(host: str, port: int) -> socket.socket:
    """Listens on a port, 0 for a free one, without Nagle's algorithm.

    asyncio switches that off only where the protocol is named; with it, a
    reply would wait 40 ms for an acknowledgement.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(2048)
    except OSError as error:
        listening.close()
        raise InputError(
            f"cannot listen on {host}:{port}: {error.strerror}; give another "
            "HTTP port, or 0 for a free one"
        ) from error
    return listening
