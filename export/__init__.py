"""From a trained model to TF Serving: SavedModels, retriever, client."""

from keras_lstm_dssm.export.async_client import AsyncClient
from keras_lstm_dssm.export.client import Client
from keras_lstm_dssm.export.client_calls import Hit, Prediction, VersionStatus
from keras_lstm_dssm.export.documents import Documents, read_documents
from keras_lstm_dssm.export.export_models import export_models
from keras_lstm_dssm.export.prediction_service import PredictionServer
from keras_lstm_dssm.export.retriever import export_retriever
from keras_lstm_dssm.export.saved_encoder import SavedEncoder, SavedRetriever
from keras_lstm_dssm.export.saved_model import export_encoder
from keras_lstm_dssm.export.serving_error import ServingError

__all__ = [
    "AsyncClient",
    "Client",
    "Documents",
    "Hit",
    "Prediction",
    "PredictionServer",
    "SavedEncoder",
    "SavedRetriever",
    "ServingError",
    "VersionStatus",
    "export_encoder",
    "export_models",
    "export_retriever",
    "read_documents",
]
