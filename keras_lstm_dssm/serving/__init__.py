"""Serving: a local server with TF Serving's services, and clients for both."""

from keras_lstm_dssm.serving.client import (
    AsyncClient,
    Client,
    HttpClient,
    Prediction,
    ServingError,
    VersionStatus,
    tls_context,
    tls_credentials,
)
from keras_lstm_dssm.serving.saved_models import (
    SavedEncoder,
    SavedKeyVec,
    SavedRetriever,
    SavedScorer,
)
from keras_lstm_dssm.serving.server import PredictionServer
from lstm_dssm_client.results import Hit, KeyParts

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
