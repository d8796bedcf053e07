"""`train` and `resume` train models. `Training` is the base of trainings."""

import os
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from typing import Any, TypeVar

import keras
import tensorflow as tf

from keras_lstm_dssm.callbacks import (
    BestEpoch,
    Checkpoint,
    DeadNetwork,
    Diverged,
    HistoryFile,
    RankingEvaluation,
    explain_failure,
)
from keras_lstm_dssm.data.batches import training_batches
from keras_lstm_dssm.data.click_log import ClickLog, write_pairs
from keras_lstm_dssm.data.sources import DataSource, open_files
from keras_lstm_dssm.data.statistics import data_statistics
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.clustering import ClusterTask
from keras_lstm_dssm.evaluation.measures import MEASURES
from keras_lstm_dssm.evaluation.task import Task
from keras_lstm_dssm.model_cards import record_training
from keras_lstm_dssm.models.builders import find_recipe
from keras_lstm_dssm.run_folder import RunFolder, check_resumable, config_of_run
from keras_lstm_dssm.settings.kinds import kind_of
from keras_lstm_dssm.settings.recipes import ModelRecipe
from keras_lstm_dssm.settings.training import TrainingConfig
from keras_lstm_dssm.training.initial_model import InitialModel
from keras_lstm_dssm.training.word_fit import fit_word_sum
from keras_lstm_dssm.version import __version__

_T = TypeVar("_T")


class Processes:
    """Runs a training in one process; `Workers` runs it in several."""

    first: bool = True  # whether this process writes the run folder
    size: int = 1  # number of processes
    rank: int = 0  # index of this process

    def on_first(self, function: Callable[[], _T]) -> _T:
        """Runs a function in the first process; all processes get the value."""
        return function()

    def on_each(self, function: Callable[[], _T]) -> _T:
        """Calls a function in each process."""
        return function()

    def only_on_first(self, function: Callable[[], _T]) -> _T | None:
        """Calls a function in the first process; other processes get `None`."""
        return function()

    def open_clicks(
        self, open_log: Callable[[], tuple[ClickLog, DataSource]]
    ) -> tuple[ClickLog, DataSource]:
        """Opens and checks the clicks, and returns them with their source."""
        log, source = open_log()
        log.files()  # raises `InputError` for a wrong file
        return log, source

    def shard(self, training: "Training", model: Any) -> None:
        """Restricts a training to this process's part of the data."""

    def best_epoch(self, training: "Training") -> BestEpoch | None:
        """Returns the callback that chooses the best epoch, or `None`."""
        return training.best_epoch()

    def settings(self) -> dict[str, Any]:
        """Returns the settings of the processes, for `config.json`."""
        return {}

    def start(self, model: Any, run: RunFolder) -> Any:
        """Returns the model that this process trains."""
        return model

    def join(
        self, model: Any, training: "Training"
    ) -> list[keras.callbacks.Callback]:
        """Makes all processes train together; returns callbacks for this."""
        return []


ONE_PROCESS = Processes()


class Training(ABC):
    """Base class of all trainings: opens data, makes the model and batches."""

    examples_name = "pairs"  # what messages call the training examples
    spec: str  # text with which a resumed run opens the data
    log: ClickLog | None = None  # the click log, if the examples are clicks
    progress: bool = False  # whether encoding and mining show progress bars

    def __init__(
        self,
        config: TrainingConfig,
        run: RunFolder,
        resumed: bool = False,
        processes: Processes = ONE_PROCESS,
    ) -> None:
        self.config = config
        self.recipe: Any = config.recipe
        self.run = run
        self.resumed = resumed
        self.processes = processes
        self.open()

    @abstractmethod
    def open(self) -> None:
        """Opens and checks the data."""

    @abstractmethod
    def new_model(self, initial: InitialModel | None = None) -> Any:
        """Builds and compiles the model, from `initial` or random weights."""

    def prepare(self, model: Any) -> None:  # noqa: B027 (not always needed)
        """Prepares the batches for the model."""

    @abstractmethod
    def count(self) -> int:
        """Returns the number of examples in an epoch."""

    @abstractmethod
    def batches(self, first: int) -> tf.data.Dataset:
        """Returns the batches from training step `first` on."""

    @abstractmethod
    def describe(self) -> str:
        """Describes the amount of data in one line."""

    @abstractmethod
    def warn(self, model: Any) -> None:
        """Prints warnings about the data, if any."""

    def print_warning(self, text: str) -> None:
        """Prints a warning about the data on standard error."""
        print(f"warning: {self.spec}: {text}", file=sys.stderr)

    @abstractmethod
    def dev_task(self, spec: str) -> Any:
        """Opens the dev data, on which the model is evaluated after epochs."""

    def best_epoch(self) -> BestEpoch | None:
        """Returns the callback that chooses the best epoch, or `None`."""
        config = self.config
        dev = config.dev
        if dev is None:
            return None
        if not isinstance(dev, Task | ClusterTask):
            dev = self.dev_task(config.stored_value("dev", dev))
        measures = getattr(dev, "measures", MEASURES)
        if config.select not in measures:
            raise InputError(
                f"select is {config.select!r}: expected one of"
                f" {', '.join(measures)}"
            )
        return RankingEvaluation(
            dev, config.select, config.every, True, config.patience,
            config.min_relevant, self.progress,
        )  # fmt: skip

    def validation_batches(self, pairs: ClickLog) -> tf.data.Dataset:
        """Returns batches for the validation loss after each epoch."""
        # In random order, the negatives are as varied as in training.
        return training_batches(pairs, self.recipe.batch_size, epochs=1, seed=0)

    def batches_of_fit(
        self, first: int, model: Any
    ) -> tuple[tf.data.Dataset, int]:
        """Returns batches, and the last epoch (from 1) with these batches."""
        return self.batches(first), self.recipe.epochs

    def needs_checkpoint(self, epochs: int) -> bool:
        """Returns whether a checkpoint must be saved after `epochs` epochs."""
        return False

    @property
    def logs(self) -> tuple[ClickLog, ...]:
        """The click logs that are read during training."""
        return ()

    @property
    def watches(self) -> list[keras.callbacks.Callback]:
        """Callbacks that stop or warn if the training cannot succeed."""
        return []

    def schedules(self, steps: int) -> list[keras.callbacks.Callback]:
        """Callbacks that set the momentum over `steps` training steps."""
        return []

    @property
    def max_bad_lines(self) -> int:
        """Largest number of bad lines that are skipped without an error."""
        return self.log.max_bad_lines if self.log else 0

    @cached_property
    def examples(self) -> int:
        """Number of pairs, triples or documents in an epoch."""
        return self.count()

    @cached_property
    def steps_per_epoch(self) -> int:
        """Training steps in an epoch."""
        return -(-self.examples // self.recipe.batch_size)

    @cached_property
    def bad_lines(self) -> Mapping[str, int]:
        """The number of skipped lines of the data, for each reason."""
        return self.log.bad_lines() if self.log else {}

    def settings(self) -> dict[str, Any]:
        """Returns the options of the training, for `config.json`."""
        return self.config.replace(
            data=self.spec, max_bad_lines=self.max_bad_lines
        ).to_dict()

    def check_same_data(self, stored: Mapping[str, Any]) -> None:
        """Checks that the data have not changed since the run was started."""
        counts = self.examples, sum(self.bad_lines.values())
        expected = stored["pairs"], stored["bad_lines"]
        if counts != expected:
            raise InputError(
                f"{stored['data']}: found {counts[0]} {self.examples_name} and "
                f"{counts[1]} bad lines, expected the {expected[0]} and "
                f"{expected[1]} that the run was started with; restore the "
                "data, or train anew in another --output"
            )
        digests = self.digests()
        for name, digest in stored["digests"].items():
            if digests.get(name) != digest:
                raise InputError(
                    f"{stored[name]}: found other files of --{name} than those "
                    "that the run was started with (SHA-256 "
                    f"{digests.get(name, 'unknown'):.12}, expected "
                    f"{digest:.12}); restore them, or train anew in another "
                    "--output"
                )

    def digests(self) -> dict[str, str]:
        """Returns the SHA-256 of the files of data, dev and validation."""
        settings = self.settings()
        digests = {}
        for name in ("data", "dev", "validation"):
            if settings[name] is not None:
                statistics = data_statistics(settings[name])
                if "sha256" in statistics:
                    digests[name] = statistics["sha256"]
        return digests


def open_clicks(
    data: Any,
    run: RunFolder,
    min_relevant: int = 1,
    max_bad_lines: int = 0,
    fields: str | None = None,
) -> tuple[ClickLog, DataSource]:
    """Opens clicks from a log, a path or pairs; returns clicks and source."""
    if isinstance(data, ClickLog):
        return data, DataSource(",".join(map(os.fspath, data.paths)))
    if isinstance(data, str | os.PathLike):
        source = DataSource(os.fspath(data), fields)
        copy = run.path / "clicks.train.tsv"
        return source.log(min_relevant, copy, max_bad_lines), source
    path = run.path / "clicks.tsv"
    return write_pairs(data, path), DataSource(str(path))


def open_validation(config: TrainingConfig) -> ClickLog | None:
    """Opens and checks the clicks for the validation loss."""
    if config.validation is None:
        return None
    validation = open_files(os.fspath(config.validation), config.max_bad_lines)
    validation.files()  # raises `InputError` for a wrong file
    return validation


def restore(
    training: Training, best: BestEpoch | None, model: Any, saved: bool
) -> None:
    """Restores the state of `best` when a run is resumed."""
    if best is None:
        return
    run, last = training.run, training.recipe.epochs
    best.on_best = run.save_model if saved else None
    steps = int(model.optimizer.iterations.numpy())
    epochs, steps_in_epoch = divmod(steps, training.steps_per_epoch)
    rows = {int(row["epoch"]): row for row in run.read_history()}
    for epoch in range(1, epochs + 1):
        if best.name in rows.get(epoch, {}):
            best.count(epoch, rows[epoch][best.name])
    if best.best is not None and best.keep_best:
        best.best_weights = run.load_model().get_weights()
    is_due = epochs and epochs not in rows and best.is_due(epochs, last)
    if is_due and not steps_in_epoch:
        # The run stopped before its last full epoch was evaluated.
        logs: dict[str, float] = {}
        callbacks: list[keras.callbacks.Callback] = [best]
        if saved:
            callbacks.append(HistoryFile(run, epochs - 1))
        for callback in callbacks:
            callback.set_model(model)
            callback.set_params({"epochs": last})
            callback.on_epoch_end(epochs - 1, logs)


def fit(
    training: Training,
    model: Any,
    best: BestEpoch | None = None,
    validation: ClickLog | None = None,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    verbose: Any = 0,
    saved: bool = False,
) -> Any:
    """Trains a new or resumed model to the end, and writes the results."""
    run = training.run
    steps_done = int(model.optimizer.iterations.numpy())
    writers: list[keras.callbacks.Callback] = []
    if saved:
        if best:
            best.on_best = run.save_model
        minutes = training.config.save_minutes
        writers = [
            HistoryFile(run, steps_done // training.steps_per_epoch),
            Checkpoint(run, minutes, training.needs_checkpoint),
            keras.callbacks.TensorBoard(run.logs, write_graph=False),
        ]
    if verbose:
        print(f"{training.describe()}; {model.count_params():,} parameters")
    evaluations = [best] if best else []
    joins = training.processes.join(model, training)
    try:
        if not (best and best.should_stop):
            _fit_epochs(
                training,
                model,
                # Writers are last: they write the metrics of other callbacks.
                # `Checkpoint` also saves if another callback stops training.
                [*joins, *training.watches, *evaluations, *callbacks, *writers],
                verbose,
                validation and training.validation_batches(validation),
            )
    except KeyboardInterrupt:
        if saved and not (best and best.best_weights):
            run.save_model(model)
        raise
    except (DeadNetwork, Diverged, tf.errors.OpError) as error:
        logs = (*training.logs, validation) if validation else training.logs
        explain_failure(
            error, run if saved else None, model, logs, training.batches
        )
        raise
    if best and best.best_weights is not None:
        model.set_weights(best.best_weights)
    if saved:
        _write_results(training, model, validation)
    if verbose:
        epochs = int(model.optimizer.iterations.numpy())
        epochs //= training.steps_per_epoch
        print(
            best.describe(epochs)
            if best
            else f"kept the last epoch, {epochs}: no dev to choose an epoch by"
        )
    return model


def _fit_epochs(
    training: Training,
    model: Any,
    callbacks: Sequence[keras.callbacks.Callback],
    verbose: Any,
    validation: tf.data.Dataset | None,
) -> None:
    """Fits a model to the end, in one or several calls of `fit`."""
    recipe, steps = training.recipe, training.steps_per_epoch
    end = recipe.epochs * steps
    done = int(model.optimizer.iterations.numpy())
    if done and done % steps == 0:
        # The checkpoint may have been saved after the epoch's last step, before
        # the lazy tables were brought up to date.
        model.sync_weights()
    if done >= end:
        return
    one_training = _OneTraining(
        [*model.fit_callbacks(), *callbacks, *training.schedules(end)],
        add_history=True,
        add_progbar=verbose != 0,
        model=model,
    )
    while done < end:
        epoch, steps_in_epoch = divmod(done, steps)
        batches, last = training.batches_of_fit(done, model)
        if steps_in_epoch:
            # The remaining steps of an epoch need a separate call of `fit`.
            last = epoch + 1
        steps_left = steps - steps_in_epoch
        one_training.set_params(
            {"verbose": verbose, "epochs": recipe.epochs, "steps": steps_left}
        )
        model.fit(
            batches,
            initial_epoch=epoch,
            epochs=last,
            steps_per_epoch=steps_left,
            callbacks=one_training,
            verbose=verbose,
            validation_data=validation,
        )
        done = last * steps
        if model.stop_training:
            break
    one_training.end()


class _OneTraining(keras.callbacks.CallbackList):
    """Makes several calls of `fit` look like one training to callbacks."""

    _began = False

    def on_train_begin(self, logs: Any = None) -> None:
        if not self._began:
            self._began = True
            super().on_train_begin(logs)

    def on_train_end(self, logs: Any = None) -> None:
        self._last_logs = logs

    def end(self) -> None:
        super().on_train_end(self._last_logs)


def _write_results(
    training: Training, model: Any, validation: ClickLog | None
) -> None:
    run = training.run
    run.save_model(model)
    history = run.read_history()
    # `history` is empty if the run stopped before it wrote epoch 1.
    run.add_metrics("train", history[-1] if history else {})
    bad_lines = {"data": training.bad_lines}
    if validation:
        bad_lines["validation"] = validation.bad_lines()
    for name, counts in bad_lines.items():
        if counts:
            run.add_metrics(f"bad_lines/{name}", dict(counts))
    record_training(run.path, training.log)


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

    Two trainings give bit-equal weights if data, recipes, seeds, kinds of
    processor and settings of TensorFlow are equal.

    Args:
        data: Clicks are given as files (paths or globs, separated by commas), a
            BEIR folder, `"api"`, `"api_sentences"`, a `ClickLog`, or any
            iterable of (query, clicked title). Documents of a `KeyVec` are
            given as a folder, `"api_documents"` or a `DocumentFolder`. For the
            preset `word_sum`, which needs only `teacher`, give `None`. Or give
            a `TrainingConfig`, which has data, recipe and options.
        recipe: Name of a preset, or a `Recipe` (two towers), a `ScorerRecipe`
            (pair scorer) or a `KeyVecRecipe`. Default: the recipe of the run
            `init`; without `init`, `"best"`.
        output: Run folder for checkpoints, `model.keras`, `history.csv` and
            TensorBoard logs. `resume` needs a run folder. Default `None`:
            nothing is written.
        callbacks: Further callbacks, see `keras.Model.fit`.
        verbose: 1 for a progress bar, 2 for a line for each epoch, 0 for
            nothing. Default `"auto"`: 1 on a terminal and 2 elsewhere.
        **options: Attributes of `TrainingConfig`: `seed`, `dev`, `select`,
            `every`, `patience`, `validation`, `min_relevant`,
            `max_bad_lines`, `titles`, `judged`, `teacher`, `init`, `replay`,
            `negatives_from`, `salience`, `save_minutes`.

    Returns:
        The trained model: a `TwoTower`, `PairScorer` or `KeyVec`.

    Raises:
        InputError: Data, recipe or folder are wrong, or `init` has another
            network than the recipe.
        FailedTraining: The loss or a weight became NaN or infinite, or the
            network is dead. `FailedTraining` is a subclass of `InputError`.
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
        saved = output is not None
        if output is None:
            output = stack.enter_context(tempfile.TemporaryDirectory())
        run = RunFolder(output)
        run.check_new()
        stack.enter_context(run.locked())
        if config.recipe.fitted:
            return fit_word_sum(config, run, verbose, saved)
        return run_training(
            config, run, callbacks=callbacks, verbose=verbose, saved=saved
        )


def resume(
    output: str | os.PathLike[str],
    *,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    verbose: Any = "auto",
    save_minutes: float = 10.0,
) -> Any:
    """Continues a training that was stopped or killed at any moment.

    On one kind of processor, the final weights are bit-equal to the weights of
    an uninterrupted run.

    Args:
        output: The run folder, `output` of `train`.
        callbacks: Further callbacks, see `keras.Model.fit`.
        verbose: 0, 1, 2 or `"auto"`, see `train`.
        save_minutes: Minutes between checkpoints. Default 10.

    Returns:
        The trained model, even if the run was finished before.

    Raises:
        InputError: There is no run, a file is damaged, or the data have
            changed since the run was started.

    Example:
    >>> model = dssm.resume("RUN")
    """
    check_resumable(output)
    run = RunFolder(output)
    stored = {"workers": 1, **run.read_config()}
    if stored["workers"] != 1:
        raise InputError(
            f"{run.path}: found a run of {stored['workers']} workers, not 1: "
            f"give --workers={stored['workers']}"
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
    """Trains a model to the end, and writes the run folder if `saved`.

    `stored` is the `config.json` of a resumed run, `None` for a new run. The
    caller has locked the folder.
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
        if stored is None:
            model = training.new_model(initial)
        else:
            model = run.load_checkpoint()
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
