"""One server and its clients, for all tests of serving."""

from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from tensorflow_serving.apis.model_service_pb2_grpc import ModelServiceStub
from tensorflow_serving.apis.prediction_service_pb2_grpc import (
    PredictionServiceStub,
)

from keras_lstm_dssm.serving import Client, PredictionServer


@pytest.fixture(scope="session")
def server(tiny_models: Path) -> Iterator[PredictionServer]:
    """Runs a gRPC server with the two newest versions of `tiny_models`."""
    with PredictionServer(
        tiny_models, port=0, versions=2, max_k=1_000_000
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
