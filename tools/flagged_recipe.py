"""Makes the recipe of the flags of lstm-dssm-train; checks a resumed run."""

import os
from typing import Any

from absl import flags

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data.sources import absolute_spec
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.models import AnyRecipe, find_recipe, recipe_from_dict
from keras_lstm_dssm.tools.train_flags import (
    DATA_FLAGS,
    RECIPE_FLAGS,
    TEACHER_FLAGS,
)
from keras_lstm_dssm.training.config import teacher_spec
from keras_lstm_dssm.training.initial_model import Parent
from keras_lstm_dssm.training.replay import ReplaySpec
from keras_lstm_dssm.training.salience import TEACHERS


def flagged_recipe(values: flags.FlagValues) -> AnyRecipe:
    """Returns the preset's recipe, changed by the flags that are set.

    With `--init`, and no `--preset`, it is that of the run to continue.

    Raises:
        InputError: Two values exclude each other, or a flag is not one of
            this kind of recipe; there is no such run.
    """
    recipe = find_recipe(values.preset)
    if values.init and not values["preset"].present:
        recipe = Parent.recipe_of(values.init)
    if values.oov_buckets is not None and isinstance(recipe, dssm.Recipe):
        recipe = recipe.with_encoder(oov_buckets=values.oov_buckets)
    changes = {
        name: values[name].value
        for name in (*RECIPE_FLAGS, "oov_buckets")
        if values[name].value is not None
    }
    if isinstance(recipe, dssm.Recipe):
        changes.pop("oov_buckets", None)
    for name in TEACHER_FLAGS:
        if name in changes and not values.teacher:
            raise InputError(
                f"--{name} is used with --teacher only: name the folder of "
                "lstm-dssm-teach, or leave it out"
            )
    for name in changes:
        if not hasattr(recipe, name):
            raise InputError(
                f"--{name} is not a flag of --preset={values.preset}: leave it "
                "out"
            )
    return recipe.replace(**changes)


def _network(recipe: AnyRecipe) -> tuple[str, dict[str, Any]]:
    """Returns what a preset determines, and no flag can change."""
    if isinstance(recipe, dssm.ScorerRecipe):
        return recipe.matcher, dict(recipe.matcher_config)
    if isinstance(recipe, dssm.KeyVecRecipe):
        return "KeyVec", {
            "weighted": recipe.weighted,
            "windows": recipe.windows,
        }
    return recipe.encoder, {**recipe.encoder_config, "oov_buckets": 0}


def check_unchanged(values: flags.FlagValues, config: dict[str, Any]) -> None:
    """Checks that no flag of `lstm-dssm-train --resume` changes the run.

    A flag that is given has to have the value with which the run was started.

    Args:
        values: The program's flags, parsed.
        config: Content of the run's `config.json`.

    Raises:
        InputError: A flag differs.
    """
    recipe = recipe_from_dict(config.get("recipe", {}))
    name, network = _network(recipe)
    if values["preset"].present and (
        _network(find_recipe(values.preset)) != (name, network)
    ):
        network.pop("oov_buckets", None)  # a flag of its own
        raise InputError(
            f"--preset={values.preset}: the run in {values.output} was "
            f"started with {name}({network}); "
            "leave the flag out, or train anew in another --output"
        )
    known = {**recipe.to_dict(), **config}
    if isinstance(recipe, dssm.Recipe):
        known["oov_buckets"] = recipe.encoder_config.get("oov_buckets", 0)
    for name in (*DATA_FLAGS, *RECIPE_FLAGS, "oov_buckets"):
        flag = values[name]
        if not flag.present or name not in known:
            continue
        value = flag.value
        if name in ("data", "validation", "dev"):
            value = absolute_spec(value)
        elif name in ("negatives_from", "teacher"):
            value = os.path.abspath(value)
        elif name == "init":
            value = os.path.abspath(value)
            known[name] = (known[name] or {}).get("path")
        elif name == "replay":
            value = str(ReplaySpec.parse(value))
        elif name == "salience":
            value = teacher_spec(value, TEACHERS)
        if value != known[name]:
            raise InputError(
                f"--{name}={flag.value}: the run in {values.output} was "
                f"started with {known[name]}; leave the flag out, or train "
                "anew in another --output"
            )
