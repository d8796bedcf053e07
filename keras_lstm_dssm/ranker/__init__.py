"""Rankers, boosted trees over the scores of several systems."""

from keras_lstm_dssm.ranker.ranker import Ranker
from keras_lstm_dssm.ranker.train_ranker import train_ranker
from keras_lstm_dssm.settings.recipes import RankerRecipe

__all__ = [
    "Ranker",
    "RankerRecipe",
    "train_ranker",
]
