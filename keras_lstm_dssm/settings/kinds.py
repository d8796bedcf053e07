"""`ModelKind`, all that the package has for one kind of model, and `KINDS`.

A kind is a record of data. Pieces that need TensorFlow are named as in entry
points, "package.module:name", and are imported when they are used. No other
module compares names of kinds: it asks the record.
"""

import dataclasses
import pkgutil
from collections.abc import Mapping
from typing import Any, Literal

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.settings.fields import help_of
from keras_lstm_dssm.settings.presets import (
    KEYVEC_PRESETS,
    PRESETS,
    SCORER_PRESETS,
)
from keras_lstm_dssm.settings.recipes import (
    KeyVecRecipe,
    ModelRecipe,
    Recipe,
    ScorerRecipe,
)


@dataclasses.dataclass(frozen=True, eq=False)
class ModelKind:
    """Describes a kind of model: its recipe, its classes and functions.

    Attributes:
        name: The `kind` of its models and of its recipes.
        noun: What messages and cards call a model.
        plural: What messages and flags call its models.
        recipe: The class of its recipes, a `ModelRecipe`.
        marker: A field that no other kind's recipe has: the recipe in a
            `config.json` with it is of this kind.
        model: The Keras class, a `TextModel`: `"package.module:name"`, as all
            that follow except for the last seven.
        build: Function of recipe, seed and further arguments that returns a
            model with random weights, see `build_model`.
        training: The `Training` that opens the data, builds and compiles.
        graphs: Function of model, documents, `vectors`, `max_k` and `progress`
            that returns what `export_models` exports: name -> a function that
            makes a `ServedModule`. Where `teacher` is among the `options`, it
            is an argument, too.
        module: The `ServedModule` of a model that `export_model` exports
            alone. By default there is none.
        check: Function that raises `InputError` for a recipe with wrong names
            or arguments of classes. By default there is nothing to check.
        report: Function of model, run, settings and a folder of pictures that
            returns the `Report` of `lstm-dssm-analyze`. By default the report
            has the card of the run.
        table: Function of recipe, data and teacher of key sentences that
            returns the recipe and the options of a row of a paper's table. By
            default the recipe stays as it is.
        presets: Name -> recipe, for `lstm-dssm-train --preset`.
        reads: `"titles"`, which are ranked for queries, or `"documents"`, which
            are clustered, too: how models are evaluated and described.
        options: Options of `TrainingConfig` that not every kind uses.
        report_settings: Fields of `ReportSettings` that not every kind uses.
        counted: Attribute of a model with the parameters that a paper counts;
            by default all are counted.
        pipeline_tag: The task on the card, a name of the Hugging Face Hub.
        joint: Whether several workers can train a model.

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
    module: str = ""
    check: str = ""
    report: str = ""
    table: str = ""
    presets: Mapping[str, ModelRecipe] = dataclasses.field(default_factory=dict)
    reads: Literal["titles", "documents"] = "titles"
    options: tuple[str, ...] = ()
    report_settings: tuple[str, ...] = ()
    counted: str = ""
    pipeline_tag: str = "sentence-similarity"
    joint: bool = False

    def load(self, piece: str) -> Any:
        """Imports a piece, such as `"training"`; `None` if there is none."""
        name = getattr(self, piece)
        return pkgutil.resolve_name(name) if name else None


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
    options=("validation", "teacher", "replay", "titles", "judged"),
    report_settings=("claims", "projector", "queries", "query", "document"),
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
    check="keras_lstm_dssm.models.builders:check_scorer",
    build="keras_lstm_dssm.models.builders:build_scorer",
    training="keras_lstm_dssm.training.scorer_training:ScorerTraining",
    graphs="keras_lstm_dssm.export.export_models:scorer_graphs",
    module="keras_lstm_dssm.export.graphs.scorer:ScorerModule",
    report="keras_lstm_dssm.analysis.scorer_report:report_on_scorer",
    options=("negatives_from",),
    report_settings=("query", "document", "against"),
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
    build="keras_lstm_dssm.models.builders:build_keyvec",
    training="keras_lstm_dssm.training.keyvec_training:KeyVecTraining",
    graphs="keras_lstm_dssm.export.export_models:keyvec_graphs",
    module="keras_lstm_dssm.export.graphs.keyvec:KeyVecModule",
    report="keras_lstm_dssm.analysis.keyvec_report:report_on_keyvec",
    table="keras_lstm_dssm.papers.neural_rows:keyvec_row",
    reads="documents",
    options=("salience",),
    report_settings=("projector", "salience", "csv"),
)

KINDS: dict[str, ModelKind] = {}
"""Name -> kind of model."""


def register_kind(kind: ModelKind) -> ModelKind:
    """Makes a kind of model known to all functions and programs.

    Call it in the module that has the classes. A process that trains, loads or
    serves such a model imports this module first (docs/keras.md).

    Args:
        kind: The record; its name, its marker and the names of its presets are
            those of no other kind.

    Returns:
        The record.

    Raises:
        InputError: A name is taken, or the marker is no field of the recipe.

    Example:
    >>> kind = dataclasses.replace(KINDS["scorer"], name="mine", marker="mine")
    >>> register_kind(kind)
    Traceback (most recent call last):
    keras_lstm_dssm.errors.InputError: marker of the kind mine is 'mine': ...
    """
    if kind.name in KINDS:
        raise InputError(
            f"found another kind of model with the name {kind.name!r}: choose"
            " another name"
        )
    fields, others = (
        {field.name for each in kinds for field in dataclasses.fields(each)}
        for kinds in ([kind.recipe], [other.recipe for other in KINDS.values()])
    )
    if kind.marker not in fields - others:
        raise InputError(
            f"marker of the kind {kind.name} is {kind.marker!r}: expected a"
            f" field of {kind.recipe.__name__} that the recipe of no other kind"
            " has"
        )
    if missing := sorted(fields - help_of(kind.recipe).keys()):
        raise InputError(
            f"{kind.recipe.__name__} does not describe {missing[0]}: expected"
            f" '{missing[0]}: ...' below Attributes: of its docstring"
        )
    for preset in kind.presets:
        if preset in all_presets():
            raise InputError(
                f"found another preset with the name {preset!r}: rename the"
                f" preset of the kind {kind.name}"
            )
    KINDS[kind.name] = kind
    return kind


def all_presets() -> dict[str, ModelRecipe]:
    """Returns the presets of all kinds: name -> recipe."""
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


def users_of(option: str) -> str:
    """Returns what messages call the kinds that use an option of a training.

    It is empty for an option that all kinds use.
    """
    return " and ".join(
        kind.plural for kind in KINDS.values() if option in kind.options
    )


def named_recipe(recipe: str | ModelRecipe) -> ModelRecipe:
    """Returns the recipe of a preset's name; a recipe is returned as it is.

    Raises:
        InputError: There is no such preset.

    Example:
    >>> named_recipe("lstm_96").encoder_config["cells"]
    96
    """
    if isinstance(recipe, ModelRecipe):
        return recipe
    presets = all_presets()
    if not isinstance(recipe, str) or recipe not in presets:
        raise InputError(
            f"unknown preset {recipe!r}: expected one of {', '.join(presets)}"
        )
    return presets[recipe]


def kind_of_values(values: Mapping[str, Any]) -> ModelKind:
    """Returns the kind of the recipe with these values, by default towers."""
    for kind in KINDS.values():
        if kind.marker in values:
            return kind
    return _TOWERS


def recipe_from_dict(values: Mapping[str, Any]) -> Any:
    """Makes a recipe of any kind from the result of its `to_dict`.

    Raises:
        InputError: A name is unknown, or a value is wrong.

    Example:
    >>> recipe = named_recipe("keyvec")
    >>> recipe_from_dict(recipe.to_dict()) == recipe
    True
    """
    return kind_of_values(values).recipe.from_dict(values)
