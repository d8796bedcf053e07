"""Fixtures of the export tests."""

from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from tensorflow_serving.apis.model_service_pb2_grpc import ModelServiceStub
from tensorflow_serving.apis.prediction_service_pb2_grpc import (
    PredictionServiceStub,
)

from keras_lstm_dssm.serving.client.grpc_clients import Client
from keras_lstm_dssm.serving.server.prediction_server import PredictionServer
from tests.serving.tiny_models import save_models


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of models; tests must not write into it."""
    return save_models(tmp_path_factory.mktemp("tiny_models"))


@pytest.fixture(scope="session")
def server(tiny_models: Path) -> Iterator[PredictionServer]:
    """Serves the two newest versions of each tiny model."""
    with PredictionServer(tiny_models, port=0, versions=2) as running:
        yield running


@pytest.fixture(scope="session")
def client(server: PredictionServer) -> Iterator[Client]:
    """Speaks to `server`."""
    with Client(f"127.0.0.1:{server.port}", timeout=20) as connected:
        yield connected


@pytest.fixture(scope="session")
def channel(server: PredictionServer) -> Iterator[grpc.Channel]:
    """A connection to `server`."""
    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as opened:
        yield opened


@pytest.fixture(scope="session")
def predictions(channel: grpc.Channel) -> PredictionServiceStub:
    """For Predict and GetModelMetadata, by hand."""
    return PredictionServiceStub(channel)


@pytest.fixture(scope="session")
def model_service(channel: grpc.Channel) -> ModelServiceStub:
    """For GetModelStatus, by hand."""
    return ModelServiceStub(channel)
