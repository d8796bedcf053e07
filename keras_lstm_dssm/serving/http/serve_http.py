"""Puts the HTTP server of a `PredictionServer` together."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

from keras_lstm_dssm.errors import import_optional
from keras_lstm_dssm.export.documents import read_documents
from keras_lstm_dssm.serving.doors import (
    ServerTLS,
    TokenFile,
    check_exposure,
)
from keras_lstm_dssm.serving.doors.asgi_guards import guarded
from keras_lstm_dssm.serving.http.click_writer import ClickWriter
from keras_lstm_dssm.serving.http.rest_api import RestApi
from keras_lstm_dssm.serving.http.search_page import SearchPage
from keras_lstm_dssm.serving.server import PredictionServer
from keras_lstm_dssm.settings.choices import MAX_REQUESTS


@contextmanager
def served_over_http(
    server: PredictionServer,
    port: int = 8501,
    host: str = "127.0.0.1",
    threads: int = 8,
    max_requests: int = MAX_REQUESTS,
    grace_seconds: float = 10.0,
    tls: ServerTLS | None = None,
    tokens: TokenFile | None = None,
    insecure: bool = False,
    titles: str | os.PathLike[str] | None = None,
    click_log: str | os.PathLike[str] | None = None,
) -> Iterator[str]:
    """Serves the models of a gRPC server over HTTP, too, with the page.

    Args:
        server: The server, whose models, bounds and metrics are used.
        port: The port, by default 8501; 0 takes a free one.
        host: The address to listen on.
        threads: Number of requests computed at the same time.
        max_requests: Maximum number of requests that are computed or wait.
        grace_seconds: Seconds that running requests may take at the end.
        tls: The server's certificate; by default connections are not
            encrypted.
        tokens: The tokens of which each request must have one.
        insecure: Whether to listen to other machines even without `tls` and
            either `tokens` or certificates of clients.
        titles: File of titles that the page shows for ids, `id TAB title` a
            line, as `lstm-dssm-export --documents` reads it.
        click_log: File to which results followed on the page are appended.

    Yields:
        The URL of the server.

    Raises:
        InputError: The extra `http` is not installed, the port is taken, a
            file cannot be read or written, or others can reach `host` without
            protection, see `check_exposure`.

    Example:
        >>> with PredictionServer("MODELS", metrics=True) as server:
        ...     with served_over_http(server, port=0) as url:
        ...         urllib.request.urlopen(f"{url}/v1/models/retriever")
    """
    for module in ("prometheus_client", "starlette", "uvicorn"):
        import_optional(module, "http")
    from keras_lstm_dssm.serving.http.application import (
        HEALTH_PATHS,
        new_application,
    )
    from keras_lstm_dssm.serving.http.http_server import HttpServer
    from keras_lstm_dssm.serving.http.page_routes import page_routes
    from keras_lstm_dssm.serving.http.rest_endpoint import RestEndpoint

    check_exposure(
        host,
        tls is not None,
        tokens is not None or bool(tls and tls.client_ca),
        insecure,
    )
    shown = None
    if titles is not None:
        documents = read_documents(titles)
        shown = dict(zip(documents.ids, documents.titles, strict=True))
    with ExitStack() as stack:
        clicks = None
        if click_log is not None:
            clicks = stack.enter_context(ClickWriter(click_log))
        pool = stack.enter_context(ThreadPoolExecutor(threads))
        page = SearchPage(server.models, server.bounds, shown, clicks)
        rest = RestApi(server.models, server.bounds, server.metrics)
        application = guarded(
            new_application(
                server.models,
                RestEndpoint(rest, pool),
                server.metrics,
                page_routes(page, pool),
            ),
            tokens,
            max_requests,
            server.bounds.max_message_mb << 20,
            HEALTH_PATHS,
        )
        running = HttpServer(
            application,
            port,
            host,
            grace_seconds,
            tls.uvicorn_options() if tls else None,
        )
        with running:
            yield running.address
