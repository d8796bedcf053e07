"""Data: click logs, BEIR folders and the API-search corpus."""

from keras_lstm_dssm.data.api_search import build_api_search
from keras_lstm_dssm.data.bad_lines import Pair, describe_bad
from keras_lstm_dssm.data.batches import evaluation_batches, training_batches
from keras_lstm_dssm.data.beir import Collection, describe
from keras_lstm_dssm.data.beir_writer import write_collection
from keras_lstm_dssm.data.click_frequencies import ClickFrequencies
from keras_lstm_dssm.data.click_log import ClickLog
from keras_lstm_dssm.data.given_negatives import GivenNegatives
from keras_lstm_dssm.data.source import open_collection, open_files, open_log
from keras_lstm_dssm.data.split import split_log, split_of

__all__ = [
    "ClickFrequencies",
    "ClickLog",
    "Collection",
    "GivenNegatives",
    "Pair",
    "build_api_search",
    "describe",
    "describe_bad",
    "evaluation_batches",
    "open_collection",
    "open_files",
    "open_log",
    "split_log",
    "split_of",
    "training_batches",
    "write_collection",
]
