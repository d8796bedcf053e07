"""Rankers: boosted trees over what several systems know of a pair of texts."""

from keras_lstm_dssm.ranker.boosted_trees import BoostedTrees
from keras_lstm_dssm.ranker.overlap_features import OverlapFeatures

__all__ = ["BoostedTrees", "OverlapFeatures"]
