"""Serving: a local server with TF Serving's services, and clients for both."""

from keras_lstm_dssm.evaluation.index import Hit
from keras_lstm_dssm.serving.client import (
    AsyncClient,
    Client,
    Prediction,
    ServingError,
    VersionStatus,
)
from keras_lstm_dssm.serving.saved_models import (
    SavedEncoder,
    SavedRetriever,
    SavedScorer,
)
from keras_lstm_dssm.serving.server import PredictionServer

__all__ = [
    "AsyncClient",
    "Client",
    "Hit",
    "Prediction",
    "PredictionServer",
    "SavedEncoder",
    "SavedRetriever",
    "SavedScorer",
    "ServingError",
    "VersionStatus",
]
