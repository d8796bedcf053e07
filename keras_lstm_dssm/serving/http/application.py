"""The ASGI application of the HTTP server: REST, metrics and health."""

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from keras_lstm_dssm.serving.doors.asgi_guards import (
    App,
    Receive,
    Scope,
    Send,
)
from keras_lstm_dssm.serving.http.rest_endpoint import RestEndpoint
from keras_lstm_dssm.serving.server.model_registry import ModelRegistry
from keras_lstm_dssm.serving.server.request_metrics import (
    CONTENT_TYPE,
    RequestMetrics,
)

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
