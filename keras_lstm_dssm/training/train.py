"""`train` and `resume`, which train a model by a recipe in one call."""

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import keras

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.model_cards import record_training
from keras_lstm_dssm.models.builders import find_recipe
from keras_lstm_dssm.models.two_tower import TwoTower
from keras_lstm_dssm.run_folder import RunFolder, check_resumable
from keras_lstm_dssm.settings.kinds import kind_of
from keras_lstm_dssm.settings.recipes import ModelRecipe
from keras_lstm_dssm.settings.training import TrainingConfig
from keras_lstm_dssm.training.initial_model import InitialModel
from keras_lstm_dssm.training.session import (
    ONE_PROCESS,
    Processes,
    Training,
    config_of_run,
    fit,
    open_validation,
    restore,
)
from keras_lstm_dssm.training.word_fit import with_fitted_words
from keras_lstm_dssm.version import __version__


def train(
    data: Any = None,
    recipe: str | ModelRecipe | None = None,
    *,
    output: str | os.PathLike[str] | None = None,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    verbose: Any = "auto",
    **options: Any,
) -> Any:
    """Builds and trains the model that a recipe describes.

    `lstm-dssm-train` and the benchmarks call this function, too: the same
    data, recipe and seed give the same weights, bit for bit on one kind of
    processor with the same settings of TensorFlow.

    Args:
        data: Click files (a path, a glob, or several separated by commas),
            a BEIR folder, `"api"` or `"api_sentences"`; or a `ClickLog`, or
            any iterable of (query, clicked title). For a `KeyVec`, documents:
            a folder of them, `"api_documents"` or a `DocumentFolder`. `None`
            for `word_sum`, which is fitted to the texts of `teacher`. Or a
            `TrainingConfig`, which holds all options.
        recipe: Name of a preset; or a `Recipe`, of two towers, a
            `ScorerRecipe`, of a pair scorer, or a `KeyVecRecipe`. By default
            that of the run `init`, or `"best"` without one.
        output: Run folder for checkpoints, `model.keras`, `history.csv` and
            TensorBoard logs, from which `resume` continues; `None` writes
            nothing.
        callbacks: Further callbacks, see `keras.Model.fit`.
        verbose: 1 for a progress bar, 2 for a line an epoch, 0 for nothing;
            `"auto"` is 1 on a terminal and 2 elsewhere.
        **options: Attributes of `TrainingConfig`: `seed`, `dev`, `select`,
            `every`, `patience`, `validation`, `min_relevant`,
            `max_bad_lines`, `titles`, `judged`, `teacher`, `init`, `replay`,
            `negatives_from`, `salience`, `save_minutes`.

    Returns:
        The trained model: a `TwoTower`, `PairScorer` or `KeyVec`.

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
    if isinstance(data, TrainingConfig):
        config = data.replace(**options)
        find_recipe(config.recipe)
    else:
        TrainingConfig.check_names(options)
        init = options.get("init")
        if recipe is None and isinstance(init, str | os.PathLike):
            recipe = InitialModel.recipe_of(init)
        recipe = find_recipe("best" if recipe is None else recipe)
        config = TrainingConfig(data, recipe, **options)
        config.check_options(options)
    if output is not None and not os.fspath(output):
        raise InputError(
            "output is '': expected the folder of the run, or None to write"
            " nothing"
        )
    with ExitStack() as stack:
        if output is None:
            run = RunFolder(stack.enter_context(tempfile.TemporaryDirectory()))
        else:
            run = RunFolder(output)
        run.check_new()
        stack.enter_context(run.locked())
        saved = output is not None
        if config.recipe.fitted:
            return _fit_word_sum(config, run, verbose, saved)
        return run_training(
            config, run, callbacks=callbacks, verbose=verbose, saved=saved
        )


def _fit_word_sum(
    config: TrainingConfig, run: RunFolder, verbose: Any, saved: bool
) -> TwoTower:
    """Trains two towers of the preset `word_sum`, without epochs.

    Their encoders add up vectors of words, which are computed by least squares
    so that the sums approximate the text vectors that `lstm-dssm-teach` wrote
    to `config.teacher`. A damaged folder raises `InputError`.
    """
    recipe, teacher = config.recipe, config.teacher
    model: TwoTower = with_fitted_words(recipe, teacher, config.seed)
    layer: Any = model.query_encoder.word_rows
    if verbose:
        print(
            f"vectors of {layer.words:,} words and {layer.trigrams:,} trigrams"
        )
    if saved:
        settings = {**config.to_dict(), "data": os.path.abspath(teacher)}
        run.create({"version": __version__, **settings}, model)
        run.save(model, run.model)
        run.add_metrics("train", {"words": layer.words})
        record_training(run.path)
    return model


def resume(
    output: str | os.PathLike[str],
    *,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    verbose: Any = "auto",
    save_minutes: float = 10.0,
) -> Any:
    """Continues a training that was stopped or killed, at any moment.

    It trains on the remaining batches and ends with the weights of an
    uninterrupted run, bit for bit on one kind of processor.

    Args:
        output: The run folder that `train` was given.
        callbacks: Further callbacks, see `keras.Model.fit`.
        verbose: 0, 1, 2 or `"auto"`, see `train`.
        save_minutes: Age of the last checkpoint after which one is saved.

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
    stored = {"workers": 1, **run.read_config()}
    if stored["workers"] != 1:
        raise InputError(
            f"{run.path}: found a run of {stored['workers']} workers, which "
            f"goes on with as many: give --workers={stored['workers']}"
        )
    with run.locked():
        config = config_of_run(run, stored, save_minutes=save_minutes)
        run.read_metrics()
        run.read_history()
        return run_training(config, run, stored, callbacks, verbose)


def run_training(
    config: TrainingConfig,
    run: RunFolder,
    stored: Mapping[str, Any] | None = None,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    verbose: Any = "auto",
    saved: bool = True,
    processes: Processes = ONE_PROCESS,
) -> Any:
    """Trains a model to the end: the road of all trainings.

    `stored` is the content of the `config.json` of a run that goes on. The
    first of the `processes` has locked the run folder, and writes it if
    `saved`.
    """
    if not processes.first:
        verbose = 0
    elif verbose == "auto":
        verbose = 1 if sys.stdout.isatty() else 2
    initial = None
    if stored is None and config.init is not None:
        initial = processes.only_on_first(
            lambda: InitialModel.open(config.init)
        )
    training: Training = kind_of(config.recipe).load("training")(
        config, run, stored is not None, processes
    )
    training.progress = verbose == 1
    settings = training.settings() if saved and stored is None else {}
    validation = processes.only_on_first(lambda: open_validation(config))
    best = processes.best_epoch(training)

    def begin() -> Any:
        model = (
            training.new_model(initial)
            if stored is None
            else run.load_checkpoint()
        )
        training.prepare(model)
        return model

    model = processes.only_on_first(begin)
    processes.shard(training, model)

    def create() -> None:
        if stored is not None:
            training.check_same_data(stored)
            return
        if verbose:
            training.warn(model)
        if saved:
            run.create(
                {
                    "version": __version__,
                    **settings,
                    "init": initial and initial.describe(),
                    "pairs": training.examples,
                    "bad_lines": sum(training.bad_lines.values()),
                    "digests": training.digests(),
                    **processes.settings(),
                },
                model,
            )

    processes.on_first(create)
    model = processes.start(model, run)
    saved = saved and processes.first
    if stored is not None:
        restore(training, best, model, saved)
    return fit(training, model, best, validation, callbacks, verbose, saved)
