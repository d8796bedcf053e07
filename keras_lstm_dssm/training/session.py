"""`TrainingSession`, which trains a model and writes its run folder.

`BasePlan` and `BaseTraining` are the bases of the trainings of all kinds of
models.
"""

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from keras_lstm_dssm.callbacks.best_epoch import BestEpoch
from keras_lstm_dssm.callbacks.checkpoint import Checkpoint, HistoryFile
from keras_lstm_dssm.callbacks.failures import DeadNetwork, Diverged, explain
from keras_lstm_dssm.callbacks.gate_histograms import GateHistograms
from keras_lstm_dssm.data.batches import training_batches
from keras_lstm_dssm.data.click_log import ClickLog
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.model_cards.record import record_training
from keras_lstm_dssm.models.kinds import AnyRecipe
from keras_lstm_dssm.optimizers.nesterov_momentum import NesterovSchedule
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.training.config import TrainingData
from keras_lstm_dssm.training.initial_model import Parent
from keras_lstm_dssm.version import __version__


class BasePlan(ABC):
    """Base of the plans: the examples, their order, and the training steps.

    Attributes:
        recipe: Epochs and batch size.
        log: The click log of the examples; `None` if they are no clicks.
    """

    recipe: AnyRecipe
    log: ClickLog | None

    examples_name = "pairs"
    """What the examples are called in messages."""

    @property
    @abstractmethod
    def examples(self) -> int:
        """Number of pairs, triples or documents in an epoch."""

    @abstractmethod
    def batches(self, first: int) -> tf.data.Dataset:
        """Returns the batches from training step `first` on."""

    def batches_of_a_fit(
        self, first: int, model: Any
    ) -> tuple[tf.data.Dataset, int]:
        """Returns the batches for one call of `fit`, and where it ends.

        Args:
            first: Training step of the first batch.
            model: The model at this training step.

        Returns:
            The batches, and the last epoch, counted from 1, for which they
            are valid. Default: the last epoch of the recipe.
        """
        return self.batches(first), self.recipe.epochs

    def needs_checkpoint(self, epochs: int) -> bool:
        """Returns whether a checkpoint must be saved after some epochs.

        It must if the next epoch overwrites a file that a resume from an older
        checkpoint would need.

        Args:
            epochs: Number of complete epochs.
        """
        return False

    @abstractmethod
    def describe(self) -> str:
        """Describes the amount of data in one line."""

    @property
    def bad_lines(self) -> Mapping[str, int]:
        """What is wrong -> number of lines of the data that are left out."""
        return self.log.bad_lines() if self.log else {}

    @property
    def logs(self) -> tuple[ClickLog, ...]:
        """The click logs that are read while training. Default: none."""
        return ()

    @property
    def watches(self) -> list[keras.callbacks.Callback]:
        """Callbacks for a training that cannot succeed. Default: none."""
        return []

    @property
    def steps_per_epoch(self) -> int:
        """Training steps in an epoch."""
        return -(-self.examples // self.recipe.batch_size)

    @property
    def total_steps(self) -> int:
        """Training steps in all epochs."""
        return self.recipe.epochs * self.steps_per_epoch


"""Settings that `config.json` of an earlier version lacks, and their value."""


def new_config(
    data: TrainingData,
    recipe: AnyRecipe,
    seed: int,
    parent: Parent | None,
    plan: BasePlan,
) -> dict[str, Any]:
    """Returns the content of `config.json` of a new run.

    Args:
        data: The data.
        recipe: The recipe.
        seed: Seed of the weights and of all random draws.
        parent: The trained model that the run starts from, or `None`.
        plan: The plan, whose numbers of examples and of bad lines a resumed
            run compares with its own, see `check_same_data`.
    """
    return {
        "version": __version__,
        **data._asdict(),
        "init": parent and parent.describe(),
        "seed": seed,
        "recipe": recipe.to_dict(),
        "pairs": plan.examples,
        "bad_lines": sum(plan.bad_lines.values()),
    }


def warn_of_version(run: RunFolder, config: Mapping[str, Any]) -> None:
    """Prints a line if a run that goes on was started by another version."""
    version = config.get("version")
    if version not in (None, __version__):
        print(
            f"warning: {run.path}: the run was started with version {version},"
            f" and goes on with {__version__}: its end may differ from that of"
            " either",
            file=sys.stderr,
        )


def check_same_data(config: Mapping[str, Any], plan: BasePlan) -> None:
    """Checks that the data are those that the run was started with.

    Args:
        config: Content of the run's `config.json`.
        plan: The plan that was made of the data now.

    Raises:
        InputError: The number of examples or of bad lines has changed.
    """
    found = plan.examples, sum(plan.bad_lines.values())
    expected = config["pairs"], config["bad_lines"]
    if found != expected:
        raise InputError(
            f"{config['data']}: found {found[0]} {plan.examples_name} and "
            f"{found[1]} bad lines, expected the {expected[0]} and "
            f"{expected[1]} that the run was started with; restore them, "
            "or train anew in another --output"
        )


class BaseTraining(ABC):
    """Base of the trainings: makes the model and the plan.

    A subclass is a frozen dataclass. Its class method `open` takes the recipe,
    the seed, the run folder and `DataOptions`.

    Attributes:
        recipe: The recipe.
        seed: Seed of the weights and of all random draws.
        spec: Data specification from which the data can be opened again.
        log: The click log that is learnt from; `None` for other data.
    """

    recipe: AnyRecipe
    seed: int
    spec: str
    log: ClickLog | None

    @abstractmethod
    def new_model(self, parent: Parent | None = None) -> Any:
        """Builds and compiles the model.

        Args:
            parent: The trained model whose weights, adapted statistics and
                words it takes; `None` for random weights.

        Raises:
            InputError: The parent is not of the recipe's network.
        """

    @abstractmethod
    def plan(self, folder: Path, model: Any, resumed: bool = False) -> BasePlan:
        """Makes the plan.

        Args:
            folder: The folder of the run, for the files of the plan.
            model: The model.
            resumed: Whether to use files that the run has written.
        """

    @abstractmethod
    def warn(self, model: Any) -> None:
        """Prints warnings about the data to standard error."""

    @property
    def max_bad_lines(self) -> int:
        """Number of bad lines of the data that may be left out."""
        return self.log.max_bad_lines if self.log else 0

    def best_epoch(self, data: TrainingData, dev: Any) -> BestEpoch | None:
        """Returns the callback that chooses the best epoch, or `None`.

        Args:
            data: The settings of the run.
            dev: The `Task` or `ClusterTask` that `train` was given as `dev`;
                `None` for that of `data`.
        """
        return data.ranking(self.recipe, dev)


def fit_plan(
    model: Any,
    plan: Any,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    verbose: Any = 0,
    **kwargs: Any,
) -> None:
    """Fits a compiled model from its last training step to the plan's end.

    The last training step is that of `optimizer.iterations`. Callbacks see
    one training, although `fit` is called again after each mining. If the
    optimizer has a momentum to change, it follows the recipe's schedule, if
    there is one.

    Args:
        model: The `TwoTower`, `PairScorer` or `KeyVec`.
        plan: The data and its order, a `TrainingPlan`, `TriplePlan` or
            `DocumentPlan`.
        callbacks: See `keras.Model.fit`; one that sets `model.stop_training`
            ends the training.
        verbose: See `keras.Model.fit`.
        **kwargs: Other arguments of `fit`: `validation_data`.

    Example:
    >>> recipe = dssm.Recipe("DSSMEncoder", {"units": [4]}, epochs=1)
    >>> recipe = recipe.replace(batch_size=2)
    >>> model = recipe.build()
    >>> model.compile(dssm.NesterovMomentum(0.1), dssm.CosineSoftmax(gamma=5.0))
    >>> clicks = dssm.data.open_log("parts")
    >>> fit_plan(model, dssm.training.TrainingPlan(clicks, recipe))
    >>> int(model.optimizer.iterations)
    2
    """
    recipe, steps, end = plan.recipe, plan.steps_per_epoch, plan.total_steps
    done = int(model.optimizer.iterations.numpy())
    if done and done % steps == 0:
        # A checkpoint made just before the end of an epoch: an uninterrupted
        # run brings its rows up to date there.
        model.sync_weights()
    if done >= end:
        return
    schedule = []
    if hasattr(model.optimizer, "look_ahead") and hasattr(
        recipe, "momentum_ends"
    ):
        schedule.append(
            NesterovSchedule(
                end,
                recipe.momentum_ends,
                recipe.momentum_middle,
                recipe.momentum_fraction,
            )
        )
    one_training = _OneTraining(
        [*model.fit_callbacks(), *callbacks, *schedule],
        add_history=True,
        add_progbar=verbose != 0,
        model=model,
    )
    while done < end:
        epoch, inside = divmod(done, steps)
        batches, last = plan.batches_of_a_fit(done, model)
        if inside:
            # `fit` has a fixed number of steps per epoch: the rest of an
            # interrupted epoch needs a call of its own.
            last = epoch + 1
        one_training.set_params(
            {
                "verbose": verbose,
                "epochs": recipe.epochs,
                "steps": steps - inside,
            }
        )
        model.fit(
            batches,
            initial_epoch=epoch,
            epochs=last,
            steps_per_epoch=steps - inside,
            callbacks=one_training,
            verbose=verbose,
            **kwargs,
        )
        done = last * steps
        if model.stop_training:
            break
    one_training.end()


class _OneTraining(keras.callbacks.CallbackList):
    """Lets callbacks see several calls of `fit` as one training."""

    _began = False

    def on_train_begin(self, logs: Any = None) -> None:
        if not self._began:
            self._began = True
            super().on_train_begin(logs)

    def on_train_end(self, logs: Any = None) -> None:
        self._last_logs = logs

    def end(self) -> None:
        """Calls `on_train_end` of each callback."""
        super().on_train_end(self._last_logs)


class TrainingSession(NamedTuple):
    """Runs one training with its callbacks, and writes its results.

    Attributes:
        run: The folder of its files.
        saved: Whether checkpoints, figures and the model are written to it.
        plan: The data and its order.
        validation: Clicks for the loss after each epoch, or `None`.
        best_epoch: Callback that measures the model after epochs and keeps
            the best one, or `None`.
    """

    run: RunFolder
    saved: bool
    plan: BasePlan
    validation: ClickLog | None
    best_epoch: BestEpoch | None

    def restore(self, model: Any) -> None:
        """Restores the figures of the epochs before a resume."""
        best = self.best_epoch
        if best is None:
            return
        best.on_best = self._save_model if self.saved else None
        steps = int(model.optimizer.iterations.numpy())
        epochs, inside = divmod(steps, self.plan.steps_per_epoch)
        rows = {int(row["epoch"]): row for row in self.run.read_history()}
        for epoch in range(1, epochs + 1):
            if best.name in rows.get(epoch, {}):
                best.count(epoch, rows[epoch][best.name])
        if best.best is not None and best.keep_best:
            best.best_weights = self.run.load_model().get_weights()
        if (
            epochs
            and not inside
            and epochs not in rows
            and best.is_due(epochs, self.plan.recipe.epochs)
        ):
            # Stopped after an epoch's last step, before its evaluation.
            logs: dict[str, float] = {}
            callbacks: list[keras.callbacks.Callback] = [best]
            if self.saved:
                callbacks.append(HistoryFile(self.run, epochs - 1))
            for callback in callbacks:
                callback.set_model(model)
                callback.set_params({"epochs": self.plan.recipe.epochs})
                callback.on_epoch_end(epochs - 1, logs)

    def fit(
        self,
        model: Any,
        callbacks: Sequence[keras.callbacks.Callback],
        verbose: Any,
        save_minutes: float,
        histograms: bool,
    ) -> Any:
        """Trains to the end, and writes the model and its figures."""
        run, plan, best = self.run, self.plan, self.best_epoch
        validation = self.validation
        if verbose == "auto":
            verbose = 1 if sys.stdout.isatty() else 2
        done = int(model.optimizer.iterations.numpy())
        files: list[keras.callbacks.Callback] = []
        if self.saved:
            if best:
                best.on_best = self._save_model
            files = [
                HistoryFile(run, done // plan.steps_per_epoch),
                Checkpoint(run, save_minutes, plan.needs_checkpoint),
                keras.callbacks.TensorBoard(run.logs, write_graph=False),
            ]
        if histograms:
            gates = GateHistograms.from_log(run.logs / "gates", model, plan.log)
            files.append(gates)
        if verbose:
            print(f"{plan.describe()}; {model.count_params():,} parameters")
        measured = [best] if best else []
        try:
            if not (best and best.should_stop):
                fit_plan(
                    model,
                    plan,
                    [*plan.watches, *measured, *files, *callbacks],
                    verbose,
                    # Shuffled, always in one order: negatives come from the
                    # batch, and in file order they could be more similar
                    # than in training.
                    validation_data=validation
                    and training_batches(
                        validation, plan.recipe.batch_size, epochs=1, seed=0
                    ),
                )
        except KeyboardInterrupt:
            if self.saved and not (best and best.best_weights):
                self._save_model(model)
            raise
        except (DeadNetwork, Diverged, tf.errors.OpError) as error:
            logs = (*plan.logs, validation) if validation else plan.logs
            explain(
                error, run if self.saved else None, model, logs, plan.batches
            )
            raise
        if best and best.best_weights is not None:
            model.set_weights(best.best_weights)
        if self.saved:
            self._write_results(model)
        return model

    def _save_model(self, model: Any) -> None:
        self.run.save(without_optimizer(model), self.run.model)

    def _write_results(self, model: Any) -> None:
        run = self.run
        self._save_model(model)
        history = run.read_history()
        # Empty if stopped between the last step of epoch 1 and its figures.
        run.add_metrics("train", history[-1] if history else {})
        bad_lines = {"data": self.plan.bad_lines}
        if self.validation:
            bad_lines["validation"] = self.validation.bad_lines()
        for name, bad in bad_lines.items():
            if bad:
                run.add_metrics(f"bad_lines/{name}", dict(bad))
        record_training(run.path, self.plan.log)


def without_optimizer(model: Any) -> Any:
    """Returns an uncompiled copy, which is half the size when saved."""
    copy = type(model).from_config(model.get_config())
    copy.set_weights(model.get_weights())
    return copy
