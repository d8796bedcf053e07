"""Load: many clients while versions are swapped; one client beside an echo."""

import shutil
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import numpy as np
from tensorflow_serving.apis.predict_pb2 import PredictRequest
from tensorflow_serving.apis.prediction_service_pb2_grpc import (
    PredictionServiceStub,
)

from keras_lstm_dssm.benchmarks import echo_server
from keras_lstm_dssm.benchmarks.load_clients import TIMEOUT, stream
from keras_lstm_dssm.benchmarks.measure import percentiles
from keras_lstm_dssm.benchmarks.own_towers import OwnTowers
from keras_lstm_dssm.benchmarks.processes import served
from keras_lstm_dssm.export.model_versions import publish, version_folders
from keras_lstm_dssm.export.saved_model import export_encoder
from keras_lstm_dssm.serving.tensors import to_proto
from keras_lstm_dssm.text import as_bytes
from keras_lstm_dssm.tools import serve

MODEL = "query_encoder"


def measure_load(
    queries: Sequence[str],
    clients: Sequence[int],
    seconds: float,
    swap_seconds: float,
    rounds: int,
) -> dict[str, Any]:
    """Loads `lstm-dssm-serve`, which runs in a process of its own.

    Args:
        queries: Sent in turn, one a request.
        clients: Numbers of concurrent clients, measured one after another.
        seconds: How long, for each number of clients.
        swap_seconds: How often a new version is published meanwhile.
        rounds: Passes of one client over the queries; medians count.

    Returns:
        For each number of clients `requests`, `errors` (failed attempts;
        nothing is repeated), `p50_ms`, `p99_ms`, `max_ms`,
        `requests_per_second` and how many `versions` answered. `one_client`:
        `p50_ms` and `p99_ms` without swaps, the `echo_` ones of a server
        that answers the same messages and does nothing, and `ratio_echo`.
    """
    requests = [_request(query) for query in as_bytes(queries)]
    with tempfile.TemporaryDirectory() as name:
        base = Path(name, "models", MODEL)
        export_encoder(OwnTowers().model.query_encoder, base)
        with served(
            serve.__name__,
            f"--models={base.parent}",
            "--port=0",
            "--poll_seconds=0.2",
        ) as target:
            found = {"one_client": _beside_echo(target, requests, rounds, name)}
            for count in clients:
                with _swaps(base, swap_seconds):
                    load = stream(target, requests, count, seconds)
                found[f"{count}_clients"] = load.figures()
    return found


def _request(query: bytes) -> PredictRequest:
    text = to_proto(np.array([query], object))
    request = PredictRequest(inputs={"text": text})
    request.model_spec.name = MODEL
    return request


@contextmanager
def _swaps(base: Path, swap_seconds: float) -> Iterator[None]:
    """Publishes the model anew, again and again, while it is entered."""
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


def _beside_echo(
    target: str, requests: Sequence[PredictRequest], rounds: int, folder: str
) -> dict[str, float]:
    """One client's percentiles, the echo server taking turns."""
    with grpc.insecure_channel(target) as channel:
        ours = partial(PredictionServiceStub(channel).Predict, timeout=TIMEOUT)
        reply = Path(folder, "reply")
        reply.write_bytes(ours(requests[0]).SerializeToString())
        with (
            served(echo_server.__name__, str(reply)) as address,
            grpc.insecure_channel(address) as other,
        ):
            echo = partial(
                PredictionServiceStub(other).Predict, timeout=TIMEOUT
            )
            turns = [
                [percentiles(way, requests) for way in (ours, echo)]
                for _ in range(rounds + 1)
            ][1:]
    (p50, p99), (echo_p50, echo_p99) = np.median(turns, axis=0).tolist()
    return {
        "p50_ms": p50,
        "p99_ms": p99,
        "echo_p50_ms": echo_p50,
        "echo_p99_ms": echo_p99,
        "ratio_echo": p50 / echo_p50,
    }
