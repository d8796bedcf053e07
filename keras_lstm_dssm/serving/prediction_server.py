"""Serves a folder of models over gRPC and HTTP in one event loop.

Requests are checked in the event loop. A small request also runs in the event
loop if earlier requests of the same kind were quick. Other requests run in a
pool of threads. Another thread loads new versions while the old versions
answer.
"""

import asyncio
import errno
import logging
import os
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any

import grpc
from grpc_health.v1.health_pb2 import HealthCheckResponse

from keras_lstm_dssm.errors import InputError, import_optional
from keras_lstm_dssm.serving.clicks import UBI, ClickWriter, UbiWriter
from keras_lstm_dssm.serving.grpc_services import (
    Calls,
    Health,
    Predictions,
    add_services,
)
from keras_lstm_dssm.serving.limits import (
    REPLY_MB,
    Arrivals,
    Bounds,
    LoopTurns,
    RequestSlots,
)
from keras_lstm_dssm.serving.metrics import RequestMetrics
from keras_lstm_dssm.serving.model_registry import ModelRegistry
from keras_lstm_dssm.serving.security import Security

if TYPE_CHECKING:
    from keras_lstm_dssm.serving.http_server import HttpServer

_LOG = logging.getLogger(__name__)
_DAY = 86_400
_SERVICES = (
    "",  # the name of the whole server
    "tensorflow.serving.PredictionService",
    "tensorflow.serving.ModelService",
)

MESSAGE_SECONDS = 30.0
"""Time limit in seconds for a gRPC message to arrive."""

MAX_MESSAGES = 64
"""Maximum number of gRPC messages that arrive at the same time."""

CONNECTION_SECONDS = 60.0
"""Age in seconds after which a gRPC connection accepts no more calls. At twice
this age, the connection is closed."""

_HTTP_MODULES = ("orjson", "prometheus_client", "starlette", "uvicorn")


class PredictionServer:
    """Serves a folder of models over gRPC and HTTP; a context manager.

    New versions are loaded and warmed up while the old versions answer. The
    gRPC health service has the state of the server (named ""), of each gRPC
    service, and of each model.

    Args:
        models_dir: Folder with `NAME/NUMBER/saved_model.pb`, and
            `models.config` if versions have policies or labels.
        port: The port of gRPC, by default 8500; 0 takes a free port.
        host: The address to listen on. With the default, 127.0.0.1, only
            this machine can connect.
        http_port: The port of HTTP (REST, metrics and the search page); 0
            takes a free port. Default: no HTTP. HTTP needs the extra `http`.
        versions: How many of the newest versions to serve if a model has no
            `model_version_policy`, by default 1.
        threads: Number of threads that run requests, by default 8. Further
            requests wait for a free thread.
        poll_seconds: Seconds between two checks for new versions, by default
            1; 0 checks only at the start.
        grace_seconds: Seconds that running requests may still take when the
            server stops, by default 10.
        verify: Whether to load a version only if its files match its
            `MANIFEST.sha256`. Default `False`.
        bounds: Maximum sizes of a request, and maximum number of requests.
        security: TLS and tokens. Default: connections are not encrypted,
            and no token is needed.
        click_log: File to which clicks on the search page are appended; or
            `"ubi:FOLDER"`, to log searches and clicks in the format of User
            Behavior Insights. Default: no log.

    Attributes:
        port: The port of gRPC, once the server runs.
        address: Host and port of gRPC, for clients on this machine.
        http_address: The URL of HTTP, such as `http://127.0.0.1:8501`; None
            without HTTP.
        models: The `ModelRegistry` of the loaded models.
        metrics: The `RequestMetrics`; None without HTTP.
        unfinished: Number of requests that were still running after the server
            had stopped. Their threads cannot be ended.

    Raises:
        InputError: The folder has no model, a model does not load, a number is
            out of range, the extra `http` is missing, or other machines can
            reach `host` without protection, see `Security.check`. The `with`
            statement raises the error if a port is taken, or if the click log
            cannot be written.

    Example:
        >>> with PredictionServer("models", port=0) as server:
        ...     with Client(server.address) as client:
        ...         client.search(["angle bracket"], k=5)
    """

    def __init__(
        self,
        models_dir: str | os.PathLike[str],
        port: int = 8500,
        host: str = "127.0.0.1",
        http_port: int | None = None,
        versions: int = 1,
        threads: int = 8,
        poll_seconds: float = 1.0,
        grace_seconds: float = 10.0,
        verify: bool = False,
        bounds: Bounds = Bounds(),
        security: Security = Security(),
        click_log: str | os.PathLike[str] | None = None,
    ) -> None:
        self._bounds = bounds
        for name, value in (
            ("poll_seconds", poll_seconds),
            ("grace_seconds", grace_seconds),
        ):
            if not 0 <= value <= _DAY:
                raise InputError(f"{name} is {value}; expected 0 to {_DAY:,}")
        security.check(host)
        if http_port is not None:
            for module in _HTTP_MODULES:
                import_optional(module, "http")
        self.models = ModelRegistry(models_dir, versions, verify)
        self.metrics = None
        if http_port is not None:
            self.metrics = RequestMetrics(self.models)
        self.port, self._http_port = port, http_port
        self.address = ""
        self.http_address: str | None = None
        self.unfinished = 0
        self._host, self._security = host, security
        self._click_log = click_log
        self._poll_seconds = poll_seconds
        self._grace_seconds = grace_seconds
        self._threads = ThreadPoolExecutor(threads, "request")
        turns = LoopTurns()
        self._grpc_slots, self._http_slots = (
            RequestSlots(self._threads, bounds.max_requests, turns)
            for _ in range(2)
        )
        self._health = Health(self._statuses())
        self._has_logged_limit = False
        self._stopping = threading.Event()
        self._polling = threading.Thread(target=self._keep_polling, daemon=True)
        self._started: Future[None] = Future()
        self._serving = threading.Thread(target=self._run, daemon=True)

    def poll(self) -> None:
        """Checks for new versions now; logs versions that do not load.

        Raises:
            InputError: A folder or `models.config` is wrong. The last correct
                `models.config` still applies.
        """
        try:
            self.models.refresh()
        finally:
            self._loop.call_soon_threadsafe(
                self._health.update, self._statuses()
            )

    def _statuses(self) -> dict[str, int]:
        serves = dict.fromkeys(_SERVICES, True)
        serves[""] = not self.models.unavailable()
        for name in self.models.names():
            serves[name] = bool(self.models.versions(name))
        states = HealthCheckResponse.NOT_SERVING, HealthCheckResponse.SERVING
        return {name: states[serving] for name, serving in serves.items()}

    def _keep_polling(self) -> None:
        logged = ""
        while not self._stopping.wait(self._poll_seconds):
            try:
                self.poll()
                logged = ""
            except Exception as error:  # no error may end the polling
                if str(error) != logged:  # logs an error only once
                    logged = str(error)
                    expected = isinstance(error, InputError | OSError)
                    _LOG.warning(
                        "%s; serving as before", logged, exc_info=not expected
                    )

    def __enter__(self) -> "PredictionServer":
        self._serving.start()
        self._started.result()
        if self._poll_seconds:
            self._polling.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()  # no more versions are loaded
        with suppress(RuntimeError):  # the loop has already stopped
            self._loop.call_soon_threadsafe(self._stop.set)
        self._serving.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            if self._started.done():
                raise
            self._started.set_exception(error)

    async def _serve(self) -> None:
        """Serves until `_stop` is set, then waits for running requests."""
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._loop.set_exception_handler(self._report)
        arrivals = Arrivals(MESSAGE_SECONDS, MAX_MESSAGES)
        with self._http_server() as http_server:
            grpc_server = await self._start_grpc(arrivals)
            if http_server is not None:
                await http_server.start()
            self._started.set_result(None)
            await self._stop.wait()
            self._health.stop()
            arrivals.stop()
            stops = [grpc_server.stop(self._grace_seconds)]
            if http_server is not None:
                stops.append(http_server.stop())
            await asyncio.gather(*stops)
            self._threads.shutdown(wait=False, cancel_futures=True)
            self.unfinished = (
                self._grpc_slots.running + self._http_slots.running
            )

    def _report(
        self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]
    ) -> None:
        """Logs errors of asyncio; logs "too many open files" only once."""
        if getattr(context.get("exception"), "errno", 0) != errno.EMFILE:
            loop.default_exception_handler(context)
        elif not self._has_logged_limit:
            self._has_logged_limit = True
            _LOG.error(
                "the process cannot open more files: new clients wait until "
                "connections are closed; raise the limit of ulimit -n"
            )

    async def _start_grpc(self, arrivals: Arrivals) -> grpc.aio.Server:
        host, request_mb = self._host, self._bounds.max_message_mb
        age_ms = round(1000 * CONNECTION_SECONDS)
        server = grpc.aio.server(
            interceptors=[
                Calls(
                    self.models,
                    self._grpc_slots,
                    arrivals,
                    self._security,
                    self.metrics,
                )
            ],
            options=[
                # By default two servers could listen on the same port.
                ("grpc.so_reuseport", 0),
                ("grpc.max_receive_message_length", request_mb << 20),
                (
                    "grpc.max_send_message_length",
                    max(REPLY_MB, request_mb) << 20,
                ),
                (
                    "grpc.server_handshake_timeout_ms",
                    round(1000 * MESSAGE_SECONDS),
                ),
                # These two limits end replies that clients do not read
                # (`test_grpc_replies_that_nobody_reads`).
                ("grpc.max_connection_age_ms", age_ms),
                ("grpc.max_connection_age_grace_ms", age_ms),
            ],
        )
        predictions = Predictions(self.models, self._bounds)
        add_services(server, predictions, self._health)
        if ":" in host and not host.startswith("["):
            host = f"[{host}]"  # an IPv6 address
        address, tls = f"{host}:{self.port}", self._security.tls
        try:
            if tls is None:
                self.port = server.add_insecure_port(address)
            else:
                self.port = server.add_secure_port(
                    address, tls.grpc_credentials()
                )
        except RuntimeError as error:
            raise InputError(
                f"cannot listen on {address}: the port is in use or the "
                "address is not this machine's; give another port, or 0 for "
                "a free one"
            ) from error
        self.address = f"{host}:{self.port}"
        await server.start()
        return server

    @contextmanager
    def _http_server(self) -> Iterator["HttpServer | None"]:
        """Yields the HTTP server, with an open click log; None without HTTP."""
        if self._http_port is None or self.metrics is None:
            yield None
            return
        from keras_lstm_dssm.serving.http_server import (
            Guard,
            HttpServer,
            new_pages,
        )
        from keras_lstm_dssm.serving.rest_api import RestApi
        from keras_lstm_dssm.serving.search_page import SearchPage, page_routes

        clicks: ClickWriter | None = None
        if self._click_log is not None:
            path = os.fspath(self._click_log)
            clicks = (
                UbiWriter(path.removeprefix(UBI))
                if path.startswith(UBI)
                else ClickWriter(path)
            )
        with clicks or nullcontext():
            slots = self._http_slots
            page = SearchPage(self.models, self._bounds, clicks)
            guard = Guard(
                RestApi(self.models, self._bounds, self.metrics),
                slots,
                new_pages(self.models, self.metrics, page_routes(page, slots)),
                self._security,
                self._host,
                self._bounds.max_message_mb << 20,
            )
            server = HttpServer(
                guard,
                self._http_port,
                self._host,
                self._security.tls,
                self._grace_seconds,
            )
            self.http_address = server.address
            with closing(server):
                yield server
