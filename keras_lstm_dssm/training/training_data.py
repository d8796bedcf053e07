"""TrainingData: what a training reads: clicks, validation and dev."""

import os
from typing import Any, NamedTuple

from keras_lstm_dssm.data import (
    ClickLog,
    Collection,
    absolute_spec,
    open_collection,
    open_files,
    open_log,
    write_pairs,
)
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import Task
from keras_lstm_dssm.models import AnyRecipe, ScorerRecipe
from keras_lstm_dssm.training.ranking_evaluation import RankingEvaluation
from keras_lstm_dssm.training.run_folder import RunFolder
from keras_lstm_dssm.training.training_session import SavedRanking


class TrainingData(NamedTuple):
    """Specifies the data of a training, as in `config.json` of a run folder.

    Attributes:
        data: Click files, BEIR folder or `api`, see `data.open_log`.
        validation: Click files for the loss after each epoch.
        dev: Folder of judged queries, or `api`, for `RankingEvaluation`.
        select: The measure that decides which epoch is best.
        every: Evaluate on dev every n epochs.
        patience: Evaluations without a better figure before training stops.
        min_relevant: Grade from which a judged document counts as relevant.
        max_bad_lines: Number of bad lines of click files to leave out.
        negatives_from: Folder of the run of two towers that mine the
            negatives of a pair scorer.
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

    def open_validation(self, recipe: AnyRecipe) -> ClickLog | None:
        """Opens and checks the clicks for the loss after each epoch."""
        if self.validation is None:
            return None
        if isinstance(recipe, ScorerRecipe):
            raise InputError(
                "validation measures the loss of two towers: for a pair "
                "scorer, give judged lists as dev"
            )
        validation = open_files(self.validation, self.max_bad_lines)
        validation.files()  # raises for a wrong file before the work
        return validation

    def ranking(
        self, run: RunFolder, recipe: AnyRecipe, task: Task | None = None
    ) -> RankingEvaluation | None:
        """Returns the callback that evaluates on `task`, or else on `dev`.

        Towers search the whole corpus, a pair scorer reranks judged lists.
        """
        options = self.select, self.every, True, self.patience
        if task is not None:
            return RankingEvaluation(task, *options)
        if self.dev is None:
            return None
        dev: Collection | Task = open_collection(self.dev)
        if isinstance(dev, Collection) and isinstance(recipe, ScorerRecipe):
            dev = Task.from_collection(dev, "dev", "rerank", self.min_relevant)
        return SavedRanking(run, dev, *options)


def open_clicks(
    clicks: Any, run: RunFolder, min_relevant: int, max_bad_lines: int
) -> tuple[ClickLog, str]:
    """Opens the clicks that `train` was given, in any of their forms.

    Returns:
        The log, and a specification from which it can be opened again.

    Raises:
        InputError: The clicks are missing or wrong.
    """
    if isinstance(clicks, ClickLog):
        return clicks, ",".join(map(os.fspath, clicks.paths))
    if isinstance(clicks, str | os.PathLike):
        spec = os.fspath(clicks)
        copy = run.path / "clicks.train.tsv"
        return open_log(spec, min_relevant, copy, max_bad_lines), spec
    path = run.path / "clicks.tsv"
    return write_pairs(clicks, path), str(path)


def dev_spec(dev: str | Collection | Task | None, saved: bool) -> str | None:
    """Returns the folder of `dev`, or `None` without one.

    Args:
        dev: As `train` was given it.
        saved: Whether the run is written to a folder, to be resumed.

    Raises:
        InputError: The run is to be written, and `dev` has no folder.
    """
    if isinstance(dev, Task):
        if saved:
            raise InputError(
                "dev is a Task, which a run folder cannot hold to be resumed: "
                "give the folder of the collection, or no output"
            )
        return None
    if isinstance(dev, Collection):
        dev = dev.folder
    return absolute_spec(os.fspath(dev)) if dev is not None else None
