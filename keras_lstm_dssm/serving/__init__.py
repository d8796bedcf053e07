"""Serving: a local server with TF Serving's services, and clients for both."""

from keras_lstm_dssm.serving.prediction_server import PredictionServer
from keras_lstm_dssm.serving.saved_models import (
    SavedEncoder,
    SavedKeyVec,
    SavedRetriever,
    SavedScorer,
)
from lstm_dssm_client import (
    Hit,
    HttpClient,
    KeyParts,
    Prediction,
    ServingError,
    VersionStatus,
    tls_context,
)
from lstm_dssm_client.grpc_client import AsyncClient, Client, tls_credentials

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
