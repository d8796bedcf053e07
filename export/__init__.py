"""Exports trained models: SavedModels for TF Serving, and portable files."""

from keras_lstm_dssm.export.bulk.documents import Documents, read_documents
from keras_lstm_dssm.export.bulk.parts import read_ids
from keras_lstm_dssm.export.export_models import (
    export_model,
    export_models,
    export_retriever,
)
from keras_lstm_dssm.export.portable import export_portable
from keras_lstm_dssm.export.publish.versions import (
    verify_manifest,
    write_manifest,
)

__all__ = [
    "Documents",
    "export_model",
    "export_models",
    "export_portable",
    "export_retriever",
    "read_documents",
    "read_ids",
    "verify_manifest",
    "write_manifest",
]
