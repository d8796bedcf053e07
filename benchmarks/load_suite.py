"""The benchmark suite `load`: concurrent clients while versions are replaced.

Half of the clients use gRPC, the others HTTP (`http_load`). A single client is
also compared with an echo server, which reads the same messages and answers
each with the same reply, so that its latency is that of gRPC alone.

    python -m keras_lstm_dssm.benchmarks.load_suite REPLY   # the echo server
"""

import asyncio
import shutil
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import numpy as np
from tensorflow_serving.apis.predict_pb2 import PredictRequest, PredictResponse
from tensorflow_serving.apis.prediction_service_pb2_grpc import (
    PredictionServiceServicer,
    PredictionServiceStub,
    add_PredictionServiceServicer_to_server,
)

from keras_lstm_dssm.benchmarks import hostile_clients
from keras_lstm_dssm.benchmarks.http_load import (
    compare_http_echo,
    http_bodies,
    resident_megabytes,
    run_http_client,
)
from keras_lstm_dssm.benchmarks.measurement import (
    beside_echo,
    program_command,
    running_server,
)
from keras_lstm_dssm.benchmarks.towers import OwnTowers
from keras_lstm_dssm.export.export_models import export_model
from keras_lstm_dssm.export.publish.versions import publish, version_folders
from keras_lstm_dssm.serving.servable import to_proto
from keras_lstm_dssm.text.strings import as_bytes

MODEL = "query_encoder"
HTTP_PATH = f"/v1/models/{MODEL}:predict"
_TIMEOUT_SECONDS = 30.0


def measure_load(
    queries: Sequence[str],
    clients: Sequence[int],
    seconds: float,
    swap_seconds: float,
    rounds: int,
    hostile: int = 0,
) -> dict[str, Any]:
    """Sends many requests to `lstm-dssm-serve`, which runs as a process.

    Args:
        queries: The queries, sent in turn, one in each request.
        clients: Numbers of concurrent clients, measured one after another.
        seconds: How long each number of clients sends requests.
        swap_seconds: Interval at which new versions are published meanwhile.
        rounds: Passes of one client over the queries, for medians.
        hostile: Number of `hostile_clients`, beside which each number of
            clients is measured a second time; by default there are none.

    Returns:
        `ClientLog.summary` for each number of clients, half of which use
        gRPC and half HTTP, and `megabytes_before` and `megabytes_after`, the
        server's memory. Those beside hostile clients have `_hostile` in
        their names, and `ratio_p99`, the p99 of gRPC divided by that without
        them. `one_client` has `p50_ms` and `p99_ms` of gRPC
        without swaps, `echo_p50_ms` and `echo_p99_ms` of the echo server, and
        `ratio_echo`, the p50 divided by the echo server's;
        `one_http_client` has the same of HTTP.
    """
    requests = [_request(query) for query in as_bytes(queries)]
    bodies = http_bodies(as_bytes(queries))
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder, "models", MODEL)
        export_model(OwnTowers().model.query_encoder, base)
        http_target = f"127.0.0.1:{_free_port()}"
        command = program_command(
            "serve", f"--models={base.parent}", "--port=0",
            "--poll_seconds=0.2", f"--http_port={http_target.split(':')[1]}",
        )  # fmt: skip
        with running_server(command) as target:
            results: dict[str, Any] = {
                "one_client": _compare_echo(target, requests, rounds, folder),
                "one_http_client": compare_http_echo(
                    http_target, HTTP_PATH, bodies, rounds, folder
                ),
            }

            def measure(count: int) -> dict[str, Any]:
                before = resident_megabytes(http_target)
                with _version_swaps(base, swap_seconds):
                    log = send_requests(
                        target, requests, count, seconds, http_target, bodies
                    )
                return {
                    **log.summary(),
                    "megabytes_before": before,
                    "megabytes_after": resident_megabytes(http_target),
                }

            path = Path(folder, "request")
            path.write_bytes(requests[0].SerializeToString())
            attack = [
                sys.executable, "-m", hostile_clients.__name__,
                target, http_target, str(hostile), str(path),
            ]  # fmt: skip
            for count in clients:
                name = f"{count}_clients"
                results[name] = measure(count)
                if hostile:
                    with running_server(attack):
                        beside = measure(count)
                    beside["ratio_p99"] = (
                        beside["p99_ms"] / results[name]["p99_ms"]
                    )
                    results[f"{name}_hostile"] = beside
    return results


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


class ClientLog(NamedTuple):
    """The results of requests that concurrent clients sent.

    Attributes:
        milliseconds: Latency of each request that gRPC answered.
        errors: Code and details of each request that failed.
        versions: Model versions that answered gRPC.
        seconds: How long the clients sent requests.
        http_milliseconds: Latency of each request that HTTP answered.
    """

    milliseconds: list[float]
    errors: list[str]
    versions: set[int]
    seconds: float
    http_milliseconds: Sequence[float] = ()

    def summary(self) -> dict[str, Any]:
        """Summarizes the requests.

        Returns:
            `requests`, `errors` (failed requests, which are not repeated),
            `p50_ms`, `p99_ms`, `max_ms`, `requests_per_second`, the number
            of `versions` that answered, and `first_error` if there is one;
            with HTTP clients also `http_requests`, `http_p50_ms` and
            `http_p99_ms`. Times without `http_` are those of gRPC.
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
) -> ClientLog:
    """Sends requests from concurrent clients for a number of seconds.

    Each client has its own connection and sends the next request when the
    last one is answered, without a pause. A failed request is not repeated.

    Args:
        target: The server's address.
        requests: The requests, sent in turn; each client starts at another.
        clients: Number of concurrent clients.
        seconds: How long they send requests.
        http_target: The address of its HTTP server, which every other client
            uses; by default all use gRPC.
        bodies: The bodies of requests over HTTP.
    """
    http_milliseconds: list[float] = []
    log = ClientLog([], [], set(), seconds, http_milliseconds)
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
    target: str, requests: Sequence[PredictRequest], end: float, log: ClientLog
) -> None:
    options = [
        ("grpc.use_local_subchannel_pool", 1),
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
    """Publish copies of the newest version at an interval."""
    stop = threading.Event()

    def swap() -> None:
        while not stop.wait(swap_seconds):
            folders = list(version_folders(base).values())
            publish(base, partial(shutil.copytree, folders[-1]))
            for old in folders[:-2]:  # the last ones may still be loading
                shutil.rmtree(old)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _compare_echo(
    target: str, requests: Sequence[PredictRequest], rounds: int, folder: str
) -> dict[str, float]:
    """Measures one client of our server and of the echo server in turn."""
    with grpc.insecure_channel(target) as channel:
        ours = partial(
            PredictionServiceStub(channel).Predict, timeout=_TIMEOUT_SECONDS
        )
        reply = Path(folder, "reply")
        reply.write_bytes(ours(requests[0]).SerializeToString())
        command = [sys.executable, "-m", __name__, str(reply)]
        with (
            running_server(command) as address,
            grpc.insecure_channel(address) as echo_channel,
        ):
            echo = partial(
                PredictionServiceStub(echo_channel).Predict,
                timeout=_TIMEOUT_SECONDS,
            )
            return beside_echo(ours, echo, requests, rounds)


class EchoServicer(PredictionServiceServicer):
    """Answers every Predict request with the same reply."""

    def __init__(self, reply: PredictResponse) -> None:
        self._reply = reply

    def Predict(
        self, request: PredictRequest, context: grpc.ServicerContext
    ) -> PredictResponse:
        """Returns the reply."""
        return self._reply


def run_echo_server(reply: bytes) -> None:
    """Serves a serialized `PredictResponse` on a free port until killed."""
    server = grpc.server(ThreadPoolExecutor(8))
    servicer = EchoServicer(PredictResponse.FromString(reply))
    add_PredictionServiceServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(f"serving on 127.0.0.1:{port}", flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    run_echo_server(Path(sys.argv[1]).read_bytes())
