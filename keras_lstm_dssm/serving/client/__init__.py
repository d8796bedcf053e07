"""Clients for TF Serving and for the local server."""

from keras_lstm_dssm.serving.client.calls import Prediction, VersionStatus
from keras_lstm_dssm.serving.client.channel import ServingError
from keras_lstm_dssm.serving.client.grpc_clients import AsyncClient, Client

__all__ = [
    "AsyncClient",
    "Client",
    "Prediction",
    "ServingError",
    "VersionStatus",
]
