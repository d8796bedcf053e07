"""Training and test data: click logs, BEIR folders, documents, batches."""

from keras_lstm_dssm.data.api_documents import build_api_documents
from keras_lstm_dssm.data.augmentation import title_pairs
from keras_lstm_dssm.data.batches import (
    ClickFrequencies,
    CorpusNegatives,
    GivenNegatives,
    evaluation_batches,
    training_batches,
)
from keras_lstm_dssm.data.click_log import ClickLog, Pair, write_pairs
from keras_lstm_dssm.data.collection import Collection, write_collection
from keras_lstm_dssm.data.documents import (
    Document,
    DocumentFolder,
    write_documents,
)
from keras_lstm_dssm.data.sources import (
    DataSource,
    open_collection,
    open_documents,
    open_log,
)
from keras_lstm_dssm.data.teacher_folder import TeacherVectors
from keras_lstm_dssm.data.triples import Triples
from keras_lstm_dssm.evaluation.measures import click_grades

__all__ = [
    "ClickFrequencies", "ClickLog", "Collection", "CorpusNegatives",
    "DataSource", "Document", "DocumentFolder", "GivenNegatives", "Pair",
    "TeacherVectors", "Triples", "build_api_documents", "click_grades",
    "evaluation_batches", "open_collection", "open_documents", "open_log",
    "title_pairs", "training_batches", "write_collection",
    "write_documents", "write_pairs",
]  # fmt: skip
