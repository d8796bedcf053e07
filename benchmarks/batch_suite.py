"""What batching is worth: requests of each allowed size, over gRPC."""

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from keras_lstm_dssm.benchmarks.measure import interleaved, seconds
from keras_lstm_dssm.benchmarks.own_towers import OwnTowers
from keras_lstm_dssm.benchmarks.processes import served
from keras_lstm_dssm.export.documents import Documents
from keras_lstm_dssm.export.export_models import export_models
from keras_lstm_dssm.export.warmup import BATCH_SIZES
from keras_lstm_dssm.serving.client.grpc_clients import Client
from keras_lstm_dssm.tools import serve

_CALLS = 20


def measure_batches(
    queries: Sequence[str], titles: Sequence[str], rounds: int
) -> dict[str, Any]:
    """Sends requests of 1, 8, 64 and 512 queries to the local service.

    A server that batches runs such requests when many clients send one query
    each. What a row costs in each size tells which sizes to allow, and what
    a request costs how long to wait for others.

    Args:
        queries: Sent in turn.
        titles: Distinct titles, for the retriever.
        rounds: Measurements of each size, in turn, of which the median
            counts.

    Returns:
        By model and size (`rows_8`, say): `ms`, of a request, and
        `rows_per_second`.
    """
    documents = Documents(list(titles), list(titles))
    with tempfile.TemporaryDirectory() as folder:
        export_models(OwnTowers().model, Path(folder), documents)
        with (
            served(serve.__name__, f"--models={folder}", "--port=0") as target,
            Client(target, timeout=60) as client,
        ):
            ways: dict[str, Callable[[list[str]], Any]] = {
                "query_encoder": client.encode,
                "retriever": partial(client.search, k=10),
            }
            return {
                name: _by_size(ask, queries, rounds)
                for name, ask in ways.items()
            }


def _by_size(
    ask: Callable[[list[str]], Any], queries: Sequence[str], rounds: int
) -> dict[str, dict[str, float]]:
    def measure(size: int) -> float:
        batches = [
            [queries[(start + i) % len(queries)] for i in range(size)]
            for start in range(0, _CALLS * size, size)
        ]
        return seconds(lambda: [ask(batch) for batch in batches]) / _CALLS

    times = interleaved(
        {str(size): partial(measure, size) for size in BATCH_SIZES}, rounds
    )
    return {
        f"rows_{size}": {
            "ms": 1000 * taken,
            "rows_per_second": int(size) / taken,
        }
        for size, taken in times.items()
    }
