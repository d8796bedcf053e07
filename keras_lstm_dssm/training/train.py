"""`train` and `resume`, which train a model by a recipe in one call."""

import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import keras

from keras_lstm_dssm.callbacks.gate_histograms import GateHistograms
from keras_lstm_dssm.data.collection import Collection
from keras_lstm_dssm.data.documents import DocumentFolder
from keras_lstm_dssm.data.sources import absolute_spec
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.clustering import ClusterTask
from keras_lstm_dssm.evaluation.task import Task
from keras_lstm_dssm.models.keyvec import KeyVec
from keras_lstm_dssm.models.kinds import AnyRecipe, find_recipe
from keras_lstm_dssm.models.pair_scorer import PairScorer
from keras_lstm_dssm.models.recipes import KeyVecRecipe, Recipe, ScorerRecipe
from keras_lstm_dssm.models.two_tower import TwoTower
from keras_lstm_dssm.run_folder import RunFolder, check_resumable
from keras_lstm_dssm.settings.choices import DEFAULT_SALIENCE
from keras_lstm_dssm.training.config import (
    DataOptions,
    TrainingData,
    dev_spec,
    read_settings,
    teacher_spec,
)
from keras_lstm_dssm.training.document_targets import DocumentTargets
from keras_lstm_dssm.training.initial_model import Parent
from keras_lstm_dssm.training.keyvec_training import DocumentTraining
from keras_lstm_dssm.training.replay import ReplaySpec
from keras_lstm_dssm.training.salience import TEACHERS
from keras_lstm_dssm.training.scorer_training import ScorerTraining
from keras_lstm_dssm.training.session import (
    BaseTraining,
    TrainingSession,
    check_same_data,
    new_config,
    warn_of_version,
)
from keras_lstm_dssm.training.tower_training import (
    Teacher,
    TowerTraining,
    teacher_folder,
)


def train(
    clicks: Any,
    recipe: str | AnyRecipe | None = None,
    *,
    seed: int = 0,
    output: str | os.PathLike[str] | None = None,
    titles: Iterable[str] = (),
    judged: Mapping[str, Sequence[str]] | None = None,
    validation: str | None = None,
    dev: str | Collection | DocumentFolder | Task | ClusterTask | None = None,
    select: str = "mrr@10",
    every: int = 1,
    patience: int | None = None,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    verbose: Any = "auto",
    min_relevant: int = 1,
    max_bad_lines: int = 0,
    save_minutes: float = 10.0,
    histograms: bool = False,
    negatives_from: str | os.PathLike[str] | TwoTower | None = None,
    salience: (
        str | os.PathLike[str] | TwoTower | DocumentTargets | None
    ) = None,
    teacher: Teacher | None = None,
    init: str | os.PathLike[str] | TwoTower | PairScorer | KeyVec | None = None,
    replay: str | tuple[Any, float] | None = None,
) -> TwoTower | PairScorer | KeyVec:
    """Builds and trains the model that a recipe describes.

    `lstm-dssm-train` and the benchmarks call this function, too: the same
    data, recipe and seed give the same weights, bit for bit on one kind of
    processor with the same settings of TensorFlow.

    Args:
        clicks: Click files (a path, a glob, or several separated by commas),
            a BEIR folder, `"api"` or `"api_sentences"`; or a `ClickLog`, or
            any iterable of (query, clicked title). For a `KeyVec`, documents:
            a folder of them, `"api_documents"` or a `DocumentFolder`.
        recipe: Name of a preset; or a `Recipe`, of two towers, a
            `ScorerRecipe`, of a pair scorer, or a `KeyVecRecipe`. By default
            that of the run `init`, or `"best"` without one.
            A pair scorer learns from the judged lists of a BEIR folder, or
            from clicks with mined negatives.
        seed: Seed of the weights, the shuffling and all random draws.
            Default 0.
        output: Run folder for checkpoints, `model.keras`, `history.csv` and
            TensorBoard logs, from which `resume` continues; `None` writes
            nothing.
        titles: Document titles beyond those of `clicks`, for the statistics
            of words and for synthetic pairs.
        judged: Query -> titles judged not relevant, for a recipe with
            `judged_negatives`; by default those of the BEIR folder.
        validation: Click files for the loss after each epoch.
        dev: A BEIR folder, `"api"`, a `Collection` or a `Task` whose
            rankings are measured while training, see `RankingEvaluation`;
            the best epoch becomes the model. For a `KeyVec`, documents or a
            `ClusterTask`; without dev, the loss on the documents of the split
            dev is measured.
        select: The measure that decides which epoch is best. Default
            `"mrr@10"`; for a `KeyVec`, one of clusters, such as `"ari"`, too.
        every: Evaluate on dev every n epochs. Default 1.
        patience: Evaluations without a better figure before training stops;
            by default as the recipe of two towers says (`best`: 3), and
            never for other models. For a `KeyVec` without dev:
            epochs without a smaller loss on the split dev, whose best epoch
            then becomes the model; by default as the recipe says.
        callbacks: Further callbacks, see `keras.Model.fit`.
        verbose: 1 for a progress bar, 2 for a line an epoch, 0 for nothing;
            `"auto"` is 1 on a terminal and 2 elsewhere.
        min_relevant: Grade from which a judged title of a BEIR folder counts
            as clicked. Default 1.
        max_bad_lines: Number of bad lines of click files, or of documents, to
            leave out. Default 0.
        save_minutes: Age of the last checkpoint after which one is saved
            within an epoch. Default 10.
        histograms: Whether to write histograms of the gates for TensorBoard.
            Default `False`.
        negatives_from: For a pair scorer that learns from clicks: a trained
            `TwoTower`, or the folder of its run, whose nearest titles are
            the mined negatives. Default `None`: the nearest by BM25.
        salience: For a `KeyVec`: the teacher of salient sentences, `"bm25"`
            (the default), `"lead"`, `"trigrams"`, a trained `TwoTower` or the
            folder of its run, see `salience_teacher`; or the targets of the
            documents of train and, without `dev`, of the split dev.
        teacher: For two towers: folder of the vectors of an outside encoder
            (`lstm-dssm-teach` or `teacher.teach` writes it), or its
            `TeacherVectors`, from which they learn beside the clicks, as the
            recipe's `teacher_weight` says. Default `None`.
        init: A trained model, or the folder of its run, from whose weights
            this training starts: a new run, with its own schedule, of the
            same network (docs/train.md). Default `None`: random weights.
        replay: With `init`, for two towers: old clicks and how many to draw
            for each new one, such as `"old.tsv:0.2"` or `(log, 0.2)`; each
            epoch draws others. Default `None`.

    Returns:
        The trained model.

    Raises:
        InputError: Data, recipe or folder are wrong, or `init` has another
            network than the recipe.
        FailedTraining: The loss or a weight became NaN or infinite (the
            message names the batch's texts), or a network learns nothing
            more. It is an `InputError`, too.
        OSError: A file of the run cannot be written.

    Example:
    >>> model = dssm.train("clicks.tsv.gz", "best", output="RUN")
    >>> index = dssm.Index(model, titles)
    >>> index.search(["angle bracket"], k=10)
    """
    parent = None if init is None else Parent.open(init)
    if parent is None and replay is not None:
        raise InputError(
            "replay mixes old clicks into a training that is continued: give "
            "init, the run to continue, or name all clicks as data"
        )
    if recipe is None:
        recipe = parent and parent.recipe or "best"
    recipe = find_recipe(recipe)
    if isinstance(recipe, Recipe) and dev is not None and patience is None:
        patience = recipe.patience or None
    if isinstance(recipe, KeyVecRecipe):
        salience = DEFAULT_SALIENCE if salience is None else salience
        if dev is None:  # the validation loss stops it, as the recipe says
            patience = recipe.patience if patience is None else patience
            recipe = recipe.replace(patience=patience)
            patience = patience or None  # 0 stops nothing
    with ExitStack() as stack:
        folder = output or stack.enter_context(tempfile.TemporaryDirectory())
        run = RunFolder(folder)
        run.check_new()
        stack.enter_context(run.locked())
        options = DataOptions(
            clicks, min_relevant, max_bad_lines, titles, judged,
            negatives_from, salience, teacher, replay=replay,
            continued=parent is not None,
        )  # fmt: skip
        work = _open(recipe, seed, run, options)
        data = TrainingData(
            absolute_spec(work.spec),
            validation and absolute_spec(validation),
            dev_spec(dev, output is not None),
            select,
            every,
            patience,
            min_relevant,
            work.max_bad_lines,
            teacher_spec(negatives_from),
            teacher_spec(salience, TEACHERS),
            teacher_folder(teacher, output is not None),
            replay and str(ReplaySpec.parse(replay)),
        )
        task = dev if isinstance(dev, Task | ClusterTask) else None
        checked = data.open_validation(recipe), work.best_epoch(data, task)
        model = work.new_model(parent)
        plan = work.plan(run.path, model)
        if verbose:
            work.warn(model)
        if histograms:  # raises for a model without gates before the run
            GateHistograms.from_log(run.logs / "gates", model, plan.log)
        if output is not None:
            run.create(new_config(data, recipe, seed, parent, plan), model)
        training = TrainingSession(run, output is not None, plan, *checked)
        return training.fit(model, callbacks, verbose, save_minutes, histograms)


def resume(
    output: str | os.PathLike[str],
    *,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    verbose: Any = "auto",
    save_minutes: float = 10.0,
    histograms: bool = False,
) -> TwoTower | PairScorer | KeyVec:
    """Continues a training that was stopped or killed, at any moment.

    It trains on the remaining batches and ends with the weights of an
    uninterrupted run, bit for bit on one kind of processor.

    Args:
        output: The run folder that `train` was given.
        callbacks: Further callbacks, see `keras.Model.fit`.
        verbose: 0, 1, 2 or `"auto"`, see `train`.
        save_minutes: Age of the last checkpoint after which one is saved.
        histograms: Whether to write histograms of the gates for TensorBoard.

    Returns:
        The trained model; that of a finished run is not trained further.

    Raises:
        InputError: There is no run, a file is damaged, or the data are not
            those that the run was started with.

    Example:
    >>> model = dssm.resume("RUN")
    """
    check_resumable(output)
    run = RunFolder(output)
    config = {"workers": 1, **run.read_config()}
    if config["workers"] != 1:
        raise InputError(
            f"{run.path}: found a run of {config['workers']} workers, which "
            f"goes on with as many: give --workers={config['workers']}"
        )
    with run.locked():
        warn_of_version(run, config)
        data, recipe, seed, continued = read_settings(run, config)
        run.read_metrics()
        run.read_history()
        options = DataOptions(
            data.data, data.min_relevant, data.max_bad_lines,
            negatives_from=data.negatives_from, salience=data.salience,
            teacher=data.teacher, resumed=True, replay=data.replay,
            continued=continued,
        )  # fmt: skip
        work = _open(recipe, seed, run, options)
        model = run.load_checkpoint()
        plan = work.plan(run.path, model, resumed=True)
        check_same_data(config, plan)
        training = TrainingSession(
            run,
            True,
            plan,
            data.open_validation(recipe),
            work.best_epoch(data, None),
        )
        training.restore(model)
        return training.fit(model, callbacks, verbose, save_minutes, histograms)


def _open(
    recipe: AnyRecipe, seed: int, run: RunFolder, options: DataOptions
) -> BaseTraining:
    if isinstance(recipe, ScorerRecipe):
        return ScorerTraining.open(recipe, seed, run, options)
    if isinstance(recipe, KeyVecRecipe):
        return DocumentTraining.open(recipe, seed, run, options)
    return TowerTraining.open(recipe, seed, run, options)
