"""Models of pairs of texts, and the recipes that make and train them."""

from keras_lstm_dssm.models.find_recipe import (
    AnyRecipe,
    find_recipe,
    recipe_from_dict,
)
from keras_lstm_dssm.models.pair_scorer import PairScorer
from keras_lstm_dssm.models.recipe import PRESETS, Recipe
from keras_lstm_dssm.models.scorer_recipe import SCORER_PRESETS, ScorerRecipe
from keras_lstm_dssm.models.two_tower import TwoTower

__all__ = [
    "PRESETS",
    "SCORER_PRESETS",
    "AnyRecipe",
    "PairScorer",
    "Recipe",
    "ScorerRecipe",
    "TwoTower",
    "find_recipe",
    "recipe_from_dict",
]
