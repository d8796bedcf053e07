"""Serving: a local server with TF Serving's services, and clients for both."""

from keras_lstm_dssm.serving.saved_models import (
    SavedEncoder,
    SavedKeyVec,
    SavedRetriever,
    SavedScorer,
)
from keras_lstm_dssm.serving.server import PredictionServer
from lstm_dssm_client import (
    Hit,
    HttpClient,
    KeyParts,
    Prediction,
    ServingError,
    VersionStatus,
    tls_context,
)
from lstm_dssm_client.async_client import AsyncClient
from lstm_dssm_client.grpc_client import Client
from lstm_dssm_client.grpc_connection import tls_credentials

__all__ = [
    "AsyncClient",
    "Client",
    "Hit",
    "HttpClient",
    "KeyParts",
    "Prediction",
    "PredictionServer",
    "SavedEncoder",
    "SavedKeyVec",
    "SavedRetriever",
    "SavedScorer",
    "ServingError",
    "VersionStatus",
    "tls_context",
    "tls_credentials",
]
