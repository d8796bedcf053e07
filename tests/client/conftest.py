"""A server over gRPC and HTTP, and a client of each."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def clients(tiny_models: Path) -> Iterator[tuple]:
    """A `Client` and an `HttpClient` of one server."""
    from keras_lstm_dssm.serving import Client, PredictionServer
    from keras_lstm_dssm.serving.limits import Bounds
    from lstm_dssm_client import HttpClient

    with (
        PredictionServer(
            tiny_models,
            port=0,
            http_port=0,
            versions=2,
            bounds=Bounds(max_k=1_000_000),
        ) as server,
        Client(server.address, timeout=20) as client,
        HttpClient(server.http_address, timeout=20) as http_client,
    ):
        yield client, http_client


@pytest.fixture
def client(clients: tuple) -> Any:
    """A `Client` of the server."""
    return clients[0]


def run(client: Any, work: Callable[[Any], Any]) -> Any:
    """Does work with an asyncio client of the server of another client."""
    from lstm_dssm_client import AsyncClient

    async def main() -> Any:
        async with AsyncClient(client.target, timeout=20) as connected:
            return await work(connected)

    return asyncio.run(main())


def unit(rows: Any) -> Any:
    """Divides each row of numbers by its length."""
    import numpy as np

    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)
