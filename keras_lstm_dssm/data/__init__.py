"""Training and test data: click logs, BEIR folders, documents, batches."""

from keras_lstm_dssm.data.api_documents import build_api_documents
from keras_lstm_dssm.data.api_search import build_api_search
from keras_lstm_dssm.data.api_sentences import build_api_sentences
from keras_lstm_dssm.data.augmentation import redrawn_pairs, title_pairs
from keras_lstm_dssm.data.batches import (
    ClickFrequencies,
    GivenNegatives,
    evaluation_batches,
    training_batches,
)
from keras_lstm_dssm.data.click_log import (
    ClickLog,
    Pair,
    write_pairs,
)
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
from keras_lstm_dssm.data.split import split_log
from keras_lstm_dssm.data.statistics import alphabet_warning
from keras_lstm_dssm.data.triples import (
    JudgedList,
    Triples,
    clicked_lists,
    judged_lists,
)
from keras_lstm_dssm.evaluation.measures import click_grades

__all__ = [
    "ClickFrequencies",
    "ClickLog",
    "Collection",
    "DataSource",
    "Document",
    "DocumentFolder",
    "GivenNegatives",
    "JudgedList",
    "Pair",
    "Triples",
    "alphabet_warning",
    "build_api_documents",
    "build_api_search",
    "build_api_sentences",
    "click_grades",
    "clicked_lists",
    "evaluation_batches",
    "judged_lists",
    "open_collection",
    "open_documents",
    "open_log",
    "redrawn_pairs",
    "split_log",
    "title_pairs",
    "training_batches",
    "write_collection",
    "write_documents",
    "write_pairs",
]
