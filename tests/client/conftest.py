"""A server over gRPC and HTTP, and a client of each."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def clients(tiny_models: Path) -> Iterator[tuple]:
    """A `Client` and an `HttpClient` of one server."""
    from keras_lstm_dssm.serving import PredictionServer
    from keras_lstm_dssm.serving.prediction_server import served_over_http
    from lstm_dssm_client import Client, HttpClient

    with (
        PredictionServer(
            tiny_models, port=0, versions=2, max_k=1_000_000, metrics=True
        ) as server,
        served_over_http(server, port=0) as url,
        Client(server.address, timeout=20) as client,
        HttpClient(url, timeout=20) as http_client,
    ):
        yield client, http_client


@pytest.fixture
def client(clients: tuple) -> Any:
    """A `Client` of the server."""
    return clients[0]
