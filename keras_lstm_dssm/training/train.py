"""train: from clicks and a recipe to a trained model, in one call."""

import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import keras

from keras_lstm_dssm.data import ClickLog, Collection, absolute_spec
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import Task
from keras_lstm_dssm.models import (
    AnyRecipe,
    KeyVecRecipe,
    PairScorer,
    ScorerRecipe,
    TwoTower,
    find_recipe,
    recipe_from_dict,
)
from keras_lstm_dssm.training.gate_histograms import GateHistograms
from keras_lstm_dssm.training.run_folder import RunFolder
from keras_lstm_dssm.training.scorer_training import ScorerTraining
from keras_lstm_dssm.training.tower_training import TowerTraining
from keras_lstm_dssm.training.training_data import TrainingData, dev_spec
from keras_lstm_dssm.training.training_session import TrainingSession
from keras_lstm_dssm.version import __version__


def train(
    clicks: Any,
    recipe: str | AnyRecipe = "best",
    *,
    seed: int = 0,
    output: str | os.PathLike[str] | None = None,
    titles: Iterable[str] = (),
    judged: Mapping[str, Sequence[str]] | None = None,
    validation: str | None = None,
    dev: str | Collection | Task | None = None,
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
) -> TwoTower | PairScorer:
    """Builds and trains the model that a recipe describes.

    `lstm-dssm-train` and the benchmarks call this function, too: the same
    data, recipe and seed give the same weights, bit for bit on one kind of
    processor.

    Args:
        clicks: Click files (a path, a glob, or several separated by commas),
            a BEIR folder, or `"api"`; or a `ClickLog`, or any iterable of
            (query, clicked title).
        recipe: Name of a preset, `"best"` by default; or a `Recipe`, of two
            towers, or a `ScorerRecipe`, of a pair scorer. A pair scorer
            learns from the judged lists of a BEIR folder, or from clicks
            with mined negatives.
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
            the best epoch becomes the model.
        select: The measure that decides which epoch is best. Default
            `"mrr@10"`.
        every: Evaluate on dev every n epochs. Default 1.
        patience: Evaluations without a better figure before training stops;
            `None`, the default, never stops it.
        callbacks: Further callbacks, see `keras.Model.fit`.
        verbose: 1 for a progress bar, 2 for a line an epoch, 0 for nothing;
            `"auto"` is 1 on a terminal and 2 elsewhere.
        min_relevant: Grade from which a judged title of a BEIR folder counts
            as clicked. Default 1.
        max_bad_lines: Number of bad lines of click files to leave out.
            Default 0.
        save_minutes: Age of the last checkpoint after which one is saved
            within an epoch. Default 10.
        histograms: Whether to write histograms of the gates for TensorBoard.
            Default `False`.
        negatives_from: For a pair scorer that learns from clicks: a trained
            `TwoTower`, or the folder of its run, whose nearest titles are
            the mined negatives. Default `None`: the nearest by BM25.

    Returns:
        The trained model.

    Raises:
        InputError: Data, recipe or folder are wrong.
        FailedTraining: The loss or a weight became NaN or infinite (the
            message names the batch's texts), or a network learns nothing
            more. It is an `InputError`, too.
        OSError: A file of the run cannot be written.

    Example:
    >>> model = dssm.train("clicks.tsv.gz", "best", output="RUN")
    >>> index = dssm.Index(model, titles)
    >>> index.search(["angle bracket"], k=10)
    """
    recipe = find_recipe(recipe)
    with ExitStack() as stack:
        folder = output or stack.enter_context(tempfile.TemporaryDirectory())
        run = RunFolder(folder)
        run.check_new()
        stack.enter_context(run.locked())
        if isinstance(negatives_from, str | os.PathLike):
            negatives_from = os.path.abspath(negatives_from)
        work = _open(
            recipe, seed, clicks, run, min_relevant, max_bad_lines, titles,
            judged, negatives_from=negatives_from,
        )  # fmt: skip
        log = work.log
        data = TrainingData(
            absolute_spec(work.spec),
            validation and absolute_spec(validation),
            dev_spec(dev, output is not None),
            select,
            every,
            patience,
            min_relevant,
            log.max_bad_lines if log else 0,
            # The negatives of a resumed run come from a file.
            "a TwoTower"
            if isinstance(negatives_from, TwoTower)
            else negatives_from,
        )
        task = dev if isinstance(dev, Task) else None
        checked = data.open_validation(recipe), data.ranking(run, recipe, task)
        model = work.new_model()
        plan = work.plan(run.path, model)
        if verbose:
            work.warn()
        if histograms:  # raises for a model without gates before the run
            GateHistograms.from_log(run.logs / "gates", model, plan.log)
        if output is not None:
            run.create(
                {
                    "version": __version__,
                    **data._asdict(),
                    "seed": seed,
                    "recipe": recipe.to_dict(),
                    "pairs": plan.examples,
                    "bad_lines": _bad_lines(log),
                },
                model,
            )
        training = TrainingSession(run, output is not None, plan, *checked)
        return training.fit(model, callbacks, verbose, save_minutes, histograms)


def resume(
    output: str | os.PathLike[str],
    *,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    verbose: Any = "auto",
    save_minutes: float = 10.0,
    histograms: bool = False,
) -> TwoTower | PairScorer:
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
        InputError: There is no run, a file is damaged, or the clicks are not
            those that the run was started with.

    Example:
    >>> model = dssm.resume("RUN")
    """
    run = RunFolder(output)
    # A run of an earlier version has no negatives_from.
    config = {"negatives_from": None, **run.read_config()}
    with run.locked():
        try:
            data = TrainingData(
                **{name: config[name] for name in TrainingData._fields}
            )
            recipe = recipe_from_dict(config["recipe"])
            seed = config["seed"]
            expected = config["pairs"], config["bad_lines"]
        except (KeyError, TypeError) as error:
            raise InputError(
                f"{run.config}: {error} is missing, expected the settings of "
                "a run; restore the file, or train anew in another --output"
            ) from None
        run.read_metrics()
        run.read_history()
        work = _open(
            recipe, seed, data.data, run, data.min_relevant,
            data.max_bad_lines, negatives_from=data.negatives_from,
            resumed=True,
        )  # fmt: skip
        model = run.load_checkpoint()
        plan = work.plan(run.path, model, resumed=True)
        found = plan.examples, _bad_lines(work.log)
        if found != expected:
            raise InputError(
                f"{data.data}: found {found[0]} pairs and {found[1]} bad "
                f"lines, expected the {expected[0]} and {expected[1]} that "
                "the run was started with; restore them, or train anew in "
                "another --output"
            )
        training = TrainingSession(
            run,
            True,
            plan,
            data.open_validation(recipe),
            data.ranking(run, recipe),
        )
        training.restore(model)
        return training.fit(model, callbacks, verbose, save_minutes, histograms)


def _open(
    recipe: AnyRecipe, *args: Any, **mining: Any
) -> TowerTraining | ScorerTraining:
    if isinstance(recipe, ScorerRecipe):
        return ScorerTraining.open(recipe, *args, **mining)
    if isinstance(recipe, KeyVecRecipe):
        raise InputError(
            "train learns from clicks and judged lists, a KeyVec from "
            "documents: give another preset, or call KeyVec.fit"
        )
    if mining["negatives_from"] is not None:
        raise InputError(
            "negatives_from is used by pair scorers only: leave it out, two "
            "towers mine their own negatives with hard_negatives"
        )
    return TowerTraining.open(recipe, *args)


def _bad_lines(log: ClickLog | None) -> int:
    return sum(log.bad_lines().values()) if log else 0
