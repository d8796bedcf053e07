"""`InitialModel` is the trained model from which a new training starts."""

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.fingerprints import weights_hash
from keras_lstm_dssm.layers.letter_trigrams import copy_weights
from keras_lstm_dssm.models.builders import find_recipe
from keras_lstm_dssm.plain_files import damage_named
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.settings.kinds import kind_of, recipe_from_dict
from keras_lstm_dssm.settings.recipes import ModelRecipe

# Arguments of a model that a new training may change.
_CHANGEABLE = {"seed", "negatives", "n", "dropout", "max_sentences"}
# Keys of the layers' configurations on which no weights depend.
_IGNORED = {"name", "build_config"}


class InitialModel(NamedTuple):
    """A trained model, and the recipe and the folder of its run, if any."""

    model: Any
    recipe: ModelRecipe | None = None
    path: str | None = None

    @property
    def name(self) -> str:
        """The model's name in error messages: its run folder, or `"init"`."""
        return self.path or "init"

    @classmethod
    def open(cls, init: Any) -> "InitialModel":
        """Opens the option `init` of `train`: a model or a run folder."""
        if not isinstance(init, str | os.PathLike):
            _check_model(init, "init")
            return cls(init)
        recipe = cls.recipe_of(init)
        model = RunFolder(init).load_model()
        _check_model(model, os.fspath(init))
        return cls(model, recipe, os.path.abspath(init))

    @staticmethod
    def recipe_of(init: str | os.PathLike[str]) -> ModelRecipe:
        """Reads the recipe of a run."""
        run = RunFolder(init)
        run.check_trained()
        recipe = run.read_config().get("recipe", {})
        with damage_named(run.config, "expected a recipe: train again"):
            return find_recipe(recipe_from_dict(recipe))

    def describe(self) -> dict[str, Any]:
        """Returns the entry `init` of a run's `config.json`."""
        return {"path": self.path, "sha256": weights_hash(self.model.weights)}

    @property
    def words(self) -> str:
        """The value of the field `words` in a recipe that fits this model."""
        words = self.model.words
        if not hasattr(words, "vocabulary"):
            return "trigrams"
        return "stems" if words.split == "stems" else "vocabulary"

    @property
    def vocabulary(self) -> Sequence[str]:
        """Value of `vocabulary` for `build_scorer` and `build_keyvec`."""
        if hasattr(self.model, "key_vocabulary"):
            return self.model.key_vocabulary
        return getattr(self.model.words, "vocabulary", ())

    @property
    def stems(self) -> Sequence[str]:
        """Value of the argument `stems` of `build_keyvec`; () without stems."""
        return self.model.words.vocabulary if self.words == "stems" else ()

    def check(self, recipe: ModelRecipe) -> None:
        """Checks that a recipe's kind, and `words` if any, fit this model."""
        expected = kind_of(recipe)
        if kind_of(self.model) is not expected:
            raise InputError(
                f"{self.name}: found a {type(self.model).__name__}, expected "
                f"a {expected.load('model').__name__} as in the recipe: "
                "leave the preset out, or give another run"
            )
        words = getattr(recipe, "words", None)
        if words is not None and self.words != words:
            raise InputError(
                f"{self.name}: found words={self.words!r}, expected {words!r} "
                "as in the recipe: leave the flag out, or train anew"
            )

    def copy_weights_to(self, model: Any) -> None:
        """Copies all weights to a model; `InputError` if the layers differ."""
        initial = _network_settings(self.model)
        for name, value in _network_settings(model).items():
            if initial.get(name) != value:
                raise InputError(
                    f"{self.name}: found {name}={initial.get(name)!r:.60}, "
                    f"expected {value!r:.60} as in the recipe: leave the "
                    "preset and its flags out, or train anew without init"
                )
        copy_weights(self.model, model)


def _check_model(model: Any, name: str) -> None:
    kind_of(model)  # raises `InputError` for other objects
    if not all(np.isfinite(weight.numpy()).all() for weight in model.weights):
        raise InputError(
            f"{name}: found weights that are not finite; the training failed: "
            "give another run"
        )


def _network_settings(model: Any) -> dict[str, Any]:
    """Returns settings on which weights depend, such as `words.dimension`."""
    flat: dict[str, Any] = {}

    def add(name: str, value: Any) -> None:
        if isinstance(value, dict) and "class_name" in value:
            add(name, value["class_name"])
            value = value["config"]
        if isinstance(value, dict):
            for key, inner in value.items():
                if key not in _IGNORED:
                    add(f"{name}.{key}" if name else key, inner)
        else:
            flat[name] = list(value) if isinstance(value, tuple) else value

    config = model.get_config()
    add("", {key: config[key] for key in config if key not in _CHANGEABLE})
    return flat
