"""train: from clicks and a recipe to a trained model, in one call."""

import os
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from keras_lstm_dssm.data import (
    ClickLog,
    Collection,
    absolute_spec,
    judged_negatives,
    open_collection,
    open_files,
    open_log,
    titles_of,
    training_batches,
    write_pairs,
)
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import Task
from keras_lstm_dssm.models import Recipe, TwoTower, find_recipe
from keras_lstm_dssm.training.cosine_softmax import CosineSoftmax
from keras_lstm_dssm.training.faults import Diverged, explain
from keras_lstm_dssm.training.gate_histograms import GateHistograms
from keras_lstm_dssm.training.nesterov_momentum import NesterovMomentum
from keras_lstm_dssm.training.ranking_evaluation import RankingEvaluation
from keras_lstm_dssm.training.run_callbacks import Checkpoint, HistoryFile
from keras_lstm_dssm.training.run_folder import RunFolder
from keras_lstm_dssm.training.training_plan import (
    TrainingPlan,
    fit_plan,
    make_plan,
)
from keras_lstm_dssm.version import __version__


class Data(NamedTuple):
    """The data of a training, as `config.json` of a run folder holds it.

    Attributes:
        data: What is trained on, see `data.open_log`.
        validation: Click files for the loss after each epoch.
        dev: Folder of judged queries, or `api`, for `RankingEvaluation`.
        select: See `RankingEvaluation.measure`.
        every: See `RankingEvaluation`.
        patience: See `RankingEvaluation`.
        min_relevant: Grade from which a judged document counts as relevant.
        max_bad_lines: Bad lines of click files that are skipped.
    """

    data: str
    validation: str | None = None
    dev: str | None = None
    select: str = "mrr@10"
    every: int = 1
    patience: int | None = None
    min_relevant: int = 1
    max_bad_lines: int = 0


def train(
    clicks: Any,
    recipe: str | Recipe = "best",
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
) -> TwoTower:
    """Builds, adapts and trains two towers as a recipe describes.

    `lstm-dssm-train` and the tables call this function too: the same data,
    recipe and seed give the same weights, bit for bit on one kind of
    processor.

    Args:
        clicks: Click files (a path, a glob, or several separated by commas),
            a BEIR folder, or `"api"`; or a `ClickLog`, or any iterable of
            (query, clicked title).
        recipe: Name of a preset, or a `Recipe`.
        seed: Seed of the weights, of the order and of all draws.
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
        select: The measure that decides which epoch is best.
        every: Evaluate on dev every n epochs.
        patience: Evaluations without a better figure before training stops.
        callbacks: Further callbacks, see `keras.Model.fit`.
        verbose: 1 for a progress bar, 2 for a line an epoch, 0 for nothing;
            `"auto"` is 1 on a terminal and 2 elsewhere.
        min_relevant: Grade from which a judged title of a BEIR folder counts
            as clicked.
        max_bad_lines: Bad lines of click files that are skipped.
        save_minutes: Age of the last checkpoint after which one is saved
            within an epoch.
        histograms: Whether to write histograms of the gates for TensorBoard.

    Returns:
        The trained model.

    Raises:
        InputError: Data, recipe or folder are wrong; or the loss or a weight
            became NaN or infinite (the message names the batch's texts).
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
        if isinstance(clicks, ClickLog):
            log, spec = clicks, ",".join(map(os.fspath, clicks.paths))
        elif isinstance(clicks, str | os.PathLike):
            spec = os.fspath(clicks)
            log = open_log(
                spec,
                min_relevant,
                run.path / "clicks.train.tsv",
                max_bad_lines,
            )
        else:
            log = write_pairs(clicks, run.path / "clicks.tsv")
            spec = str(run.path / "clicks.tsv")
        data = Data(
            absolute_spec(spec),
            validation and absolute_spec(validation),
            _dev_spec(dev, output),
            select,
            every,
            patience,
            min_relevant,
            log.max_bad_lines,
        )
        log.files()  # a wrong file shows before the work
        all_titles = list(dict.fromkeys([*titles, *titles_of(spec, log)]))
        if recipe.judged_negatives and judged is None:
            judged = judged_negatives(spec, min_relevant)
        checked = _open_validation(data), _ranking(run, data, dev)
        model = new_model(recipe, seed, lambda: all_titles)
        plan = make_plan(
            recipe,
            seed,
            log,
            lambda: all_titles,
            run.path,
            judged,
            model.query_encoder.trigrams.split,
        )
        if histograms:  # an encoder without gates is refused before the run
            GateHistograms.from_log(run.logs / "gates", model, plan.log)
        if output is not None:
            run.create(
                {
                    "version": __version__,
                    **data._asdict(),
                    "seed": seed,
                    "recipe": recipe.to_dict(),
                    "pairs": plan.log.count(),
                    "bad_lines": sum(log.bad_lines().values()),
                },
                model,
            )
        training = _Training(run, output is not None, plan, *checked)
        return training.fit(model, callbacks, verbose, save_minutes, histograms)


def resume(
    output: str | os.PathLike[str],
    *,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    verbose: Any = "auto",
    save_minutes: float = 10.0,
    histograms: bool = False,
) -> TwoTower:
    """Continues a training that was stopped or killed, at any moment.

    It trains on the very batches that were left, and ends with the weights
    of a run that was never stopped, bit for bit on one kind of processor.

    Args:
        output: The run folder that `train` was given.
        callbacks: See `train`.
        verbose: See `train`.
        save_minutes: See `train`.
        histograms: See `train`.

    Returns:
        The trained model; of a finished run, the model as it is.

    Raises:
        InputError: There is no run, a file is damaged, or the clicks are not
            those that the run was started with.

    Example:
    >>> model = dssm.resume("RUN")
    """
    run = RunFolder(output)
    config = run.read_config()
    with run.locked():
        try:
            data = Data(**{name: config[name] for name in Data._fields})
            recipe, seed = Recipe.from_dict(config["recipe"]), config["seed"]
            expected = config["pairs"], config["bad_lines"]
        except (KeyError, TypeError) as error:
            raise InputError(
                f"{run.config}: {error} is missing, expected the settings of "
                "a run; restore the file, or train anew in another --output"
            ) from None
        run.read_metrics()
        run.read_history()
        log = open_log(
            data.data,
            data.min_relevant,
            run.path / "clicks.train.tsv",
            data.max_bad_lines,
        )
        judged = None
        if recipe.judged_negatives:
            judged = judged_negatives(data.data, data.min_relevant)
        model = run.load_checkpoint()
        plan = make_plan(
            recipe,
            seed,
            log,
            lambda: titles_of(data.data, log),
            run.path,
            judged,
            model.query_encoder.trigrams.split,
            resumed=True,
        )
        found = plan.log.count(), sum(log.bad_lines().values())
        if found != expected:
            raise InputError(
                f"{data.data}: found {found[0]} pairs and {found[1]} bad "
                f"lines, expected the {expected[0]} and {expected[1]} that "
                "the run was started with; restore them, or train anew in "
                "another --output"
            )
        training = _Training(
            run, True, plan, _open_validation(data), _ranking(run, data)
        )
        training.restore(model)
        return training.fit(model, callbacks, verbose, save_minutes, histograms)


def new_model(recipe: Recipe, seed: int, titles: Any) -> TwoTower:
    """Builds, adapts and compiles the model of a recipe.

    Args:
        recipe: The recipe.
        seed: Seed of the weights and of random negatives.
        titles: Returns the document titles; called if an encoder needs them.
    """
    model = recipe.build(seed)
    if model.needs_adapt:
        model.adapt(titles())
    model.compile(
        NesterovMomentum(
            recipe.learning_rate,
            recipe.momentum_ends,
            threshold=recipe.threshold,
        ),
        CosineSoftmax(recipe.gamma),
    )
    return model


class _Training(NamedTuple):
    """A training under way: its folder, data and order."""

    run: RunFolder
    saved: bool
    plan: TrainingPlan
    validation: ClickLog | None
    ranking: RankingEvaluation | None

    def restore(self, model: TwoTower) -> None:
        """Gives `ranking` the figures of the epochs before a resumption."""
        ranking = self.ranking
        if ranking is None:
            return
        steps = int(model.optimizer.iterations.numpy())
        epochs, inside = divmod(steps, self.plan.steps)
        rows = {int(row["epoch"]): row for row in self.run.read_history()}
        for epoch in range(1, epochs + 1):
            if ranking.name in rows.get(epoch, {}):
                ranking.count(epoch, rows[epoch][ranking.name])
        if ranking.best is not None:
            ranking.best_weights = self.run.load_model().get_weights()
        if (
            epochs
            and not inside
            and epochs not in rows
            and ranking.is_due(epochs, self.plan.recipe.epochs)
        ):
            # Stopped after the last step of an epoch, before its figures.
            logs: dict[str, float] = {}
            for callback in (ranking, HistoryFile(self.run, epochs - 1)):
                callback.set_model(model)
                callback.set_params({"epochs": self.plan.recipe.epochs})
                callback.on_epoch_end(epochs - 1, logs)

    def fit(
        self,
        model: TwoTower,
        callbacks: Sequence[keras.callbacks.Callback],
        verbose: Any,
        save_minutes: float,
        histograms: bool,
    ) -> TwoTower:
        """Trains to the end, and writes the model and its figures."""
        run, plan, ranking = self.run, self.plan, self.ranking
        validation = self.validation
        if verbose == "auto":
            verbose = 1 if sys.stdout.isatty() else 2
        done = int(model.optimizer.iterations.numpy())
        files: list[keras.callbacks.Callback] = []
        if self.saved:
            files = [
                HistoryFile(run, done // plan.steps),
                Checkpoint(run, save_minutes),
                keras.callbacks.TensorBoard(run.logs, write_graph=False),
            ]
        if histograms:
            gates = GateHistograms.from_log(run.logs / "gates", model, plan.log)
            files.append(gates)
        if verbose:
            print(
                f"{plan.log.count():,} pairs; {model.count_params():,} "
                "parameters"
            )
        measured = [ranking] if ranking else []
        try:
            if not (ranking and ranking.should_stop):
                fit_plan(
                    model,
                    plan,
                    [*measured, *files, *callbacks],
                    verbose,
                    # In one order, but shuffled: negatives come from the
                    # batch, and similar ones would not compare with those of
                    # training.
                    validation_data=validation
                    and training_batches(
                        validation, plan.recipe.batch_size, epochs=1, seed=0
                    ),
                )
        except KeyboardInterrupt:
            if self.saved and not (ranking and ranking.best_epoch):
                run.save(without_optimizer(model), run.model)
            raise
        except (Diverged, tf.errors.OpError) as error:
            logs = (plan.log, validation) if validation else (plan.log,)
            explain(
                error, run if self.saved else None, model, logs, plan.batches
            )
            raise
        if ranking and ranking.best_weights is not None:
            model.set_weights(ranking.best_weights)
        if self.saved:
            self._write_results(model)
        return model

    def _write_results(self, model: TwoTower) -> None:
        run = self.run
        run.save(without_optimizer(model), run.model)
        history = run.read_history()
        # Empty: stopped after the only epoch's last step, before its figures.
        run.add_metrics("train", history[-1] if history else {})
        logs = ("data", self.plan.log), ("validation", self.validation)
        for name, log in logs:
            if log and (bad := log.bad_lines()):
                run.add_metrics(f"bad_lines/{name}", bad)


class _SavedRanking(RankingEvaluation):
    """Also writes the weights of the best epoch to `model.keras`."""

    def __init__(self, run: RunFolder, *args: Any) -> None:
        super().__init__(*args)
        self.run = run

    def keep(self) -> None:
        super().keep()
        self.run.save(without_optimizer(self.model), self.run.model)


def _open_validation(data: Data) -> ClickLog | None:
    if data.validation is None:
        return None
    validation = open_files(data.validation, data.max_bad_lines)
    validation.files()  # a wrong file shows before the work
    return validation


def _ranking(
    run: RunFolder, data: Data, dev: Any = None
) -> RankingEvaluation | None:
    options = data.select, data.every, True, data.patience
    if isinstance(dev, Task):
        return RankingEvaluation(dev, *options)
    if data.dev is None:
        return None
    return _SavedRanking(run, open_collection(data.dev), *options)


def _dev_spec(dev: Any, output: Any) -> str | None:
    if isinstance(dev, Task):
        if output is not None:
            raise InputError(
                "dev is a Task, which a run folder cannot hold to be resumed: "
                "give the folder of the collection, or no output"
            )
        return None
    if isinstance(dev, Collection):
        dev = dev.folder
    return absolute_spec(os.fspath(dev)) if dev is not None else None


def without_optimizer(model: TwoTower) -> TwoTower:
    """Returns a copy that is half the size when saved, and loads uncompiled."""
    copy = type(model).from_config(model.get_config())
    copy.set_weights(model.get_weights())
    return copy
