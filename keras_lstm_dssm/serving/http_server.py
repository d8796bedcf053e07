"""The HTTP server: time limits of connections, checks of requests, routes.

`Connection` limits the time for the head of a request and for the reply.
`Guard` checks host, token and size of each request, and limits the time for the
body. `HttpServer` runs both.
"""

import asyncio
import socket
import zlib
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import grpc
import h11
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.serving.limits import QUICK_BYTES, Arrivals, RequestSlots
from keras_lstm_dssm.serving.metrics import CONTENT_TYPE, RequestMetrics
from keras_lstm_dssm.serving.model_registry import ModelRegistry
from keras_lstm_dssm.serving.protocols import error_body
from keras_lstm_dssm.serving.rest_api import HTTP_CODES, Reply, RestApi
from keras_lstm_dssm.serving.security import NO_TOKEN, Security, ServerTLS
from keras_lstm_dssm.serving.servable import StatusError

REQUEST_SECONDS = 30.0
"""Time limit in seconds for the head of a request to arrive. Then the body has
the same time to arrive."""

REPLY_SECONDS = 30.0
"""A connection is closed if a part of a reply must wait for this many seconds
because the client does not read."""

KEEP_ALIVE_SECONDS = 75
"""Seconds after a reply until an idle connection is closed."""

MAX_BODIES = 1000
"""Maximum number of request bodies that arrive at the same time."""

INCOMPLETE_BODIES = 16
"""Maximum total size of all request bodies that are still arriving, as a
multiple of the maximum size of one body."""

METRICS_PATH = "/monitoring/prometheus/metrics"
REST_PREFIXES = ("/v1/", "/v2/embed", "/v2/rerank")

_TOO_LARGE = "the request is larger than {:,} bytes"

HEALTH_PATHS = ("/livez", "/readyz")
"""Paths of health checks, answered in `new_pages`. They need no token."""

# Values of the header www-authenticate, sent if a request has no valid token.
# `Basic` makes browsers ask for a name and a password.
_SCHEMES = ("Bearer", 'Basic realm="token"')


class Connection(H11Protocol):
    """A connection of uvicorn with time limits for heads and replies."""

    _head_timer: asyncio.TimerHandle | None = None
    _reply_timer: asyncio.TimerHandle | None = None
    is_busy = False

    def connection_made(self, transport: Any) -> None:
        """Starts the timer of the first request's head; called by asyncio.

        Adds the connection to the scope of its requests, for `Guard`.
        """
        super().connection_made(transport)
        self.app_state = {"connection": self}
        # With this limit of one byte, asyncio calls `pause_writing` as soon as
        # a part of a reply must wait for the client.
        transport.set_write_buffer_limits(high=1)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancels the timers; called by asyncio."""
        super().connection_lost(exc)
        self.resume_writing()
        self.begin()

    def data_received(self, data: bytes) -> None:
        """Starts the timer when a head begins to arrive; called by asyncio."""
        if not self.is_busy and self._head_timer is None:
            self._await_head()
        try:
            super().data_received(data)
        except h11.LocalProtocolError:
            # If the rest of a refused body is malformed, uvicorn begins a
            # second reply, which h11 rejects (`test_no_http_after_a_refusal`).
            self.transport.abort()

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(
            REQUEST_SECONDS, self.transport.close
        )

    def begin(self) -> None:
        """Marks the connection as busy: the head of a request has arrived."""
        self.is_busy = True
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def pause_writing(self) -> None:
        """Starts the timer of a reply; called by asyncio."""
        super().pause_writing()
        self._reply_timer = self.loop.call_later(
            REPLY_SECONDS, self.transport.abort
        )

    def resume_writing(self) -> None:
        """Stops the timer of a reply; called by asyncio."""
        super().resume_writing()
        if self._reply_timer is not None:
            self._reply_timer.cancel()


class Guard:
    """The ASGI application that checks, reads and answers each request."""

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
        self._max_total_bytes = INCOMPLETE_BODIES * max_bytes
        self._arrivals = Arrivals(REQUEST_SECONDS, MAX_BODIES)

    def stop(self) -> None:
        """Refuses requests that have not arrived completely."""
        self._arrivals.stop()

    async def __call__(
        self, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Answers a request, unless the client disconnects."""
        connection = scope["state"]["connection"]
        connection.begin()
        try:
            await self._handle(scope, receive, send)
        except asyncio.CancelledError:
            # uvicorn cancels requests that still run after `grace_seconds`.
            with suppress(RuntimeError):  # raised if the reply has begun
                reply = _error(scope, 503, "the server stops")
                await reply(scope, receive, send)
        finally:
            connection.is_busy = False

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self._check_head(scope)
            body = await self._body(scope, receive)
        except HTTPException as error:  # uvicorn discards the rest of the body
            reply = _error(scope, error.status_code, error.detail)
            reply.headers.update(error.headers or {})
            for scheme in _SCHEMES if error.status_code == 401 else ():
                reply.headers.append("www-authenticate", scheme)
        except StatusError as error:  # the body did not arrive completely
            is_late = error.code is grpc.StatusCode.DEADLINE_EXCEEDED
            status = 408 if is_late else HTTP_CODES[error.code.name]
            reply = _error(scope, status, error.details)
            reply.headers["connection"] = "close"
        else:
            if body is None:
                return
            # REST requests avoid Starlette, which would take a fifth of a small
            # request's time.
            if not scope["path"].startswith(REST_PREFIXES):
                await self._send_page(scope, body, receive, send)
                return
            reply = await self._answer(scope, body)
        await reply(scope, receive, send)

    async def _send_page(
        self, scope: Scope, body: bytes, receive: Receive, send: Send
    ) -> None:
        bodies = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive_again() -> Message:
            return bodies.pop() if bodies else await receive()

        await self._pages(scope, receive_again, send)

    def _check_head(self, scope: Scope) -> None:
        headers = scope["headers"]
        hosts = [value for key, value in headers if key == b"host"]
        if not all(self._security.allows_host(self._host, h) for h in hosts):
            raise HTTPException(
                400,
                "the header Host has the name of another machine: let the "
                "proxy send Host: localhost, or give the server --token_file",
            )
        names = [key for key, _ in headers]
        if b"content-length" in names and b"transfer-encoding" in names:
            # A proxy and this server could see different ends of the request.
            raise HTTPException(
                400,
                "found content-length and transfer-encoding: send only one",
                {"connection": "close"},
            )
        tokens = [value for key, value in headers if key == b"authorization"]
        is_health = scope["path"] in HEALTH_PATHS
        if not is_health and not self._security.admits(tokens):
            raise HTTPException(401, NO_TOKEN)

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        """Returns the body; None if the client disconnects."""
        lengths = [v for k, v in scope["headers"] if k == b"content-length"]
        too_large = HTTPException(413, _TOO_LARGE.format(self._max_bytes))
        if lengths and int(lengths[0]) > self._max_bytes:
            raise too_large
        parts: list[bytes] = []
        size, more = 0, True
        with self._arrivals.limit():
            while more:
                message = await receive()
                if message["type"] != "http.request":
                    return None
                parts.append(message["body"])
                size += len(parts[-1])
                if size > self._max_bytes:
                    raise too_large
                more = message["more_body"]
                total = self._arrivals.arrived(size)
                if more and total > self._max_total_bytes:
                    self._arrivals.end_oldest()
        return b"".join(parts)

    async def _answer(self, scope: Scope, body: bytes) -> Response:
        method = scope["method"]
        path = scope["raw_path"].decode("ascii", errors="replace")
        codings = [v for k, v in scope["headers"] if k == b"content-encoding"]
        key = None
        if len(body) <= QUICK_BYTES and not codings:
            key = self._rest.known(method, path)

        def answer() -> Reply:
            content = unpacked(body, b",".join(codings), self._max_bytes)
            return self._rest.answer(method, path, content)

        try:
            reply = await self._slots.run(key, answer)
        except (HTTPException, StatusError) as error:
            return _error_reply(scope, error)
        headers = {"model-version": reply.version} if reply.version else None
        return Response(
            reply.body, reply.status, headers, media_type="application/json"
        )


def unpacked(body: bytes, coding: bytes, max_bytes: int) -> bytes:
    """Decompresses a body; raises `HTTPException` 400, 413 or 415."""
    if coding.lower() in (b"", b"identity"):
        return body
    if coding.lower() not in (b"gzip", b"x-gzip", b"deflate"):
        raise HTTPException(
            415,
            f"the Content-Encoding is {coding.decode('latin-1'):.99}: expected "
            "gzip, deflate or none",
        )
    unpack = zlib.decompressobj(zlib.MAX_WBITS | 32)  # 32: detects the format
    try:
        data = unpack.decompress(body, max_bytes + 1)
    except zlib.error as error:
        raise HTTPException(
            400, f"the body cannot be unpacked: {error}"
        ) from error
    if len(data) > max_bytes:
        raise HTTPException(413, _TOO_LARGE.format(max_bytes))
    if not unpack.eof or unpack.unused_data:
        raise HTTPException(
            400,
            "the body cannot be unpacked: the compressed data is incomplete, "
            "or other data follows it",
        )
    return data


def _error(scope: Scope, status: int, message: str) -> Response:
    body = error_body(scope["path"], status, message)
    return Response(body, status, media_type="application/json")


def _error_reply(scope: Scope, error: Exception) -> Response:
    if isinstance(error, StatusError):
        reply = _error(scope, HTTP_CODES[error.code.name], error.details)
        reply.headers["retry-after"] = "1"
        return reply
    assert isinstance(error, HTTPException)
    reply = _error(scope, error.status_code, error.detail)
    reply.headers.update(error.headers or {})
    return reply


def new_pages(
    models: ModelRegistry,
    metrics: RequestMetrics,
    routes: Sequence[BaseRoute] = (),
) -> ASGIApp:
    """Returns the application for health checks, metrics and `routes`."""

    async def live(_: Request) -> Response:
        return JSONResponse({"status": "alive"})

    async def ready(_: Request) -> Response:
        missing = models.unavailable()
        if missing:
            error = f"models without a served version: {', '.join(missing)}"
            return JSONResponse({"error": error}, 503)
        return JSONResponse({"status": "ready"})

    async def show_metrics(_: Request) -> Response:
        return Response(metrics.text(), headers={"content-type": CONTENT_TYPE})

    async def show_error(request: Request, error: Exception) -> Response:
        return _error_reply(request.scope, error)

    application = Starlette(
        routes=[
            Route("/livez", live),
            Route("/readyz", ready),
            Route(METRICS_PATH, show_metrics),
            *routes,
        ],
        exception_handlers={HTTPException: show_error, StatusError: show_error},
    )
    application.router.redirect_slashes = False
    return application


class HttpServer:
    """Runs a `Guard` on a port with uvicorn, in a running event loop."""

    def __init__(
        self,
        application: Guard,
        port: int = 8501,
        host: str = "127.0.0.1",
        tls: ServerTLS | None = None,
        grace_seconds: float = 10.0,
    ) -> None:
        host = host.removeprefix("[").removesuffix("]")
        self._application = application
        self._socket = listening_socket(host, port)
        self.port = self._socket.getsockname()[1]
        url_host = f"[{host}]" if ":" in host else host
        scheme = "https" if tls else "http"
        self.address = f"{scheme}://{url_host}:{self.port}"
        config = uvicorn.Config(
            application,
            http=Connection,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",  # logs no malformed requests
            access_log=False,
            proxy_headers=False,
            server_header=False,
            headers=[("x-content-type-options", "nosniff")],
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=grace_seconds,  # type: ignore[arg-type]
        )
        config.load()
        config.ssl = tls.ssl_context() if tls else None
        self._server = uvicorn.Server(config)

    async def start(self) -> None:
        """Starts to accept connections."""
        self._serving = asyncio.create_task(self._server.serve([self._socket]))
        while not self._server.started:
            await asyncio.sleep(0.01)

    async def stop(self) -> None:
        """Stops listening; waits up to `grace_seconds` for running requests."""
        self._server.should_exit = True
        self._application.stop()
        await self._serving
        for connection in list(self._server.server_state.connections):
            connection.transport.abort()

    def close(self) -> None:
        """Closes the port of a server that was not started."""
        self._socket.close()


def listening_socket(host: str, port: int) -> socket.socket:
    """Returns a socket that listens on a port; 0 takes a free port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Nagle's algorithm would delay small messages. asyncio turns the algorithm
    # off only if the socket has IPPROTO_TCP.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # macOS has no such option
            # Over TLS, `Connection.pause_writing` is not called, so TCP limits
            # how long a reply may wait for the client
            # (`test_a_reply_over_tls_that_nobody_reads`).
            listening.setsockopt(
                socket.IPPROTO_TCP,
                socket.TCP_USER_TIMEOUT,
                round(1000 * REPLY_SECONDS),
            )
        listening.bind((host, port))
        listening.listen(2048)
    except OSError as error:
        listening.close()
        raise InputError(
            f"cannot listen on {host}:{port}: {error.strerror}; give another "
            "HTTP port, or 0 for a free one"
        ) from error
    return listening
