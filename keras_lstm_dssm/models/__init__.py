"""Models of pairs of texts, and the recipes that make and train them."""

from keras_lstm_dssm.models.pair_scorer import PairScorer
from keras_lstm_dssm.models.recipe import PRESETS, Recipe, find_recipe
from keras_lstm_dssm.models.two_tower import TwoTower

__all__ = ["PRESETS", "PairScorer", "Recipe", "TwoTower", "find_recipe"]
