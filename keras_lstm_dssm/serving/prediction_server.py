"""Runs the local server: gRPC services on a port, and polling of the disk.

Puts the HTTP server of a `PredictionServer` together.
"""

import logging
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import grpc
from grpc_health.v1.health import OVERALL_HEALTH, HealthServicer
from grpc_health.v1.health_pb2 import DESCRIPTOR as HEALTH_FILE
from grpc_health.v1.health_pb2 import HealthCheckResponse
from tensorflow_serving.apis import model_service_pb2, prediction_service_pb2

from keras_lstm_dssm.errors import InputError, import_optional
from keras_lstm_dssm.export.bulk.documents import read_documents
from keras_lstm_dssm.serving.clicks import ClickWriter
from keras_lstm_dssm.serving.grpc_services import (
    ModelService,
    PredictionService,
    TokenInterceptor,
    service_handlers,
)
from keras_lstm_dssm.serving.http_server import guarded
from keras_lstm_dssm.serving.limits import REPLY_MB, Bounds
from keras_lstm_dssm.serving.metrics import RequestMetrics
from keras_lstm_dssm.serving.model_registry import ModelRegistry
from keras_lstm_dssm.serving.rest_api import RestApi
from keras_lstm_dssm.serving.search_page import SearchPage
from keras_lstm_dssm.serving.security import (
    ServerTLS,
    TokenFile,
    check_exposure,
)
from keras_lstm_dssm.settings.choices import (
    BATCH_SIZES,
    MAX_MESSAGE_MB,
    MAX_REQUESTS,
)

_LOG = logging.getLogger(__name__)
_DAY = 86_400
_HEALTH = HEALTH_FILE.services_by_name["Health"]
_PREDICTION = prediction_service_pb2.DESCRIPTOR.services_by_name[
    "PredictionService"
]
_MODEL = model_service_pb2.DESCRIPTOR.services_by_name["ModelService"]
_SERVICES = (
    OVERALL_HEALTH,
    "tensorflow.serving.PredictionService",
    "tensorflow.serving.ModelService",
)


class PredictionServer:
    """Serves a folder of models over gRPC; a context manager.

    New versions are loaded and warmed up while the old ones answer. The
    standard gRPC health service reports on the server (""), on its services
    and on each model by name.

    Args:
        models_dir: The folder, with `NAME/NUMBER/saved_model.pb` in it, and
            `models.config` where versions have policies or labels.
        port: The port, by default 8500; 0 takes a free one.
        host: The address to listen on; with the default, 127.0.0.1, only
            this machine can connect.
        versions: Number of the newest versions to load of each model without
            a `model_version_policy`, by default 1.
        max_message_mb: Maximum size of a request in MiB, by default 16; a
            reply may have 64 MiB, or as much if this is more.
        max_rows: Maximum number of rows in a request; by default 512, the
            maximum of the exported `batching.config`.
        threads: Number of requests computed at the same time, by default 8;
            others wait.
        poll_seconds: Seconds between two checks for new versions, by default
            1; 0 checks only at the start.
        grace_seconds: Seconds that running requests may take after the server
            stops, by default 10; then they are cancelled.
        max_text_kb: Maximum size of one text in KiB, by default 1,024.
        max_k: Maximum `k` or `n` in a request, by default 10,000.
        max_requests: Maximum number of requests that are computed or wait, by
            default 128; others are refused at once (RESOURCE_EXHAUSTED).
        tls: The server's certificate; by default connections are not
            encrypted.
        tokens: The tokens of which each request must have one; by default
            none is needed.
        insecure: Whether to listen to other machines even without `tls` and
            either `tokens` or certificates of clients.
        verify: Whether to load only versions whose files agree with their
            `MANIFEST.sha256`.
        metrics: Whether to count requests for Prometheus; this needs
            prometheus-client.

    Attributes:
        port: The port that the server listens on.
        address: Host and port, for clients on this machine.
        models: The `ModelRegistry` of the loaded models.
        bounds: The largest request that is computed.
        metrics: The `RequestMetrics`, if there are any.

    Raises:
        InputError: The port is taken, there is no model in the folder, one
            does not load, a number is out of range, or `host` can be reached
            from other machines without protection, see `check_exposure`.

    Example:
        >>> with PredictionServer("models", port=0) as server:
        ...     with Client(f"127.0.0.1:{server.port}") as client:
        ...         client.search(["angle bracket"], k=5)
    """

    def __init__(
        self,
        models_dir: str | os.PathLike[str],
        port: int = 8500,
        host: str = "127.0.0.1",
        versions: int = 1,
        max_message_mb: int = MAX_MESSAGE_MB,
        max_rows: int = BATCH_SIZES[-1],
        threads: int = 8,
        poll_seconds: float = 1.0,
        grace_seconds: float = 10.0,
        max_text_kb: int = Bounds().max_text_kb,
        max_k: int = Bounds().max_k,
        max_requests: int = MAX_REQUESTS,
        tls: ServerTLS | None = None,
        tokens: TokenFile | None = None,
        insecure: bool = False,
        verify: bool = False,
        metrics: bool = False,
    ) -> None:
        self.bounds = Bounds(
            max_rows, max_text_kb, max_k, max_message_mb, max_requests
        )
        for name, value, least, most in (
            ("poll_seconds", poll_seconds, 0, _DAY),
            ("grace_seconds", grace_seconds, 0, _DAY),
        ):
            if not least <= value <= most:
                raise InputError(
                    f"{name} is {value}; expected {least} to {most:,}"
                )
        check_exposure(
            host,
            tls is not None,
            tokens is not None or bool(tls and tls.client_ca),
            insecure,
        )
        self.models = ModelRegistry(models_dir, versions, verify)
        self.metrics = RequestMetrics(self.models) if metrics else None
        self._poll_seconds = poll_seconds
        self._grace_seconds = grace_seconds
        self._stopping = threading.Event()
        self._polling = threading.Thread(target=self._poll, daemon=True)
        self._server = grpc.server(
            ThreadPoolExecutor(threads),
            interceptors=[TokenInterceptor(tokens)] if tokens else [],
            maximum_concurrent_rpcs=max_requests,
            options=[
                # By default a second server could listen on the same port
                # and would receive every other request.
                ("grpc.so_reuseport", 0),
                ("grpc.max_receive_message_length", max_message_mb << 20),
                (
                    "grpc.max_send_message_length",
                    max(REPLY_MB, max_message_mb) << 20,
                ),
            ],
        )
        self._health = HealthServicer()
        self._server.add_generic_rpc_handlers(
            [
                service_handlers(_HEALTH, self._health),
                service_handlers(
                    _PREDICTION,
                    PredictionService(self.models, self.bounds, self.metrics),
                ),
                service_handlers(
                    _MODEL, ModelService(self.models, self.metrics)
                ),
            ]
        )
        self._set_health()
        if ":" in host and not host.startswith("["):
            host = f"[{host}]"  # an IPv6 address
        try:
            self.port = self._add_port(f"{host}:{port}", tls)
        except RuntimeError as error:
            raise InputError(
                f"cannot listen on {host}:{port}: the port is in use or the "
                "address is not this machine's; give another port, or 0 for "
                "a free one"
            ) from error
        self.address = f"{host}:{self.port}"

    def _add_port(self, address: str, tls: ServerTLS | None) -> int:
        if tls is None:
            return self._server.add_insecure_port(address)
        return self._server.add_secure_port(address, tls.grpc_credentials())

    def refresh(self) -> None:
        """Checks for new versions now; see `ModelRegistry.refresh`."""
        try:
            self.models.refresh()
        finally:
            self._set_health()

    def _set_health(self) -> None:
        kinds = HealthCheckResponse
        ready = not self.models.unavailable()
        self._health.set(
            OVERALL_HEALTH, kinds.SERVING if ready else kinds.NOT_SERVING
        )
        for service in _SERVICES[1:]:
            self._health.set(service, kinds.SERVING)
        for name in self.models.names():
            serves = self.models.versions(name)
            self._health.set(
                name, kinds.SERVING if serves else kinds.NOT_SERVING
            )

    def _poll(self) -> None:
        logged = ""
        while not self._stopping.wait(self._poll_seconds):
            try:
                self.refresh()
                logged = ""
            except Exception as error:  # of any kind: keep serving
                if str(error) != logged:  # once, not at every poll
                    logged = str(error)
                    expected = isinstance(error, InputError | OSError)
                    _LOG.warning(
                        "%s; serving as before", logged, exc_info=not expected
                    )

    def __enter__(self) -> "PredictionServer":
        self._server.start()
        if self._poll_seconds:
            self._polling.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()  # no more versions are loaded
        self._health.enter_graceful_shutdown()
        self._server.stop(self._grace_seconds).wait()
        if self._poll_seconds:
            self._polling.join()


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
    from keras_lstm_dssm.serving.http_server import (
        HEALTH_PATHS,
        HttpServer,
        RestEndpoint,
        new_application,
    )
    from keras_lstm_dssm.serving.search_page import page_routes

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
