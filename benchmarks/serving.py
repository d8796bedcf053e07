"""The suites `serve`, `batch` and `load` measure this package's server.

`load` also sends the requests of a single client to an echo server, which
always sends the same reply. The latency of the echo server is the overhead of
gRPC or HTTP. To start an echo server that sends the file REPLY:

    python -m benchmarks.serving grpc REPLY
    python -m benchmarks.serving http REPLY
"""

import asyncio
import http.client
import json
import re
import shutil
import socket
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import numpy as np
from tensorflow_serving.apis.predict_pb2 import PredictRequest, PredictResponse
from tensorflow_serving.apis.prediction_service_pb2_grpc import (
    PredictionServiceStub,
)

from benchmarks.clocks import interleaved_medians, percentiles, seconds
from benchmarks.measure import program_command, running_server
from benchmarks.towers import new_model
from keras_lstm_dssm.export.bulk.documents import Documents
from keras_lstm_dssm.export.export_models import export_model, export_models
from keras_lstm_dssm.export.publish.versions import publish
from keras_lstm_dssm.model_folders import version_folders
from keras_lstm_dssm.serving.prediction_server import PredictionServer
from keras_lstm_dssm.serving.saved_models import SavedEncoder
from keras_lstm_dssm.serving.servable import to_proto
from lstm_dssm_client.grpc_client import Client
from lstm_dssm_client.signatures import as_bytes

MODEL = "query_encoder"
HTTP_PATH = f"/v1/models/{MODEL}:predict"
_METRICS_PATH = "/monitoring/prometheus/metrics"
_SIZES = (1, 8, 64, 512)  # numbers of rows in a request
_TIMEOUT_SECONDS = 30.0
_CALLS = 20


def measure_serving(queries: Sequence[str], rounds: int) -> dict[str, Any]:
    """Times single queries, in this process and through a gRPC server."""
    model = new_model()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "query_encoder")
        export_model(model.query_encoder, path)
        encoder = SavedEncoder(path)
        with (
            PredictionServer(folder, port=0) as server,
            Client(f"127.0.0.1:{server.port}") as client,
        ):
            calls: dict[str, Callable[[str], Any]] = {
                "in_process": lambda query: encoder.encode([query]),
                "grpc": lambda query: client.encode([query]),
            }
            milliseconds = interleaved_medians(
                {
                    name: partial(percentiles, call, queries)
                    for name, call in calls.items()
                },
                rounds,
            )
    return {
        name: {"p50_ms": p50, "p99_ms": p99}
        for name, (p50, p99) in milliseconds.items()
    }


def measure_batches(
    queries: Sequence[str], titles: Sequence[str], rounds: int
) -> dict[str, Any]:
    """Times gRPC requests of 1, 8, 64 and 512 queries to `lstm-dssm-serve`."""
    documents = Documents(list(titles), list(titles))
    with tempfile.TemporaryDirectory() as folder:
        export_models(new_model(), Path(folder), documents)
        command = program_command("serve", f"--models={folder}", "--port=0")
        with (
            running_server(command) as target,
            Client(target, timeout=60) as client,
        ):
            calls: dict[str, Callable[[list[str]], Any]] = {
                "query_encoder": client.encode,
                "retriever": partial(client.search, k=10),
            }
            return {
                name: _results_by_size(call, queries, rounds)
                for name, call in calls.items()
            }


def _results_by_size(
    call: Callable[[list[str]], Any], queries: Sequence[str], rounds: int
) -> dict[str, dict[str, float]]:
    def request_seconds(size: int) -> float:
        endless = cycle(queries)
        batches = [list(islice(endless, size)) for _ in range(_CALLS)]
        return seconds(lambda: [call(batch) for batch in batches]) / _CALLS

    medians = interleaved_medians(
        {str(size): partial(request_seconds, size) for size in _SIZES}, rounds
    )
    return {
        f"rows_{n}": {"ms": 1000 * median, "rows_per_second": int(n) / median}
        for n, median in medians.items()
    }


def measure_load(
    queries: Sequence[str],
    clients: Sequence[int],
    seconds: float,
    swap_seconds: float,
    rounds: int,
) -> dict[str, Any]:
    """Times requests of one client and of many clients to `lstm-dssm-serve`.

    While many clients send requests, a new version of the model is published
    every `swap_seconds`.
    """
    requests = [_request(query) for query in as_bytes(queries)]
    bodies = http_bodies(as_bytes(queries))
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder, "models", MODEL)
        export_model(new_model().query_encoder, base)
        http_target = f"127.0.0.1:{_free_port()}"
        command = program_command(
            "serve", f"--models={base.parent}", "--port=0",
            "--poll_seconds=0.2", f"--http_port={http_target.split(':')[1]}",
        )  # fmt: skip
        with running_server(command) as target:
            results: dict[str, Any] = {
                "one_client": compare_with_echo(
                    "grpc", target, requests, rounds, folder
                ),
                "one_http_client": compare_with_echo(
                    "http", http_target, bodies, rounds, folder
                ),
            }
            for count in clients:
                before = resident_megabytes(http_target)
                with _version_swaps(base, swap_seconds):
                    log = send_requests(
                        target, requests, count, seconds, http_target, bodies
                    )
                results[f"{count}_clients"] = {
                    **log.summary(),
                    "megabytes_before": before,
                    "megabytes_after": resident_megabytes(http_target),
                }
    return results


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


class LoadResult(NamedTuple):
    """The results of the requests of concurrent clients."""

    milliseconds: list[float]  # latency of each successful gRPC request
    errors: list[str]  # gRPC codes and details, and HTTP errors
    versions: set[int]  # model versions in gRPC replies
    seconds: float  # duration of the measurement
    http_milliseconds: Sequence[float] = ()  # latency of HTTP requests

    def summary(self) -> dict[str, Any]:
        """Returns counts of all requests, and latencies of gRPC requests.

        The prefix `http_` marks values of HTTP requests alone.
        """
        p50, p99 = np.percentile(self.milliseconds or [np.nan], [50, 99])
        answered = len(self.milliseconds) + len(self.http_milliseconds)
        result: dict[str, Any] = {
            "requests": answered + len(self.errors),
            "errors": len(self.errors),
            "p50_ms": float(p50),
            "p99_ms": float(p99),
            "max_ms": max(self.milliseconds, default=np.nan),
            "requests_per_second": answered / self.seconds,
            "versions": len(self.versions),
        }
        if self.http_milliseconds:
            p50, p99 = np.percentile(self.http_milliseconds, [50, 99])
            result |= {
                "http_requests": len(self.http_milliseconds),
                "http_p50_ms": float(p50),
                "http_p99_ms": float(p99),
            }
        if self.errors:
            result["first_error"] = self.errors[0]
        return result


def send_requests(
    target: str,
    requests: Sequence[PredictRequest],
    clients: int,
    seconds: float,
    http_target: str = "",
    bodies: Sequence[bytes] = (),
) -> LoadResult:
    """Sends requests of concurrent clients.

    If `http_target` is given, every second client sends HTTP requests. Each
    client waits for a reply before it sends the next request.
    """
    http_milliseconds: list[float] = []
    log = LoadResult([], [], set(), seconds, http_milliseconds)
    requests, bodies = list(requests), list(bodies)

    async def run() -> None:
        end = time.perf_counter() + seconds
        await asyncio.gather(
            *(
                run_http_client(
                    http_target, HTTP_PATH, bodies[i:] + bodies[:i],
                    end, http_milliseconds, log.errors,
                )
                if http_target and i % 2
                else _run_client(target, requests[i:] + requests[:i], end, log)
                for i in range(clients)
            )
        )  # fmt: skip

    asyncio.run(run())
    return log


async def _run_client(
    target: str, requests: Sequence[PredictRequest], end: float, log: LoadResult
) -> None:
    options = [
        ("grpc.use_local_subchannel_pool", 1),  # a connection for each client
        ("grpc.enable_retries", 0),
    ]
    async with grpc.aio.insecure_channel(target, options=options) as channel:
        predict = PredictionServiceStub(channel).Predict
        while True:
            for request in requests:
                start = time.perf_counter()
                if start >= end:
                    return
                try:
                    reply = await predict(request, timeout=_TIMEOUT_SECONDS)
                except grpc.RpcError as error:
                    log.errors.append(f"{error.code()}: {error.details()}")
                    continue
                milliseconds = 1000 * (time.perf_counter() - start)
                log.milliseconds.append(milliseconds)
                log.versions.add(reply.model_spec.version.value)


def _request(query: bytes) -> PredictRequest:
    text = to_proto(np.array([query], object))
    request = PredictRequest(inputs={"text": text})
    request.model_spec.name = MODEL
    return request


@contextmanager
def _version_swaps(base: Path, swap_seconds: float) -> Iterator[None]:
    """Publishes a copy of the newest version every `swap_seconds`."""
    stop = threading.Event()

    def swap() -> None:
        while not stop.wait(swap_seconds):
            folders = list(version_folders(base).values())
            publish(base, partial(shutil.copytree, folders[-1]))
            for old in folders[:-2]:  # the server may still load folders[-2:]
                shutil.rmtree(old)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def http_bodies(queries: Sequence[bytes]) -> list[bytes]:
    """Returns a Predict request in JSON for each query."""
    return [
        json.dumps({"instances": [query.decode(errors="replace")]}).encode()
        for query in queries
    ]


def compare_with_echo(
    kind: str, target: str, requests: Sequence[Any], rounds: int, folder: str
) -> dict[str, float]:
    """Compares one client's latency at `target` and at an echo server."""
    sender: Callable[[str], Any] = (
        _grpc_sender if kind == "grpc" else _http_sender
    )
    with sender(target) as ours:
        reply = ours(requests[0])
        path = Path(folder, f"{kind}_reply")
        path.write_bytes(
            reply if isinstance(reply, bytes) else reply.SerializeToString()
        )
        command = [sys.executable, "-m", __name__, kind, str(path)]
        with running_server(command) as address, sender(address) as echo:
            (p50, p99), (echo_p50, echo_p99) = interleaved_medians(
                {
                    "ours": partial(percentiles, ours, requests),
                    "echo": partial(percentiles, echo, requests),
                },
                rounds,
            ).values()
    return {
        "p50_ms": p50,
        "p99_ms": p99,
        "echo_p50_ms": echo_p50,
        "echo_p99_ms": echo_p99,
        "ratio_echo": p50 / echo_p50,
    }


@contextmanager
def _grpc_sender(target: str) -> Iterator[Callable[[PredictRequest], Any]]:
    with grpc.insecure_channel(target) as channel:
        yield partial(
            PredictionServiceStub(channel).Predict, timeout=_TIMEOUT_SECONDS
        )


@contextmanager
def _http_sender(
    address: str, path: str = HTTP_PATH
) -> Iterator[Callable[[bytes], bytes]]:
    with closing(
        http.client.HTTPConnection(address, timeout=_TIMEOUT_SECONDS)
    ) as connection:

        def send(body: bytes) -> bytes:
            connection.request("POST", path, body)
            reply = connection.getresponse()
            content = reply.read()
            if reply.status != 200:
                raise OSError(f"{reply.status}: {content.decode()}")
            return content

        yield send


async def run_http_client(
    address: str,
    path: str,
    bodies: Sequence[bytes],
    end: float,
    milliseconds: list[float],
    errors: list[str],
) -> None:
    """Sends requests on a connection until `time.perf_counter()` is `end`.

    Reconnects after an error, but not after a reply with an error status.
    """
    host, _, port = address.rpartition(":")
    requests = [
        f"POST {path} HTTP/1.1\r\nHost: {address}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n".encode()
        + body
        for body in bodies
    ]
    while time.perf_counter() < end:
        try:
            reader, writer = await asyncio.open_connection(host, int(port))
        except OSError as error:
            errors.append(str(error))
            continue
        try:
            while True:
                for request in requests:
                    start = time.perf_counter()
                    if start >= end:
                        return
                    writer.write(request)
                    status = await asyncio.wait_for(
                        _read_reply(reader), _TIMEOUT_SECONDS
                    )
                    taken = 1000 * (time.perf_counter() - start)
                    if status == 200:
                        milliseconds.append(taken)
                    else:
                        errors.append(f"status {status}")
        except (OSError, EOFError, asyncio.TimeoutError) as error:  # noqa: UP041
            errors.append(f"{type(error).__name__}: {error}")
        finally:
            writer.close()


async def _read_reply(reader: asyncio.StreamReader) -> int:
    """Reads a reply, and returns its status code."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
    if length is None:
        raise EOFError("a reply without content-length")
    await reader.readexactly(int(length[1]))
    return int(head.split(b" ", 2)[1])


def resident_megabytes(address: str) -> float:
    """Reads the server's resident megabytes from the server's metrics."""
    url = f"http://{address}{_METRICS_PATH}"
    with urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS) as reply:
        text = reply.read().decode()
    match = re.search(r"(?m)^process_resident_memory_bytes (\S+)$", text)
    return float(match[1]) / 1e6 if match else float("nan")


def run_grpc_echo_server(reply: bytes) -> None:
    """Answers gRPC requests with a serialized `PredictResponse`, forever."""
    message = PredictResponse.FromString(reply)
    predict = grpc.unary_unary_rpc_method_handler(
        lambda request, context: message,
        PredictRequest.FromString,
        PredictResponse.SerializeToString,
    )
    service = grpc.method_handlers_generic_handler(
        "tensorflow.serving.PredictionService", {"Predict": predict}
    )
    server = grpc.server(ThreadPoolExecutor(8), [service])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(f"serving on 127.0.0.1:{port}", flush=True)
    server.wait_for_termination()


def run_http_echo_server(reply: bytes) -> None:
    """Answers HTTP requests with the JSON body `reply`, forever."""
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from keras_lstm_dssm.serving.http_server import listening_socket

    async def echo(request: Request) -> Response:
        await request.body()
        return Response(reply, media_type="application/json")

    socket = listening_socket("127.0.0.1", 0)
    print(f"serving on 127.0.0.1:{socket.getsockname()[1]}", flush=True)
    application = Starlette(
        routes=[Route("/{path:path}", echo, methods=["POST"])]
    )
    config = uvicorn.Config(
        application, log_config=None, access_log=False, lifespan="off"
    )
    uvicorn.Server(config).run([socket])


if __name__ == "__main__":
    kind, path = sys.argv[1:]
    serve = run_grpc_echo_server if kind == "grpc" else run_http_echo_server
    serve(Path(path).read_bytes())
