"""Serving: how long one query takes, in process and over gRPC."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_lstm_dssm.benchmarks.measure import percentiles
from keras_lstm_dssm.benchmarks.own_towers import OwnTowers
from keras_lstm_dssm.export.saved_model import export_encoder
from keras_lstm_dssm.serving.client.grpc_clients import Client
from keras_lstm_dssm.serving.saved_models import SavedEncoder
from keras_lstm_dssm.serving.server.prediction_server import PredictionServer


def measure_serving(queries: Sequence[str], rounds: int) -> dict[str, Any]:
    """Times single queries, one after the other.

    Args:
        queries: Sent in turn, one a request.
        rounds: Passes over the queries; medians over them count.

    Returns:
        `in_process`, of the exported encoder, and `grpc`, of the same one
        through the local PredictionService and the client; each with
        `p50_ms` and `p99_ms`.
    """
    model = OwnTowers().model
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "query_encoder")
        export_encoder(model.query_encoder, path)
        encoder = SavedEncoder(path)
        with (
            PredictionServer(folder, port=0) as server,
            Client(f"127.0.0.1:{server.port}") as client,
        ):
            ways: dict[str, Callable[[str], Any]] = {
                "in_process": lambda query: encoder.encode([query]),
                "grpc": lambda query: client.encode([query]),
            }
            found: dict[str, list[np.ndarray]] = {name: [] for name in ways}
            for counts in range(rounds + 1):
                for name, run in ways.items():
                    taken = percentiles(run, queries)
                    if counts:
                        found[name].append(taken)
    return {
        name: dict(
            zip(
                ("p50_ms", "p99_ms"),
                np.median(taken, axis=0).tolist(),
                strict=True,
            )
        )
        for name, taken in found.items()
    }
