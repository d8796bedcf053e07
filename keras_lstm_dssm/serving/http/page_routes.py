"""The page's files and its requests, as routes of the HTTP server."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from importlib.resources import files
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from keras_lstm_dssm.serving.http.click_tokens import TokenError
from keras_lstm_dssm.serving.http.json_request import JsonError, parse_object
from keras_lstm_dssm.serving.http.rest_api import HTTP_CODES
from keras_lstm_dssm.serving.http.search_page import SearchPage
from keras_lstm_dssm.serving.server.signature_call import StatusError

_LOG = logging.getLogger(__name__)

_FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/page/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page/icon.svg": ("icon.svg", "image/svg+xml"),
}
"""Path -> name of the file in the folder `page`, and its type."""

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; "
        "img-src 'self'; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""Headers of all replies: nothing is loaded from, or sent to, other hosts."""


def page_routes(page: SearchPage, threads: Executor) -> list[BaseRoute]:
    """Returns the routes of the page.

    `GET /` and the files that it names; `GET /page/models`, `POST
    /page/search` and `POST /page/click`, which answer with JSON.

    Args:
        page: What answers the requests.
        threads: The threads in which models run.
    """

    async def run(call: Callable[[], Any]) -> Response:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(threads, _reply, call)

    async def models(_: Request) -> Response:
        return await run(page.models)

    async def search(request: Request) -> Response:
        return await posted(request, page.search)

    async def click(request: Request) -> Response:
        return await posted(request, lambda sent: {"written": page.click(sent)})

    async def posted(
        request: Request, method: Callable[[Mapping[str, Any]], Any]
    ) -> Response:
        # Other sites cannot send this type without asking the server first.
        kind = request.headers.get("content-type", "").partition(";")[0]
        if kind.strip().lower() != "application/json":
            return _error(415, "expected the content-type application/json")
        body = await request.body()
        return await run(lambda: method(parse_object(body)))

    return [
        *(_file_route(path, *file) for path, file in _FILES.items()),
        Route("/page/models", models),
        Route("/page/search", search, methods=["POST"]),
        Route("/page/click", click, methods=["POST"]),
    ]


def _file_route(path: str, name: str, kind: str) -> Route:
    contents = files(__package__).joinpath("page", name).read_bytes()

    async def send(_: Request) -> Response:
        return Response(contents, headers={**HEADERS, "content-type": kind})

    return Route(path, send)


def _reply(call: Callable[[], Any]) -> Response:
    try:
        return JSONResponse(call(), headers=HEADERS)
    except (JsonError, TokenError) as error:
        return _error(400, str(error))
    except StatusError as error:
        return _error(HTTP_CODES[error.code.name], error.details)
    except OSError as error:
        _LOG.error("clicks cannot be written: %s", error)
        return _error(507, "the click could not be written")


def _error(status: int, message: str) -> Response:
    return JSONResponse({"error": message}, status, HEADERS)
