"""WorkerSettings: recipe, data and seed of a training by several processes."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import keras
import tensorflow as tf

import keras_lstm_dssm
from keras_lstm_dssm.data import absolute_spec
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.fingerprints import files_hash
from keras_lstm_dssm.models import AnyRecipe, Recipe, find_recipe
from keras_lstm_dssm.training.parent import Parent
from keras_lstm_dssm.training.run_config import read_settings
from keras_lstm_dssm.training.run_folder import RunFolder
from keras_lstm_dssm.training.training_data import TrainingData
from keras_lstm_dssm.version import __version__


class WorkerSettings(NamedTuple):
    """Holds the settings of a training by several processes, the workers.

    All workers have the same ones. The values are such as JSON can hold, so
    that they can be sent to other machines and written to `config.json`.

    Attributes:
        recipe: The recipe, `Recipe.to_dict()`.
        data: See `TrainingData`, as a dict.
        seed: Seed of the weights and of all random draws.
        init: Folder of the run whose weights the training starts from.

    Example:
    >>> settings = WorkerSettings.make("parts", "lstm_96", seed=1)
    >>> settings.recipe["encoder_config"], settings.seed
    ({'cells': 96}, 1)
    """

    recipe: dict[str, Any]
    data: dict[str, Any]
    seed: int = 0
    init: str | None = None

    @classmethod
    def make(
        cls,
        clicks: str | os.PathLike[str],
        recipe: str | AnyRecipe | None = None,
        *,
        seed: int = 0,
        validation: str | None = None,
        dev: str | None = None,
        select: str = "mrr@10",
        every: int = 1,
        patience: int | None = None,
        min_relevant: int = 1,
        max_bad_lines: int = 0,
        init: str | os.PathLike[str] | None = None,
    ) -> "WorkerSettings":
        """Makes the settings of arguments that `train` has, too.

        Raises:
            InputError: The recipe is not one of two towers, or there is no
                run `init`.
        """
        if recipe is None:
            recipe = "best" if init is None else Parent.recipe_of(init)
        recipe = find_recipe(recipe)
        if not isinstance(recipe, Recipe):
            raise InputError(
                "several workers train two towers only: leave the workers "
                "out for a pair scorer or a KeyVec"
            )
        if dev is not None and patience is None:
            patience = recipe.patience or None
        data = TrainingData(
            absolute_spec(os.fspath(clicks)),
            validation and absolute_spec(validation),
            dev and absolute_spec(dev),
            select,
            every,
            patience,
            min_relevant,
            max_bad_lines,
        )
        return cls(
            recipe.to_dict(),
            data._asdict(),
            seed,
            None if init is None else os.path.abspath(init),
        )

    @classmethod
    def from_config(
        cls, run: RunFolder, config: Mapping[str, Any]
    ) -> "WorkerSettings":
        """Returns the settings of a run, see `read_settings`."""
        settings = read_settings(run, config)
        return cls(
            settings.recipe.to_dict(),
            settings.data._asdict(),
            settings.seed,
            (config.get("init") or {}).get("path"),
        )


def worker_versions(
    run: RunFolder, settings: WorkerSettings | None
) -> dict[str, Any]:
    """Returns what must be equal on all workers, for `check_equal`."""
    package = Path(keras_lstm_dssm.__file__).parent
    sources = sorted(
        Path(folder, name)
        for folder, _, names in os.walk(package, followlinks=True)
        for name in names
        if name.endswith(".py")
    )
    settings = settings or WorkerSettings({}, {})
    return {
        "keras_lstm_dssm": __version__,
        "keras_lstm_dssm with source files of hash": files_hash(sources)[:12],
        "TensorFlow": tf.__version__,
        "Keras": keras.__version__,
        "output": str(run.path.absolute()),
        "seed": settings.seed,
        "init": settings.init,
        **{f"recipe {k}": v for k, v in settings.recipe.items()},
        **settings.data,
    }
