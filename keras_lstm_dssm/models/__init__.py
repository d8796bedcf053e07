"""The models (two towers, pair scorers and KeyVecs) and their recipes."""

from keras_lstm_dssm.models.builders import build_model, find_recipe
from keras_lstm_dssm.models.keyvec import KeyVec
from keras_lstm_dssm.models.pair_scorer import PairScorer
from keras_lstm_dssm.models.two_tower import TwoTower
from keras_lstm_dssm.settings.kinds import (
    ModelKind,
    recipe_from_dict,
    register_kind,
)
from keras_lstm_dssm.settings.recipes import (
    KEYVEC_PRESETS,
    PRESETS,
    SCORER_PRESETS,
    KeyVecRecipe,
    ModelRecipe,
    Recipe,
    ScorerRecipe,
)

__all__ = [
    "KEYVEC_PRESETS",
    "PRESETS",
    "SCORER_PRESETS",
    "KeyVec",
    "KeyVecRecipe",
    "ModelKind",
    "ModelRecipe",
    "PairScorer",
    "Recipe",
    "ScorerRecipe",
    "TwoTower",
    "build_model",
    "find_recipe",
    "recipe_from_dict",
    "register_kind",
]
