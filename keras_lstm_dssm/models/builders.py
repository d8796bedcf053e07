"""Checks recipes, builds their models, and compiles two towers.

`word_builders` has the functions for pair scorers and KeyVecs.
"""

import inspect
import json
import random
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import keras

from keras_lstm_dssm.encoders.text_encoder import TextEncoder
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.layers.letter_trigrams import copy_weights
from keras_lstm_dssm.losses import CosineSoftmax
from keras_lstm_dssm.models.two_tower import TwoTower
from keras_lstm_dssm.optimizers import NesterovMomentum
from keras_lstm_dssm.registration import PACKAGE
from keras_lstm_dssm.settings.kinds import kind_of, named_recipe
from keras_lstm_dssm.settings.recipes import ModelRecipe, Recipe


def find_recipe(recipe: str | ModelRecipe) -> Any:
    """Returns a checked recipe; `recipe` may be the name of a preset.

    Raises:
        InputError: No preset, encoder or matcher has the given name; or the
            recipe has a wrong argument of the encoder or matcher.

    Example:
    >>> find_recipe("lstm_96").encoder_config["cells"]
    96
    """
    checked = named_recipe(recipe)
    if check := kind_of(checked).load("check"):
        check(checked)
    return checked


def build_model(
    recipe: str | ModelRecipe, seed: int = 0, **arguments: Any
) -> Any:
    """Builds the model of a recipe with random weights.

    `dssm.train` also adapts (`TwoTower.adapt`), compiles and trains the model.

    Args:
        recipe: A recipe, such as `PRESETS["lstm_96"].replace(n=8)`, or the
            name of a preset.
        seed: Seed of the weights and of the random negatives. Default 0.
        **arguments: A pair scorer or a `KeyVec` takes `vocabulary`, a list of
            words, and `vectors`, the initial word vectors `[words,
            word_dimension]`. Default: random vectors. Recipes with
            `words="trigrams"` ignore `vectors`. If the recipe has
            `words="stems"`, `vectors` has the vectors of stems. A pair scorer
            then takes the stems as `vocabulary`. A `KeyVec` takes the stems as
            `stems`, and the possible key words as `vocabulary`. Two towers pass
            each argument, such as `known_words`, to the constructors of both
            encoders.

    Returns:
        A `TwoTower`, `PairScorer` or `KeyVec`. The model is neither adapted nor
        pre-trained nor compiled.

    Raises:
        InputError: No preset has the given name, or the recipe or the
            vocabulary is wrong.

    Example:
    >>> recipe = dssm.PRESETS["lstm_32"].replace(negatives="in_batch")
    >>> model = dssm.build_model(recipe, seed=1)
    >>> model.query_encoder.dimension, model.negatives
    (32, 'in_batch')
    """
    checked = find_recipe(recipe)
    return kind_of(checked).load("build")(checked, seed, **arguments)


@contextmanager
def seeded_initializers(seed: int) -> Iterator[None]:
    """Seeds the initializers of all weights that the `with` block creates."""
    # Initializers without a seed draw a seed from Python's generator.
    state = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(state)


def check_arguments(
    model_class: type,
    base: type,
    field: str,
    config: Any,
    without: Collection[str],
) -> None:
    """Checks that `config` has only arguments of a class's constructor."""
    allowed = {"dtype", "trainable"}
    # A class passes further arguments on to its parents, up to `base`.
    for parent in model_class.__mro__:
        if issubclass(parent, base):
            allowed.update(inspect.signature(parent.__init__).parameters)
    # The arguments in `without` are set by other fields of the recipe.
    allowed -= {"self", "kwargs", "name", *without}
    if not isinstance(config, Mapping) or not allowed.issuperset(config):
        raise InputError(
            f"{field} is {config!r}: expected arguments of"
            f" {model_class.__name__}, "
            f"which are {', '.join(sorted(allowed))}"
        )
    try:
        json.dumps(dict(config))
    except TypeError as error:
        raise InputError(
            f"{field} is {config!r:.80}: expected values that config.json can"
            " hold; to train towers of Keras layers, use"
            " TwoTower(layer, layer).fit"
        ) from error


def registered_class(field: str, class_name: str, base: type) -> Any:
    """Returns the registered subclass of `base` with the name `class_name`."""
    # In a recipe, names of this package's classes have no prefix. Names of
    # other packages' classes have a prefix, such as `my_package>GRUEncoder`.
    classes = {
        full_name.removeprefix(f"{PACKAGE}>"): cls
        for full_name, cls in keras.saving.get_custom_objects().items()
        if isinstance(cls, type) and issubclass(cls, base) and cls is not base
    }
    if not isinstance(class_name, str) or class_name not in classes:
        raise InputError(
            f"{field} is {class_name!r}: expected one of "
            f"{', '.join(sorted(classes))}; or import the module that "
            "registers it"
        )
    return classes[class_name]


def check_towers(recipe: Recipe) -> None:
    """Checks a recipe's encoder class, encoder arguments and `epochs`."""
    encoder = registered_class("encoder", recipe.encoder, TextEncoder)
    for field in ("encoder_config", "document_encoder_config"):
        config = getattr(recipe, field)
        check_arguments(encoder, TextEncoder, field, config, ())
    if encoder.fitted != recipe.fitted:
        raise InputError(
            f"epochs is {recipe.epochs} with the encoder {recipe.encoder}:"
            " expected 0 for a WordSumEncoder, which is fitted in one go,"
            " and 1 or more for other encoders"
        )


def build_towers(recipe: Recipe, seed: int = 0, **sizes: int) -> TwoTower:
    """Builds two towers with random weights.

    `sizes` are arguments for both encoders, such as `known_words`.
    """
    encoder_class = registered_class("encoder", recipe.encoder, TextEncoder)
    config = {**recipe.encoder_config, **sizes}
    with seeded_initializers(seed):
        if recipe.towers == "tied":
            query = document = encoder_class(name="encoder", **config)
        else:
            query = encoder_class(name="query_encoder", **config)
            config.update(recipe.document_encoder_config)
            document = encoder_class(name="document_encoder", **config)
    if recipe.towers == "equal_start":
        copy_weights(query, document)
    return TwoTower(query, document, recipe.negatives, recipe.n, seed)


def compile_towers(model: TwoTower, recipe: Recipe) -> None:
    """Compiles two towers with the loss and the optimizer of a recipe."""
    model.compile(
        NesterovMomentum(
            recipe.learning_rate,
            recipe.momentum_ends,
            threshold=recipe.threshold,
        ),
        CosineSoftmax(recipe.gamma),
    )
