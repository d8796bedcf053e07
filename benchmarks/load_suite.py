"""The suite `load`: concurrent clients while model versions are swapped.

One client is also measured with an echo server, which reads the same messages
and answers each with the same reply: its latency is that of gRPC alone.

    python -m keras_lstm_dssm.benchmarks.load_suite REPLY   # the echo server
"""

import asyncio
import shutil
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

from keras_lstm_dssm.benchmarks.measurement import (
    interleaved_medians,
    percentiles,
    program_command,
    running_server,
)
from keras_lstm_dssm.benchmarks.towers import OwnTowers
from keras_lstm_dssm.export.encoder import export_encoder
from keras_lstm_dssm.export.model_versions import publish, version_folders
from keras_lstm_dssm.serving.tensor_protos import to_proto
from keras_lstm_dssm.text import as_bytes

MODEL = "query_encoder"
_TIMEOUT_SECONDS = 30.0


def measure_load(
    queries: Sequence[str],
    clients: Sequence[int],
    seconds: float,
    swap_seconds: float,
    rounds: int,
) -> dict[str, Any]:
    """Send many requests to `lstm-dssm-serve`, which runs as a process.

    Args:
        queries: The queries, sent in turn, one in each request.
        clients: Numbers of concurrent clients, measured one after another.
        seconds: How long each number of clients sends requests.
        swap_seconds: Interval at which new versions are published meanwhile.
        rounds: Passes of one client over the queries, for medians.

    Returns:
        `ClientLog.summary` for each number of clients. `one_client` has
        `p50_ms` and `p99_ms` without swaps, `echo_p50_ms` and `echo_p99_ms`
        of the echo server, and `ratio_echo`, the p50 divided by the echo
        server's.
    """
    requests = [_request(query) for query in as_bytes(queries)]
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder, "models", MODEL)
        export_encoder(OwnTowers().model.query_encoder, base)
        command = program_command(
            "serve", f"--models={base.parent}", "--port=0", "--poll_seconds=0.2"
        )
        with running_server(command) as target:
            results = {
                "one_client": _compare_echo(target, requests, rounds, folder)
            }
            for count in clients:
                with _version_swaps(base, swap_seconds):
                    log = send_requests(target, requests, count, seconds)
                results[f"{count}_clients"] = log.summary()
    return results


class ClientLog(NamedTuple):
    """The results of requests that concurrent clients sent.

    Attributes:
        milliseconds: Latency of each request that was answered.
        errors: Code and details of each request that failed.
        versions: Model versions that answered.
        seconds: How long the clients sent requests.
    """

    milliseconds: list[float]
    errors: list[str]
    versions: set[int]
    seconds: float

    def summary(self) -> dict[str, Any]:
        """Summarize the requests.

        Returns:
            `requests`, `errors` (failed requests, which are not repeated),
            `p50_ms`, `p99_ms`, `max_ms`, `requests_per_second`, the number
            of `versions` that answered, and `first_error` if there is one.
        """
        p50, p99 = np.percentile(self.milliseconds or [np.nan], [50, 99])
        result: dict[str, Any] = {
            "requests": len(self.milliseconds) + len(self.errors),
            "errors": len(self.errors),
            "p50_ms": float(p50),
            "p99_ms": float(p99),
            "max_ms": max(self.milliseconds, default=np.nan),
            "requests_per_second": len(self.milliseconds) / self.seconds,
            "versions": len(self.versions),
        }
        if self.errors:
            result["first_error"] = self.errors[0]
        return result


def send_requests(
    target: str,
    requests: Sequence[PredictRequest],
    clients: int,
    seconds: float,
) -> ClientLog:
    """Send requests from concurrent clients for a number of seconds.

    Each client has its own connection and sends the next request when the
    last one is answered, without a pause. A failed request is not repeated.

    Args:
        target: The server's address.
        requests: The requests, sent in turn; each client starts at another.
        clients: Number of concurrent clients.
        seconds: How long they send requests.
    """
    log = ClientLog([], [], set(), seconds)
    requests = list(requests)

    async def run() -> None:
        end = time.perf_counter() + seconds
        await asyncio.gather(
            *(
                _run_client(target, requests[i:] + requests[:i], end, log)
                for i in range(clients)
            )
        )

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
    """Measure one client of our server and of the echo server in turn."""
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
            milliseconds = interleaved_medians(
                {
                    "ours": partial(percentiles, ours, requests),
                    "echo": partial(percentiles, echo, requests),
                },
                rounds,
            )
    (p50, p99), (echo_p50, echo_p99) = milliseconds.values()
    return {
        "p50_ms": p50,
        "p99_ms": p99,
        "echo_p50_ms": echo_p50,
        "echo_p99_ms": echo_p99,
        "ratio_echo": p50 / echo_p50,
    }


class EchoServicer(PredictionServiceServicer):
    """Answers every Predict request with the same reply."""

    def __init__(self, reply: PredictResponse) -> None:
        self._reply = reply

    def Predict(
        self, request: PredictRequest, context: grpc.ServicerContext
    ) -> PredictResponse:
        """Return the reply."""
        return self._reply


def run_echo_server(reply: bytes) -> None:
    """Serve a serialized `PredictResponse` on a free port until killed."""
    server = grpc.server(ThreadPoolExecutor(8))
    servicer = EchoServicer(PredictResponse.FromString(reply))
    add_PredictionServiceServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(f"serving on 127.0.0.1:{port}", flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    run_echo_server(Path(sys.argv[1]).read_bytes())
