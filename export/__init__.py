"""Exports trained models as SavedModels, in a folder for TF Serving."""

from keras_lstm_dssm.export.bulk.documents import Documents, read_documents
from keras_lstm_dssm.export.export_models import (
    export_encoder,
    export_keyvec,
    export_models,
    export_retriever,
    export_scorer,
)
from keras_lstm_dssm.export.graphs.encoder import mixture_towers
from keras_lstm_dssm.export.publish.retriever_update import refresh_retriever

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
