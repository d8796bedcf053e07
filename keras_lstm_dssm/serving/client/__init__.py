"""Clients for TF Serving and for the local server."""

from keras_lstm_dssm.serving.client.async_client import AsyncClient
from keras_lstm_dssm.serving.client.connection import tls_credentials
from keras_lstm_dssm.serving.client.sync_client import Client
from lstm_dssm_client import (
    HttpClient,
    Prediction,
    ServingError,
    VersionStatus,
    tls_context,
)

__all__ = [
    "AsyncClient",
    "Client",
    "HttpClient",
    "Prediction",
    "ServingError",
    "VersionStatus",
    "tls_context",
    "tls_credentials",
]
