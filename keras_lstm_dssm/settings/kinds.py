"""Defines `ModelKind`: the classes and functions for one kind of model.

Classes and functions that need TensorFlow are given as strings,
"package.module:name", and are imported when they are used.
"""

import dataclasses
import difflib
import pkgutil
from collections.abc import Mapping
from typing import Any, Literal

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.settings.fields import Settings, help_of
from keras_lstm_dssm.settings.recipes import (
    KEYVEC_PRESETS,
    PRESETS,
    SCORER_PRESETS,
    KeyVecRecipe,
    ModelRecipe,
    Recipe,
    ScorerRecipe,
)


@dataclasses.dataclass(frozen=True, eq=False)
class ModelKind:
    """Describes a kind of model: its recipe, its classes and functions.

    The attributes `model` to `table` are strings "package.module:name".

    Attributes:
        name: The value of the attribute `kind` of the models and recipes.
        noun: What messages and cards call a model.
        plural: What messages and flags call several models.
        recipe: The class of the recipes, a `ModelRecipe`.
        marker: A field that only this class of recipe has. A stored recipe with
            this field is of this kind.
        model: The Keras class, a `TextModel`.
        build: Function (recipe, seed) -> model.
        training: The `Training` that opens the data and compiles the model.
        graphs: Function (model, documents, vectors, max_k, progress) ->
            `Graphs`, see `export_models` for the arguments. `Graphs` maps the
            name of each exported model to a function that makes the model.
        check: Function that checks the class names in a recipe. Default: none.
        report: Function that reports on a run. Default: `report_on_run`.
        table: Function that prepares the row of a paper's table. Default: none.
        presets: Name -> recipe, for `lstm-dssm-train --preset`.
        reads: What models rank: titles or documents.
        options: Fields of `TrainingConfig` and `ReportSettings` that this kind
            uses and some other kinds do not use.
        counted: Name of the part of the model, such as `matcher`, whose number
            of parameters papers report. By default all parameters are counted.
        pipeline_tag: The model card's task, as the Hugging Face Hub names it.
        joint: Whether several workers can train one model together.

    Example:
    >>> kind = KINDS["towers"]
    >>> kind.load("training").__name__, kind.presets["lstm_96"].encoder
    ('TowerTraining', 'LSTMEncoder')
    """

    name: str
    noun: str
    plural: str
    recipe: type[ModelRecipe]
    marker: str
    model: str
    build: str
    training: str
    graphs: str
    check: str = ""
    report: str = "keras_lstm_dssm.analysis.report:report_on_run"
    table: str = ""
    presets: Mapping[str, ModelRecipe] = dataclasses.field(default_factory=dict)
    reads: Literal["titles", "documents"] = "titles"
    options: tuple[str, ...] = ()
    counted: str = ""
    pipeline_tag: str = "sentence-similarity"
    joint: bool = False

    def load(self, piece: str) -> Any:
        """Imports what an attribute names; an empty name gives `None`."""
        name = getattr(self, piece)
        return pkgutil.resolve_name(name) if name else None

    def check_options(self, settings: Settings) -> None:
        """Raises `InputError` if an option is set that only other kinds use."""
        for field in dataclasses.fields(settings):
            kinds = [k for k in KINDS.values() if field.name in k.options]
            is_used = not kinds or self in kinds
            if not is_used and getattr(settings, field.name):
                users = " and ".join(kind.plural for kind in kinds)
                raise InputError(
                    f"{field.name} is used by {users} only: leave it out for"
                    f" {self.plural}"
                )


_TOWERS = ModelKind(
    name="towers",
    noun="pair of encoders",
    plural="two towers",
    recipe=Recipe,
    presets=PRESETS,
    marker="encoder",
    model="keras_lstm_dssm.models.two_tower:TwoTower",
    check="keras_lstm_dssm.models.builders:check_towers",
    build="keras_lstm_dssm.models.builders:build_towers",
    training="keras_lstm_dssm.training.tower_training:TowerTraining",
    graphs="keras_lstm_dssm.export.export_models:tower_graphs",
    report="keras_lstm_dssm.analysis.tower_report:report_on_towers",
    table="keras_lstm_dssm.papers.neural_rows:tower_row",
    options=(
        *("validation", "teacher", "replay", "titles", "judged"),
        *("claims", "projector", "queries", "query", "document"),
    ),
    counted="document_encoder",
    joint=True,
)

_SCORER = ModelKind(
    name="scorer",
    noun="pair scorer",
    plural="pair scorers",
    recipe=ScorerRecipe,
    presets=SCORER_PRESETS,
    marker="matcher",
    model="keras_lstm_dssm.models.pair_scorer:PairScorer",
    check="keras_lstm_dssm.models.word_builders:check_scorer",
    build="keras_lstm_dssm.models.word_builders:build_scorer",
    training="keras_lstm_dssm.training.scorer_training:ScorerTraining",
    graphs="keras_lstm_dssm.export.graphs.scorer:scorer_graphs",
    report="keras_lstm_dssm.analysis.scorer_report:report_on_scorer",
    options=("negatives_from", "query", "document", "against"),
    counted="matcher",
    pipeline_tag="text-ranking",
)

_KEYVEC = ModelKind(
    name="keyvec",
    noun="KeyVec",
    plural="KeyVecs",
    recipe=KeyVecRecipe,
    presets=KEYVEC_PRESETS,
    marker="max_sentences",
    model="keras_lstm_dssm.models.keyvec:KeyVec",
    build="keras_lstm_dssm.models.word_builders:build_keyvec",
    training="keras_lstm_dssm.training.keyvec_training:KeyVecTraining",
    graphs="keras_lstm_dssm.export.graphs.keyvec:keyvec_graphs",
    report="keras_lstm_dssm.analysis.keyvec_report:report_on_keyvec",
    table="keras_lstm_dssm.papers.neural_rows:keyvec_row",
    reads="documents",
    options=("salience", "projector", "csv"),
)

KINDS: dict[str, ModelKind] = {}


def register_kind(kind: ModelKind) -> None:
    """Makes a kind of model known to this process, see docs/keras.md.

    Raises:
        InputError: The name of the kind or of a preset is taken; `marker` is no
            field of the recipe, or is also a field of another kind's recipe; or
            a field of the recipe has no description.

    Example:
    >>> register_kind(KINDS["scorer"])
    Traceback (most recent call last):
    keras_lstm_dssm.errors.InputError: the name 'scorer' is taken by another...
    """
    taken = {kind.name} & KINDS.keys() | kind.presets.keys() & {*all_presets()}
    if taken:
        raise InputError(
            f"the name {min(taken)!r} is taken by another kind or preset:"
            " choose another name"
        )
    fields = {field.name for field in dataclasses.fields(kind.recipe)}
    other_fields = {
        field.name
        for other in KINDS.values()
        for field in dataclasses.fields(other.recipe)
    }
    if kind.marker not in fields - other_fields:
        raise InputError(
            f"marker of the kind {kind.name} is {kind.marker!r}: expected a"
            f" field of {kind.recipe.__name__} that no other recipe has"
        )
    if missing := sorted(fields - help_of(kind.recipe).keys()):
        raise InputError(
            f"{kind.recipe.__name__} does not describe {missing[0]}: expected"
            f" '{missing[0]}: ...' below Attributes: of its docstring"
        )
    KINDS[kind.name] = kind


def all_presets() -> dict[str, ModelRecipe]:
    """Returns the recipes of all kinds' presets, by name."""
    return {
        name: recipe
        for kind in KINDS.values()
        for name, recipe in kind.presets.items()
    }


for _kind in (_TOWERS, _SCORER, _KEYVEC):
    register_kind(_kind)


def kind_of(model: Any) -> ModelKind:
    """Returns the kind of a model or of a recipe, or raises `InputError`."""
    if (name := getattr(model, "kind", None)) in KINDS:
        return KINDS[name]
    raise InputError(
        f"found a {type(model).__name__}, expected a model: "
        f"{', '.join(kind.model.partition(':')[2] for kind in KINDS.values())}"
    )


def named_recipe(recipe: str | ModelRecipe) -> ModelRecipe:
    """Returns the preset that a string names; returns a recipe unchanged."""
    if isinstance(recipe, ModelRecipe):
        return recipe
    presets = all_presets()
    if not isinstance(recipe, str) or recipe not in presets:
        close = difflib.get_close_matches(str(recipe), presets, 1)
        raise InputError(
            f"unknown preset {recipe!r}: "
            + (f"is {close[0]} meant? " if close else "")
            + f"expected one of {', '.join(presets)}"
        )
    return presets[recipe]


def kind_of_values(values: Mapping[str, Any]) -> ModelKind:
    """Returns the kind of a stored recipe: two towers if no marker is in it."""
    for kind in KINDS.values():
        if kind.marker in values:
            return kind
    return _TOWERS


def recipe_from_dict(values: Mapping[str, Any]) -> Any:
    """Makes a recipe of any kind from the result of `to_dict`.

    Raises:
        InputError: A name is unknown, or a value is wrong.

    Example:
    >>> recipe_from_dict(PRESETS["lstm_96"].to_dict()) == PRESETS["lstm_96"]
    True
    """
    return kind_of_values(values).recipe.from_dict(values)
