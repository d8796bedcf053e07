"""The ASGI application of the HTTP server: REST, metrics and health."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from concurrent.futures import Executor
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from keras_lstm_dssm.serving.http.rest_api import Reply, RestApi
from keras_lstm_dssm.serving.server.model_registry import ModelRegistry
from keras_lstm_dssm.serving.server.request_metrics import (
    CONTENT_TYPE,
    RequestMetrics,
)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

METRICS_PATH = "/monitoring/prometheus/metrics"
REST_PREFIX = "/v1/"

_AT_ONCE_BYTES = 512
_AT_ONCE_SECONDS = 0.002

HEALTH_PATHS = ("/livez", "/readyz")
"""Paths that tell whether the server runs, and whether it can answer."""


class RestEndpoint:
    """Passes REST requests to threads; an ASGI application.

    It does without Starlette's request and response objects, which would take
    a fifth of the time of a small request. A client that is alone and asks
    one short query after another is answered in the thread of the event loop:
    the way to another thread and back takes as long as the model. A request
    is answered there if it is short, no other is running, and the last one
    came from the same connection and was answered quickly.

    Args:
        api: What answers the requests.
        threads: The threads in which models run.
    """

    def __init__(self, api: RestApi, threads: Executor) -> None:
        self._api, self._threads = api, threads
        self._running = 0
        self._last_client: object = None
        self._last_seconds = math.inf

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
            scope.get("client"),
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

    async def _answer(
        self, client: object, method: str, path: str, body: bytes
    ) -> Reply:
        at_once = (
            self._running == 0
            and client == self._last_client
            and self._last_seconds < _AT_ONCE_SECONDS
            and len(body) < _AT_ONCE_BYTES
        )
        self._last_client = client
        self._running += 1
        start = time.perf_counter()
        try:
            if at_once:
                return self._api.answer(method, path, body)
            return await asyncio.get_running_loop().run_in_executor(
                self._threads, self._api.answer, method, path, body
            )
        finally:
            self._running -= 1
            self._last_seconds = time.perf_counter() - start


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
        missing = [name for name in models.names() if not models.versions(name)]
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
