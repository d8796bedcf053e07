"""`Parent`, the trained model whose weights another training starts from."""

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.fingerprints import weights_hash
from keras_lstm_dssm.models.keyvec import KeyVec
from keras_lstm_dssm.models.kinds import AnyRecipe, recipe_from_dict
from keras_lstm_dssm.models.pair_scorer import PairScorer
from keras_lstm_dssm.models.two_tower import TwoTower
from keras_lstm_dssm.run_folder import RunFolder, is_ranker

_OF_TRAINING = {"seed", "negatives", "n", "dropout", "max_sentences"}
"""Arguments of a model, not of its layers, that may be others in a child."""

_NAMES = {"name", "build_config"}


class Parent(NamedTuple):
    """Holds a trained model, and where it comes from.

    Attributes:
        model: A `TwoTower`, `PairScorer` or `KeyVec`.
        recipe: The recipe of its run; `None` for a model without a run.
        path: The folder of its run; `None` for a model without one.
    """

    model: Any
    recipe: AnyRecipe | None = None
    path: str | None = None

    @classmethod
    def open(cls, init: Any) -> "Parent":
        """Opens the parent that `train` was given as `init`.

        Args:
            init: A trained model, or the folder of its run.

        Raises:
            InputError: There is no model, or it is not one of weights.
        """
        if not isinstance(init, str | os.PathLike):
            return cls(_checked(init, "init"))
        recipe = cls.recipe_of(init)
        model = _checked(RunFolder(init).load_model(), os.fspath(init))
        return cls(model, recipe, os.path.abspath(init))

    @staticmethod
    def recipe_of(init: str | os.PathLike[str]) -> AnyRecipe:
        """Reads the recipe of a parent, without loading its model.

        A process that is to be one of several workers can do so before
        TensorFlow has connected them.

        Args:
            init: The folder of a run.

        Raises:
            InputError: There is no model that could be continued.
        """
        run = RunFolder(init)
        if is_ranker(run.path):
            raise _no_parent("Ranker", os.fspath(init))
        run.check_trained()
        return recipe_from_dict(run.read_config().get("recipe", {}))

    def describe(self) -> dict[str, Any]:
        """Returns the entry `init` of a run's `config.json`."""
        return {"path": self.path, "sha256": weights_hash(self.model.weights)}

    @property
    def words(self) -> str:
        """What the words of a pair scorer or `KeyVec` are read as."""
        words = self.model.words
        if not hasattr(words, "vocabulary"):
            return "trigrams"
        return "stems" if words.split == "stems" else "vocabulary"

    @property
    def vocabulary(self) -> Sequence[str]:
        """The words for `ScorerRecipe.build` or `KeyVecRecipe.build`."""
        if isinstance(self.model, KeyVec):
            return self.model.key_vocabulary
        return getattr(self.model.words, "vocabulary", ())

    @property
    def stems(self) -> Sequence[str]:
        """The stems for `KeyVecRecipe.build`, if it reads stems."""
        return self.model.words.vocabulary if self.words == "stems" else ()

    def check_kind(self, kind: type) -> None:
        """Checks the class of the model.

        Raises:
            InputError: It is another than that of the recipe.
        """
        if not isinstance(self.model, kind):
            raise InputError(
                f"{self._name}: found a {type(self.model).__name__}, expected "
                f"a {kind.__name__}, as the recipe makes it: leave the preset "
                "out, or name another run"
            )

    def check_words(self, words: str) -> None:
        """Checks that words are read as the recipe says.

        Raises:
            InputError: They are read otherwise.
        """
        if self.words != words:
            raise InputError(
                f"{self._name}: found words={self.words!r}, expected {words!r} "
                "as in the recipe: leave the flag out, or train anew"
            )

    def give_weights(self, model: Any) -> None:
        """Copies all weights to a model, adapted statistics included.

        Args:
            model: A new model, as the recipe makes it.

        Raises:
            InputError: It has another network than the parent.
        """
        parent, child = _network(self.model), _network(model)
        for name, value in child.items():
            if parent.get(name) != value:
                raise InputError(
                    f"{self._name}: found {name}={_short(parent.get(name))}, "
                    f"expected {_short(value)} as in the recipe: leave the "
                    "preset and its flags out, or train anew without init"
                )
        if hasattr(self.model, "sync_weights"):
            self.model.sync_weights()
        model.set_weights(self.model.get_weights())

    @property
    def _name(self) -> str:
        return self.path or "init"


def _checked(model: Any, name: str) -> Any:
    if not isinstance(model, TwoTower | PairScorer | KeyVec):
        raise _no_parent(type(model).__name__, name)
    if not all(np.isfinite(weight.numpy()).all() for weight in model.weights):
        raise InputError(
            f"{name}: found weights that are not finite; the training failed: "
            "name another run"
        )
    return model


def _no_parent(kind: str, name: str) -> InputError:
    return InputError(
        f"{name}: found a {kind}, whose training cannot be continued: expected "
        "two towers, a pair scorer or a KeyVec, or the folder of its run"
    )


def _network(model: Any) -> dict[str, Any]:
    """Returns what determines the weights' meaning, flat, by dotted names."""
    flat: dict[str, Any] = {}

    def add(name: str, value: Any) -> None:
        if isinstance(value, dict) and "class_name" in value:
            add(name, value["class_name"])
            value = value["config"]
        if isinstance(value, dict):
            for key, inner in value.items():
                if key not in _NAMES:
                    add(f"{name}.{key}" if name else key, inner)
        else:
            flat[name] = list(value) if isinstance(value, tuple) else value

    config = model.get_config()
    add("", {key: config[key] for key in config if key not in _OF_TRAINING})
    return flat


def _short(value: Any) -> str:
    return f"{value!r:.60}"
