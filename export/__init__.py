"""Exports trained models as SavedModels, in a folder for TF Serving."""

from keras_lstm_dssm.export.documents import Documents, read_documents
from keras_lstm_dssm.export.encoder import export_encoder
from keras_lstm_dssm.export.export_models import export_models
from keras_lstm_dssm.export.export_retriever import export_retriever
from keras_lstm_dssm.export.keyvec import export_keyvec
from keras_lstm_dssm.export.mixture import mixture_towers
from keras_lstm_dssm.export.refresh import refresh_retriever
from keras_lstm_dssm.export.scorer import export_scorer

__all__ = [
    "Documents",
    "export_encoder",
    "export_keyvec",
    "export_models",
    "export_retriever",
    "export_scorer",
    "mixture_towers",
    "read_documents",
    "refresh_retriever",
]
