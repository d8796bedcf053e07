"""Models of pairs of texts and of documents, and their recipes."""

from keras_lstm_dssm.models.find_recipe import (
    AnyRecipe,
    find_recipe,
    recipe_from_dict,
)
from keras_lstm_dssm.models.keyvec import KeyVec
from keras_lstm_dssm.models.keyvec_recipe import KEYVEC_PRESETS, KeyVecRecipe
from keras_lstm_dssm.models.pair_scorer import PairScorer
from keras_lstm_dssm.models.recipe import PRESETS, Recipe
from keras_lstm_dssm.models.scorer_recipe import SCORER_PRESETS, ScorerRecipe
from keras_lstm_dssm.models.two_tower import TwoTower

__all__ = [
    "KEYVEC_PRESETS",
    "PRESETS",
    "SCORER_PRESETS",
    "AnyRecipe",
    "KeyVec",
    "KeyVecRecipe",
    "PairScorer",
    "Recipe",
    "ScorerRecipe",
    "TwoTower",
    "find_recipe",
    "recipe_from_dict",
]
