"""Runs an ASGI application on a port, in a thread of this process.

Guards around an ASGI application: tokens, number and size of requests.
Passes REST requests to threads, or answers them at once where that is quick.
The ASGI application of the HTTP server: REST, metrics and health.
"""

import asyncio
import json
import socket
import threading
import time
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Mapping,
    MutableMapping,
    Sequence,
)
from concurrent.futures import Executor
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.serving.metrics import CONTENT_TYPE, RequestMetrics
from keras_lstm_dssm.serving.model_registry import ModelRegistry
from keras_lstm_dssm.serving.rest_api import Reply, RestApi
from keras_lstm_dssm.serving.security import NO_TOKEN, TokenFile

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

BODY_SECONDS = 30.0
"""Seconds in which a request has to arrive."""

DRAIN_SECONDS = 5.0
"""Seconds in which the rest of a refused request is read and thrown away."""


async def refuse(
    receive: Receive,
    send: Send,
    status: int,
    message: str,
    headers: Collection[tuple[bytes, bytes]] = (),
) -> None:
    """Sends an error in TF Serving's form, `{"error": message}`.

    A connection that is closed while its client still sends is reset, and
    many clients then never read the answer. So the rest of the request's body
    is read and thrown away, for `DRAIN_SECONDS` at most, before the connection
    is closed.

    Args:
        receive: The function that gives the parts of the request's body.
        send: The function that takes the answer.
        status: The status code of HTTP.
        message: One line.
        headers: Further headers.
    """
    body = json.dumps({"error": message}).encode()
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [
                (b"content-type", b"application/json"),
                (b"content-length", str(len(body)).encode()),
                (b"connection", b"close"),
                *headers,
            ],
        }
    )
    await send({"type": "http.response.body", "body": body, "more_body": True})
    try:
        await asyncio.wait_for(_drain(receive), DRAIN_SECONDS)
    except asyncio.TimeoutError:  # noqa: UP041 (not the same in 3.10)
        pass
    await send({"type": "http.response.body"})


async def _drain(receive: Receive) -> None:
    while (await receive()).get("more_body", False):
        pass


class TokenCheck:
    """Answers 401 to requests without a token.

    Args:
        app: The application.
        tokens: The tokens that are allowed.
        open_paths: Paths that need no token, such as those of health checks.

    Example:
        >>> TokenCheck(app, TokenFile("tokens.txt"), {"/healthz"})
    """

    def __init__(
        self, app: App, tokens: TokenFile, open_paths: Collection[str] = ()
    ) -> None:
        self._app, self._tokens = app, tokens
        self._open_paths = frozenset(open_paths)

    async def __call__(
        self, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Passes a request on, or refuses it before its body is read."""
        if scope["type"] != "lifespan" and not self._allows(scope):
            await refuse(
                receive,
                send,
                401,
                NO_TOKEN,
                [
                    (b"www-authenticate", b"Bearer"),
                    # A browser asks for a name and a password.
                    (b"www-authenticate", b'Basic realm="token"'),
                ],
            )
            return
        await self._app(scope, receive, send)

    def _allows(self, scope: Scope) -> bool:
        if scope["type"] != "http":
            return False
        if scope["path"] in self._open_paths:
            return True
        values = [v for k, v in scope["headers"] if k == b"authorization"]
        return len(values) == 1 and self._tokens.allows(values[0])


class RequestLimit:
    """Answers 429 to a request while as many as are allowed are running.

    Args:
        app: The application.
        max_requests: Maximum number of requests at the same time.
        open_paths: Paths that are always answered.

    Example:
        >>> RequestLimit(app, max_requests=128)
    """

    def __init__(
        self, app: App, max_requests: int, open_paths: Collection[str] = ()
    ) -> None:
        self._app, self._max_requests = app, max_requests
        self._open_paths = frozenset(open_paths)
        self._running = 0

    async def __call__(
        self, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Passes a request on, or refuses it at once."""
        if scope["type"] != "http" or scope["path"] in self._open_paths:
            await self._app(scope, receive, send)
            return
        if self._running >= self._max_requests:
            await refuse(
                receive,
                send,
                429,
                f"more than {self._max_requests} requests at the same time:"
                " try again later",
                [(b"retry-after", b"1")],
            )
            return
        self._running += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._running -= 1


class BodyLimit:
    """Reads the body of each request, of a bounded size, before the app does.

    It answers 413 to a larger body, and 408 to one that does not arrive in
    time, so that a slow client holds no thread.

    Args:
        app: The application.
        max_bytes: Maximum size of a body.
        seconds: Seconds in which the body has to arrive.

    Example:
        >>> BodyLimit(app, 16 << 20)
    """

    def __init__(
        self, app: App, max_bytes: int, seconds: float = BODY_SECONDS
    ) -> None:
        self._app, self._max_bytes = app, max_bytes
        self._seconds = seconds

    async def __call__(
        self, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Passes a request on with its body, or refuses it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            body = await self._body_in_time(scope, receive)
        except _TooLateError:
            await refuse(
                receive,
                send,
                408,
                f"the request did not arrive within {self._seconds:g} seconds",
            )
            return
        except _TooLargeError:
            await refuse(
                receive,
                send,
                413,
                f"the request is larger than {self._max_bytes:,} bytes",
            )
            return
        if body is None:  # the client has gone
            return
        whole: list[MutableMapping[str, Any]] = [
            {"type": "http.request", "body": body, "more_body": False}
        ]

        async def replay() -> MutableMapping[str, Any]:
            return whole.pop() if whole else await receive()

        await self._app(scope, replay, send)

    async def _body_in_time(
        self, scope: Scope, receive: Receive
    ) -> bytes | None:
        # `asyncio.wait_for` would start a task, which takes as long as all
        # guards together.
        task, late = asyncio.current_task(), []

        def cancel() -> None:
            late.append(True)
            if task is not None:
                task.cancel()

        timer = asyncio.get_running_loop().call_later(self._seconds, cancel)
        try:
            return await self._body(scope, receive)
        except asyncio.CancelledError:
            if not late:
                raise
            if task is not None and hasattr(task, "uncancel"):  # from 3.11 on
                task.uncancel()
            raise _TooLateError from None
        finally:
            timer.cancel()

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        for key, value in scope["headers"]:
            if key == b"content-length" and value.isdigit():
                if int(value) > self._max_bytes:
                    raise _TooLargeError
        parts, size = [], 0
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return None
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self._max_bytes:
                raise _TooLargeError
            if not message.get("more_body", False):
                return b"".join(parts)


class _TooLateError(Exception):
    """Raised inside when a body does not arrive in time."""


class _TooLargeError(Exception):
    """Raised inside when a body is above the limit."""


def guarded(
    app: App,
    tokens: TokenFile | None,
    max_requests: int,
    max_bytes: int,
    open_paths: Collection[str] = (),
) -> App:
    """Returns an application with all guards around it.

    Args:
        app: The application.
        tokens: The tokens that are allowed; None where none is needed.
        max_requests: See `RequestLimit`.
        max_bytes: See `BodyLimit`.
        open_paths: Paths that are always answered and need no token.
    """
    inner = RequestLimit(BodyLimit(app, max_bytes), max_requests, open_paths)
    return TokenCheck(inner, tokens, open_paths) if tokens else inner


QUICK_SECONDS = 0.002
"""Largest time of a path's last request with which the next one is quick."""

_QUICK_BYTES = 1024
_MAX_PATHS = 256


class RestEndpoint:
    """Answers requests below `/v1/`; an ASGI application.

    Models run in threads, so that a slow one keeps no other request waiting.
    A request runs in the thread of the event loop if no other one runs, its
    body is short, and the last one of its path was quick.

    It does without Starlette's request and response objects, which would take
    a fifth of the time of a small request.

    Args:
        api: What answers the requests.
        threads: The threads in which models run.
    """

    def __init__(self, api: RestApi, threads: Executor) -> None:
        self._api, self._threads = api, threads
        self._running = 0
        self._quick_paths: set[str] = set()

    async def __call__(
        self, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Answers one request, unless the client has gone."""
        parts = []
        more = True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                return
            parts.append(message.get("body", b""))
            more = message.get("more_body", False)
        path = scope.get("raw_path") or scope["path"].encode()
        reply = await self._answer(
            scope["method"],
            path.decode("ascii", errors="replace"),
            b"".join(parts),
        )
        await send(
            {
                "type": "http.response.start",
                "status": reply.status,
                "headers": [
                    (b"content-type", b"application/json"),
                    (b"content-length", str(len(reply.body)).encode()),
                ],
            }
        )
        await send({"type": "http.response.body", "body": reply.body})

    async def _answer(self, method: str, path: str, body: bytes) -> Reply:
        if (
            self._running == 0
            and path in self._quick_paths
            and len(body) <= _QUICK_BYTES
        ):
            return self._timed(method, path, body)
        self._running += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._threads, self._timed, method, path, body
            )
        finally:
            self._running -= 1

    def _timed(self, method: str, path: str, body: bytes) -> Reply:
        start = time.perf_counter()
        reply = self._api.answer(method, path, body)
        quick = time.perf_counter() - start <= QUICK_SECONDS
        if quick and reply.status == 200:
            # A path has many spellings; the set must not grow with them.
            if len(self._quick_paths) < _MAX_PATHS:
                self._quick_paths.add(path)
        else:
            self._quick_paths.discard(path)
        return reply


METRICS_PATH = "/monitoring/prometheus/metrics"
REST_PREFIX = "/v1/"

HEALTH_PATHS = ("/livez", "/readyz")
"""Paths that tell whether the server runs, and whether it can answer."""


def new_application(
    models: ModelRegistry,
    rest: RestEndpoint,
    metrics: RequestMetrics | None = None,
    routes: Sequence[BaseRoute] = (),
) -> App:
    """Returns the application.

    `/livez` answers 200 while the process runs; `/readyz` answers 200 when
    each model has a version that is served, otherwise 503.

    Args:
        models: The registry of the models that are served.
        rest: What answers below `/v1/`.
        metrics: The metrics that `METRICS_PATH` shows, if there are any.
        routes: Further routes, such as those of the page.
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
        text = b"" if metrics is None else metrics.text()
        return Response(text, headers={"content-type": CONTENT_TYPE})

    async def failed(_: Request, error: Exception) -> Response:
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
        exception_handlers={HTTPException: failed},
    )
    application.router.redirect_slashes = False

    async def rest_first(scope: Scope, receive: Receive, send: Send) -> None:
        # Starlette's routing takes a tenth of the time of a short query.
        if scope["type"] == "http" and scope["path"].startswith(REST_PREFIX):
            await rest(scope, receive, send)
        else:
            await application(scope, receive, send)

    return rest_first


HEADER_SECONDS = 30.0
"""Seconds in which the first request of a connection must begin."""

KEEP_ALIVE_SECONDS = 75
"""Seconds after which a connection without a request is closed."""

_START_SECONDS = 30.0


class _Connection(H11Protocol):
    """Closes connections on which no request arrives in time."""

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._waiting = self.loop.call_later(HEADER_SECONDS, self._close)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
        super().connection_lost(exc)

    def _close(self) -> None:
        if self.cycle is None:
            self.transport.close()


class HttpServer:
    """Serves an ASGI application over HTTP; a context manager.

    Args:
        application: The application, with guards around it if there are any.
        port: The port; 0 takes a free one.
        host: The address to listen on.
        grace_seconds: Seconds that running requests may take after the server
            stops; then they are cancelled.
        options: Further arguments of `uvicorn.Config`, such as `ssl_certfile`
            and `ssl_keyfile`.

    Attributes:
        port: The port that the server listens on.
        address: The URL of the server, such as `http://127.0.0.1:8501`.

    Raises:
        InputError: The port is taken, or the address is not this machine's.

    Example:
        >>> with HttpServer(application, port=0) as server:
        ...     urllib.request.urlopen(f"{server.address}/livez")
    """

    def __init__(
        self,
        application: Callable[..., Awaitable[None]],
        port: int = 8501,
        host: str = "127.0.0.1",
        grace_seconds: float = 10.0,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        host = host.removeprefix("[").removesuffix("]")
        self._socket = _listening(host, port)
        self.port = self._socket.getsockname()[1]
        config = uvicorn.Config(
            application,
            http=_Connection,
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            # 0 would wait without an end.
            timeout_graceful_shutdown=max(1, round(grace_seconds)),
            **(options or {}),
        )
        scheme = "https" if config.is_ssl else "http"
        shown = f"[{host}]" if ":" in host else host
        self.address = f"{scheme}://{shown}:{self.port}"
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), daemon=True
        )

    def __enter__(self) -> "HttpServer":
        self._thread.start()
        end = time.monotonic() + _START_SECONDS
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > end:
                raise InputError(
                    f"{self.address}: the HTTP server did not start"
                )
            time.sleep(0.005)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()


def _listening(host: str, port: int) -> socket.socket:
    # asyncio switches Nagle's algorithm off only where the protocol is named;
    # with it, a reply would wait 40 ms for an acknowledgement.
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
