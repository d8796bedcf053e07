"""Servers and their clients, for all tests of serving."""

import http.client
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import pytest
from tensorflow_serving.apis.model_service_pb2_grpc import ModelServiceStub
from tensorflow_serving.apis.prediction_service_pb2_grpc import (
    PredictionServiceStub,
)

from keras_lstm_dssm.serving import Client, PredictionServer
from keras_lstm_dssm.serving.limits import Bounds
from keras_lstm_dssm.serving.prediction_server import Page


@pytest.fixture(scope="session")
def server(tiny_models: Path) -> Iterator[PredictionServer]:
    """Runs a gRPC server with the two newest versions of `tiny_models`."""
    with PredictionServer(
        tiny_models, port=0, versions=2, bounds=Bounds(max_k=1_000_000)
    ) as running:
        yield running


@pytest.fixture(scope="session")
def client(server: PredictionServer) -> Iterator[Client]:
    """A client of `server`."""
    with Client(f"127.0.0.1:{server.port}", timeout=20) as connected:
        yield connected


@pytest.fixture(scope="session")
def channel(server: PredictionServer) -> Iterator[grpc.Channel]:
    """A connection to `server`."""
    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as opened:
        yield opened


@pytest.fixture(scope="session")
def predictions(channel: grpc.Channel) -> PredictionServiceStub:
    """Predict and GetModelMetadata of `server`, without a client."""
    return PredictionServiceStub(channel)


@pytest.fixture(scope="session")
def model_service(channel: grpc.Channel) -> ModelServiceStub:
    """GetModelStatus of `server`, without a client."""
    return ModelServiceStub(channel)


class Served(NamedTuple):
    """A server of both protocols, and its click log."""

    url: str
    server: PredictionServer
    clicks: Path


@pytest.fixture(scope="session")
def served(tiny_models: Path, tmp_path_factory) -> Iterator[Served]:
    """Runs a server of gRPC and HTTP with the models of `tiny_models`.

    It serves the two newest versions of each, and writes a click log.
    """
    clicks = tmp_path_factory.mktemp("clicks") / "clicks.tsv"
    with PredictionServer(
        tiny_models,
        port=0,
        http_port=0,
        versions=2,
        bounds=Bounds(max_message_mb=1),
        page=Page(click_log=clicks),
    ) as server:
        assert server.http_address
        yield Served(server.http_address, server, clicks)


Send = Callable[..., tuple[int, Any]]


@pytest.fixture
def send(served: Served) -> Iterator[Send]:
    """Sends a request on one connection; returns its status and its JSON."""
    connection = http.client.HTTPConnection(served.url.split("/")[2])

    def sent(
        method: str, path: str, body: str | bytes = b"", **headers: str
    ) -> tuple[int, Any]:
        connection.request(
            method, path, body.encode() if isinstance(body, str) else body,
            {name.replace("_", "-"): value for name, value in headers.items()},
        )  # fmt: skip
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())

    yield sent
    connection.close()


@pytest.fixture
def numbers(tiny_models: Path, tmp_path) -> Path:
    """Returns a folder of models that has the tiny model `numbers` alone."""
    (tmp_path / "numbers").symlink_to(tiny_models / "numbers")
    return tmp_path
