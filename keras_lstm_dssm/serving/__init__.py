"""Serving: a local server with TF Serving's services, and clients for both."""

from keras_lstm_dssm.evaluation.index import Hit
from keras_lstm_dssm.serving.client import (
    AsyncClient,
    Client,
    Prediction,
    ServingError,
    VersionStatus,
)
from keras_lstm_dssm.serving.key_parts import KeyParts
from keras_lstm_dssm.serving.saved_models import (
    SavedEncoder,
    SavedKeyVec,
    SavedRetriever,
    SavedScorer,
)
from keras_lstm_dssm.serving.server import PredictionServer

__all__ = [
    "AsyncClient",
    "Client",
    "Hit",
    "KeyParts",
    "Prediction",
    "PredictionServer",
    "SavedEncoder",
    "SavedKeyVec",
    "SavedRetriever",
    "SavedScorer",
    "ServingError",
    "VersionStatus",
]
