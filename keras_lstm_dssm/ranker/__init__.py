"""Rankers, boosted trees over the scores of several systems."""

from keras_lstm_dssm.ranker.boosted_trees import BoostedTrees
from keras_lstm_dssm.ranker.overlap_features import OverlapFeatures
from keras_lstm_dssm.ranker.ranker import PairFeatures, Ranker
from keras_lstm_dssm.ranker.train_ranker import TreeOptions, train_ranker

__all__ = [
    "BoostedTrees",
    "OverlapFeatures",
    "PairFeatures",
    "Ranker",
    "TreeOptions",
    "train_ranker",
]
