"""Evaluates rankings: systems, tasks, runs, measures and exact search."""

from keras_lstm_dssm.evaluation.bm25 import TOKENIZERS, BM25System
from keras_lstm_dssm.evaluation.clustering import ClusterTask
from keras_lstm_dssm.evaluation.index import Hit, Index
from keras_lstm_dssm.evaluation.measures import MEASURES, evaluate_queries, mean
from keras_lstm_dssm.evaluation.mixture import Mixture, choose_weights
from keras_lstm_dssm.evaluation.runs import System, read_run, write_run
from keras_lstm_dssm.evaluation.significance import compare_systems
from keras_lstm_dssm.evaluation.systems import (
    DenseSystem,
    PairSystem,
    system_of,
)
from keras_lstm_dssm.evaluation.task import (
    Task,
    evaluate_systems,
    format_table,
    measure_systems,
)

__all__ = [
    "MEASURES", "TOKENIZERS", "BM25System", "ClusterTask", "DenseSystem", "Hit",
    "Index", "Mixture", "PairSystem", "System", "Task", "choose_weights",
    "compare_systems", "evaluate_queries", "evaluate_systems", "format_table",
    "mean", "measure_systems", "read_run", "system_of", "write_run",
]  # fmt: skip
