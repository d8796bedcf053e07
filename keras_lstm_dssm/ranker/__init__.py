"""Rankers, boosted trees over the scores of several systems."""

from keras_lstm_dssm.ranker.boosted_trees import BoostedTrees
from keras_lstm_dssm.ranker.overlap_features import OverlapFeatures
from keras_lstm_dssm.ranker.ranker import PairFeatures, Ranker
from keras_lstm_dssm.ranker.train_ranker import train_ranker
from keras_lstm_dssm.settings.recipes import RankerRecipe

__all__ = [
    "BoostedTrees",
    "OverlapFeatures",
    "PairFeatures",
    "Ranker",
    "RankerRecipe",
    "train_ranker",
]
