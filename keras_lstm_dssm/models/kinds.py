"""The kinds of models, and their presets and recipes, found by name."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.models.keyvec import KeyVec
from keras_lstm_dssm.models.pair_scorer import PairScorer
from keras_lstm_dssm.models.two_tower import TwoTower
from keras_lstm_dssm.settings import presets
from keras_lstm_dssm.settings.recipes import (
    KeyVecRecipe,
    Recipe,
    ScorerRecipe,
)

AnyRecipe = Recipe | ScorerRecipe | KeyVecRecipe

PRESETS: dict[str, Recipe] = {
    name: Recipe(**settings) for name, settings in presets.TOWER_PRESETS.items()
}
"""Name -> recipe: the systems of the paper's Table IV with its sizes; `best`,
chosen on the dev splits of four data sets (docs/results/best.md), where it is
above BM25 on two, level on homedepot and below on wikiqa, whose clicks are
few; and `best_words` and `word_sum`, with words that are fitted to a teacher
(docs/results/few_clicks.md)."""

SCORER_PRESETS: dict[str, ScorerRecipe] = {
    name: ScorerRecipe(**settings)
    for name, settings in presets.SCORER_PRESETS.items()
}
"""Name -> recipe: MV-LSTM and the models that Wan et al. 2016 compare it with.
A name that ends with `_wan` is the smaller form that they ran; without, that
of the model's own paper."""

KEYVEC_PRESETS: dict[str, KeyVecRecipe] = {
    name: KeyVecRecipe(**settings)
    for name, settings in presets.KEYVEC_PRESETS.items()
}
"""Name -> recipe: KeyVec, learnt from excerpts; the same with key words of all
the text; KeyVec with the loss as printed, learnt from whole documents; and
what is left of `keyvec` without L_read, without L_enc, and with a p_i of 1
for all sentences."""


class ModelKind(NamedTuple):
    """Describes a kind of model; upper layers have dictionaries by its name."""

    # The name in these dictionaries, the `kind` of models and recipes.
    name: str
    noun: str  # what messages call it
    model: type  # the class of the models
    recipe: Any  # the class of the recipes
    presets: Mapping[str, Any] = {}  # name -> recipe
    marker: str = ""  # a setting that only these recipes have


TOWERS = ModelKind("towers", "two towers", TwoTower, Recipe, PRESETS)
SCORER = ModelKind(
    "scorer", "pair scorer", PairScorer, ScorerRecipe, SCORER_PRESETS,
    "matcher",
)  # fmt: skip
KEYVEC = ModelKind(
    "keyvec", "KeyVec", KeyVec, KeyVecRecipe, KEYVEC_PRESETS,
    "max_sentences",
)  # fmt: skip

KINDS = {kind.name: kind for kind in (TOWERS, SCORER, KEYVEC)}
"""Name -> kind of model."""


def kind_name(model: Any) -> str | None:
    """Returns the name of the kind of a model, `None` for another object."""
    name = getattr(model, "kind", None)
    return name if name in KINDS else None


def kind_of(model: Any) -> ModelKind:
    """Returns the kind of a model or of a recipe, or raises `InputError`."""
    if name := kind_name(model):
        return KINDS[name]
    raise InputError(
        f"found a {type(model).__name__}, expected a model: "
        f"{', '.join(kind.model.__name__ for kind in KINDS.values())}"
    )


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
    known: dict[str, AnyRecipe] = {}
    for kind in KINDS.values():
        known |= kind.presets
    if not isinstance(recipe, str) or recipe not in known:
        raise InputError(
            f"unknown preset {recipe!r}: expected one of {', '.join(known)}"
        )
    return known[recipe]


def recipe_from_dict(values: Mapping[str, Any]) -> AnyRecipe:
    """Makes a recipe of any kind from the result of its `to_dict`.

    Raises:
        InputError: A name is unknown, or a value is wrong.

    Example:
    >>> recipe = find_recipe("keyvec")
    >>> recipe_from_dict(recipe.to_dict()) == recipe
    True
    """
    for kind in KINDS.values():
        if kind.marker in values:
            return kind.recipe.from_dict(values)
    return Recipe.from_dict(values)
