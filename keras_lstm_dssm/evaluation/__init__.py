"""Evaluate rankings: systems, tasks, runs, measures and exact search."""

from keras_lstm_dssm.evaluation.dense_system import DenseSystem
from keras_lstm_dssm.evaluation.index import Hit, Index
from keras_lstm_dssm.evaluation.measures import (
    MEASURES,
    QueryMeasures,
    evaluate,
    evaluate_queries,
    mean,
    random_order,
)
from keras_lstm_dssm.evaluation.ranking import Qrels, Ranker, Run, System
from keras_lstm_dssm.evaluation.task import Task, evaluate_systems, format_table
from keras_lstm_dssm.evaluation.trec import read_run, write_qrels, write_run

__all__ = [
    "MEASURES",
    "DenseSystem",
    "Hit",
    "Index",
    "Qrels",
    "QueryMeasures",
    "Ranker",
    "Run",
    "System",
    "Task",
    "evaluate",
    "evaluate_queries",
    "evaluate_systems",
    "format_table",
    "mean",
    "random_order",
    "read_run",
    "write_qrels",
    "write_run",
]
