"""Evaluate rankings: systems, tasks, runs, measures and exact search."""

from keras_lstm_dssm.evaluation.clustering import (
    CLUSTER_MEASURES,
    ClusterTask,
    cluster_measures,
    k_means,
)
from keras_lstm_dssm.evaluation.dense_system import DenseSystem
from keras_lstm_dssm.evaluation.document_task import (
    DOCUMENT_MEASURES,
    DocumentRetrieval,
    DocumentTasks,
    document_sentences,
    document_tasks,
    document_text,
    evaluate_documents,
    mean_documents,
)
from keras_lstm_dssm.evaluation.index import Hit, Index
from keras_lstm_dssm.evaluation.lists import (
    LIST_MEASURES,
    ConstantScorer,
    DocumentOrder,
    ListTask,
    evaluate_lists,
    list_measures,
    mean_of_lists,
)
from keras_lstm_dssm.evaluation.measures import (
    MEASURES,
    QueryMeasures,
    evaluate,
    evaluate_queries,
    mean,
    random_order,
)
from keras_lstm_dssm.evaluation.mixture import Mixture
from keras_lstm_dssm.evaluation.model_system import system_of
from keras_lstm_dssm.evaluation.pair_system import PairSystem
from keras_lstm_dssm.evaluation.ranking import (
    ListScorer,
    ListScores,
    Qrels,
    Ranker,
    Run,
    System,
    rank_lists,
)
from keras_lstm_dssm.evaluation.remembered_vectors import RememberedVectors
from keras_lstm_dssm.evaluation.significance import compare_systems
from keras_lstm_dssm.evaluation.task import Task, evaluate_systems, format_table
from keras_lstm_dssm.evaluation.trec import read_run, write_qrels, write_run
from keras_lstm_dssm.evaluation.weight_search import (
    ChosenWeights,
    choose_weights,
)

__all__ = [
    "CLUSTER_MEASURES",
    "DOCUMENT_MEASURES",
    "LIST_MEASURES",
    "MEASURES",
    "ChosenWeights",
    "ClusterTask",
    "ConstantScorer",
    "DenseSystem",
    "DocumentOrder",
    "DocumentRetrieval",
    "DocumentTasks",
    "Hit",
    "Index",
    "ListScorer",
    "ListScores",
    "ListTask",
    "Mixture",
    "PairSystem",
    "Qrels",
    "QueryMeasures",
    "Ranker",
    "RememberedVectors",
    "Run",
    "System",
    "Task",
    "choose_weights",
    "cluster_measures",
    "compare_systems",
    "document_sentences",
    "document_tasks",
    "document_text",
    "evaluate",
    "evaluate_documents",
    "evaluate_lists",
    "evaluate_queries",
    "evaluate_systems",
    "format_table",
    "k_means",
    "list_measures",
    "mean",
    "mean_documents",
    "mean_of_lists",
    "random_order",
    "rank_lists",
    "read_run",
    "system_of",
    "write_qrels",
    "write_run",
]
