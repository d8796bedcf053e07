"""Clients for TF Serving and for the local server."""

from keras_lstm_dssm.serving.client.async_client import AsyncClient
from keras_lstm_dssm.serving.client.channel import ServingError
from keras_lstm_dssm.serving.client.messages import Prediction, VersionStatus
from keras_lstm_dssm.serving.client.sync_client import Client

__all__ = [
    "AsyncClient",
    "Client",
    "Prediction",
    "ServingError",
    "VersionStatus",
]
