"""The suites `serve` and `batch`: milliseconds of single and large requests."""

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from keras_lstm_dssm.benchmarks.measurement import (
    interleaved_medians,
    percentiles,
    program_command,
    running_server,
    seconds,
)
from keras_lstm_dssm.benchmarks.towers import OwnTowers
from keras_lstm_dssm.export.bulk.documents import Documents
from keras_lstm_dssm.export.export_models import export_model, export_models
from keras_lstm_dssm.export.publish.warmup import BATCH_SIZES
from keras_lstm_dssm.serving.prediction_server import PredictionServer
from keras_lstm_dssm.serving.saved_models import SavedEncoder
from lstm_dssm_client.grpc_client import Client

_CALLS = 20


def measure_serving(queries: Sequence[str], rounds: int) -> dict[str, Any]:
    """Time single queries, one after the other.

    Args:
        queries: The queries, sent in turn, one in each request.
        rounds: Number of passes over the queries, for medians.

    Returns:
        `in_process`, of the exported encoder, and `grpc`, of the same
        encoder behind the local service and `Client`; each with `p50_ms` and
        `p99_ms`.
    """
    model = OwnTowers().model
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
    """Time requests of 1, 8, 64 and 512 queries to the local service.

    A batching server merges the requests of many clients into such large
    ones. The rows per second show which sizes it should allow, and the time
    of a request how long it should wait for others.

    Args:
        queries: The queries, sent in turn.
        titles: Distinct titles of the retriever.
        rounds: Number of measurements of each size, in turn, whose median is
            returned.

    Returns:
        By model and size (such as `rows_8`): `ms`, of a request, and
        `rows_per_second`.
    """
    documents = Documents(list(titles), list(titles))
    with tempfile.TemporaryDirectory() as folder:
        export_models(OwnTowers().model, Path(folder), documents)
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
        {str(size): partial(request_seconds, size) for size in BATCH_SIZES},
        rounds,
    )
    return {
        f"rows_{n}": {"ms": 1000 * each, "rows_per_second": int(n) / each}
        for n, each in medians.items()
    }
