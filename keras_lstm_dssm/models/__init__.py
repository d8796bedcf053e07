"""Models of pairs of texts and of documents, and their recipes."""

from keras_lstm_dssm.models.keyvec import KeyVec
from keras_lstm_dssm.models.kinds import (
    AnyRecipe,
    find_recipe,
    recipe_from_dict,
)
from keras_lstm_dssm.models.pair_scorer import PairScorer
from keras_lstm_dssm.models.recipes import (
    KEYVEC_PRESETS,
    PRESETS,
    SCORER_PRESETS,
    KeyVecRecipe,
    Recipe,
    ScorerRecipe,
)
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
