"""Recipes found by a preset's name, or by the settings of a run."""

from collections.abc import Mapping
from typing import Any

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.models.recipes import (
    KEYVEC_PRESETS,
    PRESETS,
    SCORER_PRESETS,
    KeyVecRecipe,
    Recipe,
    ScorerRecipe,
)

AnyRecipe = Recipe | ScorerRecipe | KeyVecRecipe


def find_recipe(recipe: str | AnyRecipe) -> AnyRecipe:
    """Returns the recipe of a preset's name; a recipe is returned as it is.

    Raises:
        InputError: There is no such preset.

    Example:
    >>> find_recipe("lstm_96").encoder_config["cells"]
    96
    """
    if isinstance(recipe, AnyRecipe):
        return recipe
    presets: dict[str, AnyRecipe] = {
        **PRESETS,
        **SCORER_PRESETS,
        **KEYVEC_PRESETS,
    }
    if recipe not in presets:
        raise InputError(
            f"unknown preset {recipe!r}: expected one of {', '.join(presets)}"
        )
    return presets[recipe]


def recipe_from_dict(values: Mapping[str, Any]) -> AnyRecipe:
    """Makes a recipe of any kind from the result of its `to_dict`.

    Raises:
        InputError: A name is unknown, or a value is wrong.

    Example:
    >>> recipe = find_recipe("keyvec")
    >>> recipe_from_dict(recipe.to_dict()) == recipe
    True
    """
    kinds: dict[str, type[AnyRecipe]] = {
        "matcher": ScorerRecipe,
        "max_sentences": KeyVecRecipe,
    }
    for name, kind in kinds.items():
        if name in values:
            return kind.from_dict(values)
    return Recipe.from_dict(values)
