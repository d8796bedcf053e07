"""Models of pairs of texts and of documents, and their recipes."""

from keras_lstm_dssm.models.keyvec import KeyVec
from keras_lstm_dssm.models.kinds import (
    KEYVEC_PRESETS,
    PRESETS,
    SCORER_PRESETS,
    AnyRecipe,
    find_recipe,
    recipe_from_dict,
)
from keras_lstm_dssm.models.pair_scorer import PairScorer
from keras_lstm_dssm.models.two_tower import TwoTower
from keras_lstm_dssm.settings.recipes import (
    KeyVecRecipe,
    Recipe,
    ScorerRecipe,
)

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
