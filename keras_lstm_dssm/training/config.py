"""The data and the settings of a training, as `config.json` stores them."""

import os
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from keras_lstm_dssm.callbacks.best_epoch import RankingEvaluation
from keras_lstm_dssm.data.click_log import ClickLog, write_pairs
from keras_lstm_dssm.data.collection import Collection
from keras_lstm_dssm.data.documents import DocumentFolder
from keras_lstm_dssm.data.sources import (
    absolute_spec,
    open_collection,
    open_documents,
    open_files,
    open_log,
)
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.clustering import CLUSTER_MEASURES, ClusterTask
from keras_lstm_dssm.evaluation.task import (
    CLUSTER,
    RETRIEVE,
    Task,
    document_tasks,
)
from keras_lstm_dssm.files import check_plain_file, read_json, write_json
from keras_lstm_dssm.models.kinds import (
    AnyRecipe,
    find_recipe,
    recipe_from_dict,
)
from keras_lstm_dssm.models.recipes import KeyVecRecipe, Recipe, ScorerRecipe
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.training.initial_model import Parent

TWO_TOWERS, PAIR_SCORERS, KEYVEC = "two towers", "pair scorers", "a KeyVec"

_USED_BY = {
    "titles": TWO_TOWERS,
    "judged": TWO_TOWERS,
    "teacher": TWO_TOWERS,
    "replay": TWO_TOWERS,
    "negatives_from": PAIR_SCORERS,
    "salience": KEYVEC,
}
"""Option of `train` -> the only kind of models that use it."""


class DataOptions(NamedTuple):
    """Holds the arguments of `train` that name data, not yet opened.

    Attributes:
        data: Clicks or documents, see `train`.
        min_relevant: Grade from which a judged document counts as relevant.
        max_bad_lines: Number of bad lines to leave out.
        titles: Document titles beyond those of the clicks.
        judged: Query -> titles judged not relevant.
        negatives_from: `TwoTower` or run folder that mines negatives.
        salience: Teacher of salient sentences, see `salience_teacher`.
        teacher: Folder or vectors of an outside encoder, see `open_teacher`.
        resumed: Whether a run is resumed, whose files are read again.
        replay: Old clicks to mix in, see `ReplaySpec`.
        continued: Whether the weights start from those of a trained model.
    """

    data: Any
    min_relevant: int = 1
    max_bad_lines: int = 0
    titles: Iterable[str] = ()
    judged: Mapping[str, Sequence[str]] | None = None
    negatives_from: Any = None
    salience: Any = None
    teacher: Any = None
    resumed: bool = False
    replay: Any = None
    continued: bool = False

    def check(self, kind: str) -> None:
        """Checks that options of other kinds of models are not set.

        Args:
            kind: `TWO_TOWERS`, `PAIR_SCORERS` or `KEYVEC`.

        Raises:
            InputError: One of them is set.
        """
        for name, user in _USED_BY.items():
            if user != kind and getattr(self, name):
                raise InputError(
                    f"{name} is used by {user} only: leave it out for {kind}"
                )


class TrainingData(NamedTuple):
    """Specifies the data of a training, as in `config.json` of a run folder.

    Attributes:
        data: Click files, a BEIR folder, a folder of documents or the name of
            a built-in set, see `data.open_log` and `data.open_documents`.
        validation: Click files for the loss after each epoch.
        dev: Folder of judged queries, or the name of a built-in set, for
            `RankingEvaluation`.
        select: The measure that decides which epoch is best.
        every: Evaluate on dev every n epochs.
        patience: Evaluations without a better figure before training stops.
        min_relevant: Grade from which a judged document counts as relevant.
        max_bad_lines: Number of bad lines of the data to leave out.
        negatives_from: Folder of the run of two towers that mine the
            negatives of a pair scorer.
        salience: Teacher of the salient sentences of a `KeyVec`, see
            `teacher_spec`.
        teacher: Folder of the vectors that two towers learn from.
        replay: Old clicks that two towers also learn from, and their share,
            as `ReplaySpec.parse` reads them.
    """

    data: str
    validation: str | None = None
    dev: str | None = None
    select: str = "mrr@10"
    every: int = 1
    patience: int | None = None
    min_relevant: int = 1
    max_bad_lines: int = 0
    negatives_from: str | None = None
    salience: str | None = None
    teacher: str | None = None
    replay: str | None = None

    def open_validation(self, recipe: AnyRecipe) -> ClickLog | None:
        """Opens and checks the clicks for the loss after each epoch."""
        if self.validation is None:
            return None
        if not isinstance(recipe, Recipe):
            raise InputError(
                "validation measures the loss of two towers: for a pair "
                "scorer, give judged lists as dev; that of a KeyVec is "
                "measured on the documents of the split dev"
            )
        validation = open_files(self.validation, self.max_bad_lines)
        validation.files()  # raises for a wrong file before the work
        return validation

    def ranking(
        self, recipe: AnyRecipe, task: Task | ClusterTask | None = None
    ) -> RankingEvaluation | None:
        """Returns the callback that evaluates on `task`, or else on `dev`.

        Towers search the whole corpus, a pair scorer reranks judged lists. A
        `KeyVec` searches the documents of the split dev, or clusters them if
        `select` is a measure of clusters.
        """
        options = self.select, self.every, True, self.patience
        if task is not None:
            return RankingEvaluation(task, *options)
        if self.dev is None:
            return None
        if isinstance(recipe, KeyVecRecipe):
            return RankingEvaluation(self._document_task(recipe), *options)
        dev: Collection | Task = open_collection(self.dev)
        if isinstance(dev, Collection) and isinstance(recipe, ScorerRecipe):
            dev = Task.from_collection(dev, "dev", "rerank", self.min_relevant)
        return RankingEvaluation(dev, *options, self.min_relevant)

    def _document_task(self, recipe: KeyVecRecipe) -> Task | ClusterTask:
        assert self.dev is not None
        folder = open_documents(
            self.dev, self.max_bad_lines, recipe.max_sentences
        )
        tasks = document_tasks(folder, "dev", self.min_relevant)
        kind = CLUSTER if self.select in CLUSTER_MEASURES else RETRIEVE
        if kind not in tasks:
            needs = {CLUSTER: "two classes", RETRIEVE: "qrels/dev.tsv"}
            raise InputError(
                f"{self.dev}: found no {needs[kind]} in the split dev, "
                f"expected by {self.select}: choose another measure (select), "
                "or no dev, for the validation loss"
            )
        return tasks[kind]


def open_clicks(options: DataOptions, run: RunFolder) -> tuple[ClickLog, str]:
    """Opens the clicks that `train` was given, in any of their forms.

    Returns:
        The log, and a specification from which it can be opened again.

    Raises:
        InputError: The clicks are missing or wrong.
    """
    clicks = options.data
    if isinstance(clicks, ClickLog):
        return clicks, ",".join(map(os.fspath, clicks.paths))
    if isinstance(clicks, str | os.PathLike):
        spec = os.fspath(clicks)
        copy = run.path / "clicks.train.tsv"
        log = open_log(spec, options.min_relevant, copy, options.max_bad_lines)
        return log, spec
    path = run.path / "clicks.tsv"
    return write_pairs(clicks, path), str(path)


def given_texts(
    options: DataOptions, run: RunFolder
) -> tuple[tuple[str, ...], Mapping[str, Sequence[str]] | None]:
    """Returns the titles and the judged titles that `train` was given.

    They are written beside the clicks of Python, and read when the run is
    resumed.

    Raises:
        InputError: The file is damaged.
    """
    path = run.path / "given_texts.json"
    if options.resumed:
        check_plain_file(path, run.path)
        given = read_json(path) if path.exists() else {}
        return tuple(given.get("titles", ())), given.get("judged")
    titles, judged = tuple(options.titles), options.judged
    if judged is not None:
        judged = {query: list(negatives) for query, negatives in judged.items()}
    if titles or judged is not None:
        write_json(path, {"titles": titles, "judged": judged})
    return titles, judged


def dev_spec(dev: Any, saved: bool) -> str | None:
    """Returns the folder of `dev`, or `None` without one.

    Args:
        dev: As `train` was given it.
        saved: Whether the run is written to a folder, to be resumed.

    Raises:
        InputError: The run is to be written, and `dev` has no folder.
    """
    if isinstance(dev, Task | ClusterTask):
        if saved:
            raise InputError(
                f"dev is a {type(dev).__name__}, which a run folder cannot "
                "hold to be resumed: give the folder of the collection, or no "
                "output"
            )
        return None
    if isinstance(dev, Collection | DocumentFolder):
        dev = dev.folder
    return absolute_spec(os.fspath(dev)) if dev is not None else None


def teacher_spec(teacher: Any, names: Container[str] = ()) -> str | None:
    """Returns the string for a teacher model in a run's `config.json`.

    Args:
        teacher: A run folder, whose path becomes absolute; or a model, which
            is named by its class, since a resumed run reads what it has
            taught from a file.
        names: Names of teachers, which are not paths.
    """
    if teacher is None or teacher in names:
        return teacher
    if isinstance(teacher, str | os.PathLike):
        return os.path.abspath(teacher)
    return f"a {type(teacher).__name__}"


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


_ABSENT = dict.fromkeys(("negatives_from", "salience", "teacher", "replay"))


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
