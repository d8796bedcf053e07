"""Clients for TF Serving and for the local server."""

from keras_lstm_dssm.serving.client.calls import Hit, Prediction, VersionStatus
from keras_lstm_dssm.serving.client.channel import ServingError
from keras_lstm_dssm.serving.client.grpc_clients import AsyncClient, Client

__all__ = [
    "AsyncClient",
    "Client",
    "Hit",
    "Prediction",
    "ServingError",
    "VersionStatus",
]
