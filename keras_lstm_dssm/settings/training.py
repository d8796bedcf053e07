"""The options of a training, and specifications of data, such as `api`."""

import dataclasses
import math
import os
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.settings.fields import (
    CLUSTER_MEASURES,
    MEASURES,
    SALIENCE_TEACHERS,
    Settings,
    setting,
)
from keras_lstm_dssm.settings.kinds import (
    KINDS,
    kind_of,
    named_recipe,
    recipe_from_dict,
)

API = "api"
API_SENTENCES = "api_sentences"
API_DOCUMENTS = "api_documents"
BUILT_IN = (API, API_SENTENCES, API_DOCUMENTS)
"""Names of the data sets made from docstrings of installed packages."""

_EXPECTED = "expected old clicks, a colon and a share, such as old.tsv:0.2"


def parts_of(spec: str | os.PathLike[str]) -> list[str]:
    """Splits a data specification at commas; an existing path is one part."""
    if not isinstance(spec, str | os.PathLike):
        raise InputError(
            f"found {spec!r:.60} ({type(spec).__name__}), expected a path,"
            " or several paths in one string, separated by commas"
        )
    spec = os.fspath(spec)
    if os.path.exists(spec):  # a file name may have a comma
        return [spec]
    return [part.strip() for part in spec.split(",") if part.strip()]


def absolute_spec(spec: str) -> str:
    """Makes the paths of a data specification absolute."""
    parts = parts_of(spec)
    return ",".join(p if p in BUILT_IN else os.path.abspath(p) for p in parts)


class ReplaySpec(NamedTuple):
    """Says which old clicks, and how many, to mix into a training."""

    data: str  # see `data.open_log`
    share: float  # number of old clicks for each new click

    @classmethod
    def parse(cls, replay: Any) -> "ReplaySpec | None":
        """Parses "old.tsv:0.2", or a pair (log, share); `None` gives `None`."""
        if replay is None:
            return None
        is_text = isinstance(replay, str)
        parts = replay.rpartition(":")[::2] if is_text else replay
        try:
            data, share = parts
            if hasattr(data, "paths"):  # a `ClickLog`
                data = ",".join(data.paths)
            spec = cls(absolute_spec(os.fspath(data)), float(share))
        except (TypeError, ValueError):
            spec = cls("", 0.0)
        if not spec.data or not 0 < spec.share < math.inf:
            raise InputError(f"replay is {replay!r:.80}: {_EXPECTED}")
        return spec

    def __str__(self) -> str:
        return f"{self.data}:{self.share!r}"


@dataclasses.dataclass(frozen=True)
class TrainingConfig(Settings):
    """Holds the options of a training, except its folder and its workers.

    Each option except `titles`, `judged` and `recipe` is a flag of
    `lstm-dssm-train`. The program makes the recipe from `--preset`, flags and
    `--set`.

    Attributes:
        data: Clicks: `"api"`, `"api_sentences"`, a data folder of
            lstm-dssm-prepare or another BEIR folder, click files (.tsv,
            .tsv.gz, globs), or several of these, separated by commas. A KeyVec
            learns from `"api_documents"` or from a folder of documents. Pair
            scorers learn from the judged lists of a BEIR folder, or from clicks
            with mined negatives. `word_sum` takes no data. In Python also a
            `ClickLog`, an iterable of (query, title), or a `DocumentFolder`.
        recipe: Name of a preset, or a `Recipe` (two towers), a `ScorerRecipe`
            (pair scorer) or a `KeyVecRecipe`. By default `"best"`, or the
            recipe of the run `init`.
        validation: Two towers: click files on which the loss is measured after
            each epoch.
        dev: Data on which the model is evaluated after epochs. The training
            returns the model of the best epoch. Two towers: `"api"` or a BEIR
            folder, whose whole corpus is searched for the dev queries. Pair
            scorers: `"api_sentences"` or a BEIR folder, whose judged lists of
            dev are reranked. KeyVec: `"api_documents"` or a folder of
            documents; without this option, the loss of a KeyVec is measured on
            the split dev of `data`. In Python also a `Collection`, a `Task` or
            a `ClusterTask`.
        select: With `dev`: the measure that decides which epoch is best, by
            default mrr@10. The measures f1, v, ari and ami are for a KeyVec.
        every: With `dev`: number of epochs from one evaluation to the next.
        patience: With `dev`: the training stops after this number of
            evaluations without a better value of `select`. The default of two
            towers is the patience of the recipe (`best`: 3). By default, the
            training of other models with `dev` does not stop early. For a
            KeyVec without `dev`: the training stops after this number of epochs
            without a smaller loss on the split dev, and returns the model of
            the best epoch. The default is the patience of the recipe.
        min_relevant: For a BEIR folder: lowest grade of a relevant title. If
            the folder has no clicks, the relevant titles of the training split
            count as clicked.
        max_bad_lines: Largest number of bad lines to skip, in click files or in
            documents.jsonl; with more bad lines the training does not start.
        negatives_from: Pair scorers trained on click files: folder of a run of
            two towers, which find the negatives (titles near the query). By
            default BM25 finds the negatives. In Python also a `TwoTower`.
        salience: KeyVec: method that marks the salient sentences of a document,
            which the model learns to recognise. `"bm25"` (the default),
            `"trigrams"` and, as in the paper, a trained encoder (run folder of
            two towers) compare sentences with the summary. `"lead"` takes the
            first sentences. In Python also a `TwoTower` or `DocumentTargets`.
        teacher: `word_sum` and `best_words`: folder of lstm-dssm-teach. Word
            vectors are fitted to the teacher's vectors.
        replay: With `init`, two towers: old click files, a colon and the number
            of old clicks that each epoch draws for each new click, such as
            old.tsv:0.2. In Python also a pair of log and number.
        init: Folder of an earlier run. The new run starts from the weights of
            the earlier run, by default with the same recipe (docs/train.md). In
            Python also a model.
        seed: Seed of the weights, the order of the data and all random draws.
        titles: Two towers: titles in addition to the titles of `data`, for the
            statistics of words and for synthetic pairs.
        judged: Two towers: query -> titles judged not relevant, for a recipe
            with `judged_negatives`; by default read from the BEIR folder.
        save_minutes: Minutes from one checkpoint to the next checkpoint within
            an epoch.

    Raises:
        InputError: A value is out of range, an option is not used by the kind
            of model, or two options exclude each other.

    Example:
    >>> config = TrainingConfig("parts", "lstm_96", seed=1)
    >>> config.recipe.encoder_config, config.seed
    ({'cells': 96}, 1)
    """

    noun: ClassVar[str] = "training"

    data: Any = None
    recipe: Any = setting(None, flag=False)
    validation: str | None = setting(None, path=True)
    dev: Any = None
    select: Any = setting(
        None, names=(*MEASURES, *CLUSTER_MEASURES), unused_if={"dev": None}
    )
    every: int = setting(1, expected="1 or more", unused_if={"dev": None})
    patience: int | None = setting(
        None, expected="1 or more", unused_if={"dev": None}
    )
    min_relevant: int = 1
    max_bad_lines: int = 0
    negatives_from: Any = None
    salience: Any = None
    teacher: Any = setting(None, joint=False)
    replay: Any = setting(None, joint=False)
    init: Any = None
    seed: int = setting(0, most=2**32 - 1)
    titles: Any = setting((), stored=False, joint=False, flag=False)
    judged: Any = setting(None, stored=False, joint=False, flag=False)
    save_minutes: float = setting(10.0, least=0, stored=False)

    def __post_init__(self) -> None:
        if self.init is None and self.replay is not None:
            raise InputError(
                "replay mixes old clicks into a training that starts from an "
                "earlier run: give init, the earlier run, or name all clicks as"
                " data"
            )
        recipe = named_recipe("best" if self.recipe is None else self.recipe)
        values = {"recipe": recipe, **recipe.completed(self)}
        if self.select is None:
            values["select"] = "mrr@10"
        for name, value in values.items():
            object.__setattr__(self, name, value)
        super().__post_init__()
        self._check_kind()

    def _check_kind(self) -> None:
        kind_of(self.recipe).check_options(self)
        if self.recipe.fitted:
            for name in ("data", "dev", "validation", "init"):
                if getattr(self, name) is not None:
                    raise InputError(
                        f"{name} is not used by word_sum, which is fitted to"
                        " the texts of the teacher in one go: leave it out"
                    )
        elif self.data is None or (
            isinstance(self.data, str) and not self.data
        ):
            raise InputError(
                "data is missing: expected `api`, a BEIR folder or click files,"
                " or documents (`api_documents` or a folder) for a KeyVec"
            )
        negatives = getattr(self.recipe, "judged_negatives", 0)
        if self.judged is not None and not negatives:
            raise InputError(
                "judged is not used without judged_negatives: leave it out, or"
                " set judged_negatives of the recipe"
            )
        fits_words = getattr(self.recipe, "has_word_sum", False)
        if fits_words and not isinstance(self.teacher, str | os.PathLike):
            raise InputError(
                "teacher is missing: expected the folder of lstm-dssm-teach"
                " --words, to whose vectors the words are fitted"
            )
        if self.teacher is not None and not fits_words:
            raise InputError(
                "teacher is used by word_sum and best_words only: leave it out,"
                " or give it to lstm-dssm-export --hybrid"
            )
        if self.teacher is not None and getattr(self.recipe, "fields", None):
            raise InputError(
                "fields and teacher are both set: expected one of them, since a"
                " teacher has vectors of whole texts: leave one out"
            )
        if self.replay is not None and self.teacher is not None:
            raise InputError(
                "replay and teacher are both set: expected one of them, since "
                "a teacher has no vectors of old clicks: leave one out"
            )

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Raises `InputError` if an option in `options` has no effect."""
        names = {
            field.name
            for field in dataclasses.fields(self)
            if "unused_if" in field.metadata
            and options.get(field.name, field.default) != field.default
        }
        if self.recipe.stops_without_dev:
            names.discard("patience")
        self.check_used(names)

    def check_workers(self) -> None:
        """Raises `InputError` unless several workers can train the model."""
        kind = kind_of(self.recipe)
        if not kind.joint:
            trained = " and ".join(k.plural for k in KINDS.values() if k.joint)
            raise InputError(
                f"several workers train {trained} only: leave the workers out"
                f" for {kind.plural}"
            )
        for field in dataclasses.fields(self):
            joint = field.metadata.get("joint", True)
            if not joint and getattr(self, field.name):
                raise InputError(
                    f"--{field.name} is not supported by several workers: "
                    "leave it out, or train without --workers"
                )

    def to_dict(self) -> dict[str, Any]:
        """Returns the options that `config.json` holds, see `stored_value`."""
        values = {
            name: self.stored_value(name, getattr(self, name))
            for name in self.stored_names()
            if name != "recipe"
        }
        return {**values, "recipe": self.recipe.to_dict()}

    @classmethod
    def stored_names(cls) -> list[str]:
        """Returns the names of the options that `config.json` holds."""
        return [
            field.name
            for field in dataclasses.fields(cls)
            if field.metadata.get("stored", True)
        ]

    @staticmethod
    def stored_value(name: str, value: Any) -> Any:
        """Returns the value of an option as `config.json` holds it.

        Paths become absolute. If an option is an object, such as a model, only
        the name of its class is stored. Raises `InputError` if `dev` is neither
        a path nor an object that was read from a folder.
        """
        if value is None or isinstance(value, int | float | Mapping):
            return value
        if name == "replay":
            return str(ReplaySpec.parse(value))
        if name == "dev" and hasattr(value, "folder"):
            value = value.folder
        is_path = isinstance(value, str | os.PathLike)
        if name == "dev" and not is_path:
            raise InputError(
                f"dev is a {type(value).__name__}, which cannot be stored in a"
                " run folder: give the path of the collection's folder, or"
                " train without an output folder"
            )
        if name in ("data", "validation", "dev"):
            return absolute_spec(os.fspath(value))
        if name == "select" or (
            name == "salience" and value in SALIENCE_TEACHERS
        ):
            return value
        if not is_path:
            return f"a {type(value).__name__}"
        return os.path.abspath(value)

    @classmethod
    def from_dict(
        cls, values: Mapping[str, Any], **options: Any
    ) -> "TrainingConfig":
        """Makes the options of a run from the content of `config.json`.

        `options` are options that `config.json` never stores. Raises `KeyError`
        if an option of `stored_names` is missing in `values`.
        """
        stored = {name: values[name] for name in cls.stored_names()}
        stored["recipe"] = recipe_from_dict(stored["recipe"])
        return cls(**stored, **options)
