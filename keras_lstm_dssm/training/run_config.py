"""config.json of a run: what a new run writes, and a resumed run checks."""

import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.models import AnyRecipe, recipe_from_dict
from keras_lstm_dssm.training.base_plan import BasePlan
from keras_lstm_dssm.training.parent import Parent
from keras_lstm_dssm.training.run_folder import RunFolder
from keras_lstm_dssm.training.training_data import TrainingData
from keras_lstm_dssm.version import __version__

_ABSENT = dict.fromkeys(("negatives_from", "salience", "teacher", "replay"))
"""Settings that `config.json` of an earlier version lacks, and their value."""


class RunSettings(NamedTuple):
    """Holds the settings that a resumed run needs.

    Attributes:
        data: The data.
        recipe: The recipe.
        seed: Seed of the weights and of all random draws.
        continued: Whether the weights have started from those of a run.
    """

    data: TrainingData
    recipe: AnyRecipe
    seed: int
    continued: bool


def new_config(
    data: TrainingData,
    recipe: AnyRecipe,
    seed: int,
    parent: Parent | None,
    plan: BasePlan,
) -> dict[str, Any]:
    """Returns the content of `config.json` of a new run.

    Args:
        data: The data.
        recipe: The recipe.
        seed: Seed of the weights and of all random draws.
        parent: The trained model that the run starts from, or `None`.
        plan: The plan, whose numbers of examples and of bad lines a resumed
            run compares with its own, see `check_same_data`.
    """
    return {
        "version": __version__,
        **data._asdict(),
        "init": parent and parent.describe(),
        "seed": seed,
        "recipe": recipe.to_dict(),
        "pairs": plan.examples,
        "bad_lines": sum(plan.bad_lines.values()),
    }


def warn_of_version(run: RunFolder, config: Mapping[str, Any]) -> None:
    """Prints a line if a run that goes on was started by another version."""
    version = config.get("version")
    if version != __version__:
        print(
            f"warning: {run.path}: the run was started with version {version},"
            f" and goes on with {__version__}: its end may differ from that of"
            " either",
            file=sys.stderr,
        )


def read_settings(run: RunFolder, config: Mapping[str, Any]) -> RunSettings:
    """Returns the settings of a run, from its `config.json`.

    Args:
        run: The run folder.
        config: Content of its `config.json`.

    Raises:
        InputError: A setting is missing.
    """
    config = {**_ABSENT, **config}
    try:
        settings = RunSettings(
            TrainingData(
                **{name: config[name] for name in TrainingData._fields}
            ),
            recipe_from_dict(config["recipe"]),
            config["seed"],
            config.get("init") is not None,
        )
        for name in ("pairs", "bad_lines"):  # for `check_same_data`
            config[name]
    except (KeyError, TypeError) as error:
        raise InputError(
            f"{run.config}: {error} is missing, expected the settings of "
            "a run; restore the file, or train anew in another --output"
        ) from None
    return settings


def check_same_data(config: Mapping[str, Any], plan: BasePlan) -> None:
    """Checks that the data are those that the run was started with.

    Args:
        config: Content of the run's `config.json`.
        plan: The plan that was made of the data now.

    Raises:
        InputError: The number of examples or of bad lines has changed.
    """
    found = plan.examples, sum(plan.bad_lines.values())
    expected = config["pairs"], config["bad_lines"]
    if found != expected:
        raise InputError(
            f"{config['data']}: found {found[0]} {plan.examples_name} and "
            f"{found[1]} bad lines, expected the {expected[0]} and "
            f"{expected[1]} that the run was started with; restore them, "
            "or train anew in another --output"
        )
