"""Connections to the server of the tests, without the package's clients."""

import http.client
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from tensorflow_serving.apis.model_service_pb2_grpc import ModelServiceStub
from tensorflow_serving.apis.prediction_service_pb2_grpc import (
    PredictionServiceStub,
)


@pytest.fixture(scope="session")
def channel(server) -> Iterator[grpc.Channel]:
    """A connection to `server`."""
    with grpc.insecure_channel(server.address) as opened:
        yield opened


@pytest.fixture(scope="session")
def predictions(channel) -> PredictionServiceStub:
    """Predict and GetModelMetadata of `server`."""
    return PredictionServiceStub(channel)


@pytest.fixture(scope="session")
def model_service(channel) -> ModelServiceStub:
    """GetModelStatus of `server`."""
    return ModelServiceStub(channel)


Send = Callable[..., tuple[int, Any]]


@pytest.fixture
def send(server) -> Iterator[Send]:
    """Sends a request on one connection; returns its status and its JSON."""
    connection = http.client.HTTPConnection(server.http_address.split("/")[2])

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
