"""Callbacks that find failed training, keep the best epoch, and save a run."""

import math
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.data.click_log import ClickLog
from keras_lstm_dssm.data.collection import Collection
from keras_lstm_dssm.errors import (
    NOT_FINITE,
    FailedTraining,
    InputError,
    check_at_least,
)
from keras_lstm_dssm.evaluation.bm25 import TOKENIZERS, BM25System
from keras_lstm_dssm.evaluation.clustering import ClusterTask
from keras_lstm_dssm.evaluation.measures import MEASURES, mean
from keras_lstm_dssm.evaluation.runs import System
from keras_lstm_dssm.evaluation.systems import system_of, words_of
from keras_lstm_dssm.evaluation.task import Task
from keras_lstm_dssm.files import replacing, write_csv
from keras_lstm_dssm.run_folder import RunFolder

__all__ = ["RankingEvaluation"]

_TEXTS = 3  # an error message shows this many rows of a batch

_LOST = (
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.UnavailableError,
)
"""Errors that TensorFlow raises if it loses the connection to a worker."""


class Diverged(ArithmeticError):
    """Raised if a variable is not finite; the message names the variable."""


class DeadNetwork(ArithmeticError):
    """Raised if nearly all triples of an epoch had two equal scores.

    A triple is a query with a positive and a negative document.
    """

    def __init__(self, epoch: int) -> None:
        super().__init__(f"the scores of epoch {epoch} are equal")
        self.epoch = epoch


def check_finite(model: Any) -> None:
    """Raises `Diverged` if a variable of model or optimizer is not finite."""
    for owner in (*model.layers, model.optimizer):
        is_layer = owner is not model.optimizer
        name = owner.name.replace("_", " ") if is_layer else "optimizer"
        for variable in owner.variables:
            if variable.dtype.startswith("float") and not tf.reduce_all(
                tf.math.is_finite(variable.value)
            ):
                raise Diverged(f"{variable.path} of the {name}")


def explain_failure(
    error: Exception,
    run: RunFolder | None,
    model: Any,
    logs: Iterable[ClickLog],  # as they were when the training began
    batches: Callable[[int], tf.data.Dataset],  # n -> batches after n steps
) -> None:
    """Raises an `InputError` that says what to do, if the cause is known.

    Returns if the cause is not known, or if the connection to a worker is lost.
    """
    if isinstance(error, _LOST):
        return
    if isinstance(error, DeadNetwork):
        raise FailedTraining(
            f"epoch {error.epoch}: found equal scores for both documents of"
            " the triples: the network is dead (its hidden units have one"
            " value for all texts) and learns nothing more;"
            f" {_advice('the state before this epoch', run)} with a smaller"
            " --learning_rate"
        ) from error
    steps = int(model.optimizer.iterations.numpy())
    if isinstance(error, Diverged):
        # `iterations` includes the training step that diverged.
        raise _diverged(f"{error} is", run, steps, batches(steps - 1))
    if NOT_FINITE in str(error):
        raise _diverged("the loss is", run, steps + 1, batches(steps))
    if run and str(run.logs) in str(error):
        raise InputError(
            f"{run.logs}: cannot be written to ({str(error).splitlines()[0]});"
            " make room, and go on with --resume"
        )
    for log in logs:
        current_log = ClickLog(log.paths, log.max_bad_lines)
        for before, after in zip(log.files(), current_log.files(), strict=True):
            if before != after:
                raise InputError(
                    f"{after.path}: found {after.lines:,} lines, expected the"
                    f" {before.lines:,} that were there when training began:"
                    " restore the file, and go on with --resume"
                )


def _diverged(
    what: str, run: RunFolder | None, step: int, batches: tf.data.Dataset
) -> FailedTraining:
    batch = next(iter(batches))
    if isinstance(batch[0], tf.RaggedTensor):  # sentences, for a KeyVec
        columns = [[text[0] for text in batch[0][:_TEXTS].to_list()]]
    else:
        columns = [column[:_TEXTS].numpy().tolist() for column in batch[:2]]
    texts = "; ".join(
        " -> ".join(repr(text.decode(errors="replace")[:60]) for text in row)
        for row in zip(*columns, strict=True)
    )
    advice = _advice("the last good state", run)
    return FailedTraining(
        f"training step {step:,}: {what} NaN or infinite; its batch begins"
        f" with {texts}; {advice} with a smaller --learning_rate, or correct"
        " the texts"
    )


def _advice(state: str, run: RunFolder | None) -> str:
    if run is None:
        return "train anew"
    return f"{state} is in {run.checkpoint}; train anew in another --output"


_TOLERANCE = 1e-4
_MAX_ACCURACY = 0.25  # random scores have the accuracy 0.5


class DeadNetworkWatch(keras.callbacks.Callback):
    """Raises `DeadNetwork` if nearly all triples have two equal scores."""

    def __init__(self, margin: float, steps: int) -> None:
        super().__init__()
        self.margin = margin
        self.steps = steps  # number of steps of a complete epoch

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Compares the epoch's loss with the margin."""
        # A triple with equal scores has the loss `margin` and the accuracy 0.
        # The first epoch is not checked, because it starts with equal scores.
        # A resumed epoch is not checked, because it may have few steps.
        if (
            epoch
            and self.params["steps"] == self.steps
            and logs["accuracy"] < _MAX_ACCURACY
            and math.isclose(logs["loss"], self.margin, rel_tol=_TOLERANCE)
        ):
            raise DeadNetwork(epoch + 1)


class BestEpoch(keras.callbacks.Callback):
    """Base of callbacks that evaluate epochs and keep the best weights."""

    def __init__(
        self,
        every: int = 1,
        keep_best: bool = True,
        patience: int | None = None,
    ) -> None:
        super().__init__()
        check_at_least(1, every=every)
        check_at_least(1, optional=True, patience=patience)
        self.every = every
        self.keep_best = keep_best
        self.patience = patience
        self.best: float | None = None
        self.best_epoch = 0
        self.evaluations_since_best = 0
        self.best_weights: list[np.ndarray] | None = None
        self.on_best: Callable[[Any], None] | None = None

    @property
    def name(self) -> str:
        """Name, in the logs, of the metric that decides the best epoch."""
        raise NotImplementedError(f"{type(self).__name__}.name")

    def metrics(self) -> dict[str, float]:
        """Returns metrics of the model for the logs; `name` is one of them."""
        raise NotImplementedError(f"{type(self).__name__}.metrics")

    def is_better(self, metric: float, best: float) -> bool:
        """Returns whether `metric` is better than `best`."""
        return metric > best

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Evaluates the model, if `is_due` is true for the epoch."""
        if not self.is_due(epoch + 1, self.params["epochs"]):
            return
        metrics = self.metrics()
        if logs is not None:
            logs.update(metrics)
        self.count(epoch + 1, metrics[self.name])
        if self.best_epoch == epoch + 1 and self.keep_best:
            self.keep()
        if self.should_stop:
            self.model.stop_training = True

    def describe(self, epochs: int) -> str:
        """Describes in one line which epoch was kept."""
        if self.best is None:
            return f"kept the last epoch, {epochs}: no epoch was measured"
        if not self.keep_best:
            return f"kept the last epoch, {epochs}; best was {self.best_epoch}"
        value = f"{self.name} {self.best:.4g}"
        return f"kept epoch {self.best_epoch} of {epochs}: {value}"

    def is_due(self, epoch: int, epochs: int) -> bool:
        """Returns whether to evaluate after an epoch, counted from 1."""
        return epoch % self.every == 0 or epoch == epochs

    def count(self, epoch: int, metric: float) -> None:
        """Records the metric of an epoch, counted from 1."""
        if self.best is None or self.is_better(metric, self.best):
            self.best, self.best_epoch = metric, epoch
            self.evaluations_since_best = 0
        else:
            self.evaluations_since_best += 1

    @property
    def should_stop(self) -> bool:
        """Whether the last `patience` evaluations found no better epoch."""
        return (
            self.patience is not None
            and self.evaluations_since_best >= self.patience
        )

    def keep(self) -> None:
        """Stores the current weights as the best, and calls `on_best`."""
        self.best_weights = self.model.get_weights()
        if self.on_best is not None:
            self.on_best(self.model)

    def on_train_end(self, logs: Any = None) -> None:
        """Restores the best weights."""
        if self.best_weights is not None:
            self.model.set_weights(self.best_weights)


class RankingEvaluation(BestEpoch):
    """Evaluates rankings after epochs, keeps the best weights, stops early.

    Adds the metric to the epoch's logs, with a name such as `dev_mrr@10`. List
    this callback before callbacks that read the logs.

    Args:
        collection: A `Collection`, a `Task` or a `ClusterTask`. The dev queries
            of a `Collection` search the whole corpus. A `Task` has queries, and
            documents to rank. A `ClusterTask` clusters documents by vectors.
        measure: The measure that decides which epoch is best, from
            `evaluation.MEASURES` or from the task's `measures`. Default
            `"mrr@10"`.
        every: Evaluate every n epochs, and after the last epoch. Default 1.
        keep_best: Whether to restore the weights of the best epoch at the end
            of the training. Default `True`.
        patience: Stop after this number of evaluations without a better value.
            Default `None`: never stop.
        min_relevant: Smallest grade that counts as relevant in a `Collection`.
            Default 1.
        progress: Whether to show a progress bar while encoding. Default
            `False`.

    Attributes:
        best: The best value so far, at most 1; `None` before the first
            evaluation.
        best_epoch: The epoch of the best value, counted from 1.
        best_weights: With `keep_best`, the weights of the best epoch.
        on_best: Function that is called with the model at each new best epoch.
            Default `None`.

    Raises:
        InputError: The measure is unknown, a number is below 1, or the
            collection has no dev queries.

    Example:
    >>> ranking = RankingEvaluation(Collection("JUDGED"), patience=3)
    >>> model.fit(pairs, epochs=30, callbacks=[ranking])
    >>> ranking.best_epoch
    12
    """

    def __init__(
        self,
        collection: Collection | Task | ClusterTask,
        measure: str = "mrr@10",
        every: int = 1,
        keep_best: bool = True,
        patience: int | None = None,
        min_relevant: int = 1,
        progress: bool = False,
    ) -> None:
        super().__init__(every, keep_best, patience)
        self.progress = progress
        known = getattr(collection, "measures", MEASURES)
        if measure not in known:
            raise InputError(
                f"measure is {measure!r}: expected one of {', '.join(known)}"
            )
        self.task: Task | ClusterTask
        if isinstance(collection, Collection):
            self.task = Task.from_collection(
                collection, "dev", "retrieve", min_relevant, depth=100
            )
        else:
            self.task = collection
        self.measure = measure

    @property
    def name(self) -> str:
        """Name of the metric in the logs, such as `dev_mrr@10`."""
        return f"dev_{self.measure}"

    def metrics(self) -> dict[str, float]:
        """Measures the ranking of the dev queries: name -> value."""
        return {self.name: self.evaluate()}

    def evaluate(self) -> float:
        """Returns the metric of the model's current weights, at most 1."""
        return self._value(system_of(self.model, progress=self.progress))

    def _value(self, system: System) -> float:
        _, by_query = self.task.measure(system)
        return mean(by_query, [self.measure])[self.measure]

    def describe(self, epochs: int) -> str:
        """Describes the kept epoch, with the metric of BM25 for comparison."""
        line = super().describe(epochs)
        if self.best is None or not isinstance(self.task, Task):
            return line
        tokenizer = TOKENIZERS[words_of(self.model)]
        bm25 = BM25System(tokenizer=tokenizer, fields=self.task.fields)
        return f"{line} (BM25 {self._value(bm25):.4g})"


class ValidationLoss(BestEpoch):
    """Logs `val_*` metrics of `batches`, and keeps the best weights."""

    def __init__(
        self,
        batches: tf.data.Dataset,
        every: int = 1,
        keep_best: bool = True,
        patience: int | None = None,
    ) -> None:
        super().__init__(every, keep_best, patience)
        self.batches = batches
        self._hashed: tf.data.Dataset | None = None

    @property
    def name(self) -> str:
        """Name of the loss in the logs."""
        return "val_loss"

    def metrics(self) -> dict[str, float]:
        """Computes the loss and the metrics of the validation data."""
        # The dataset is kept: a new dataset would trace the hashing again.
        if self._hashed is None:
            self._hashed = self.model.hasher.dataset(self.batches)
        values = self.model.evaluate(self._hashed, verbose=0, return_dict=True)
        return {f"val_{name}": float(value) for name, value in values.items()}

    def is_better(self, metric: float, best: float) -> bool:
        """Returns whether a loss is smaller than the best loss."""
        return metric < best


_QUICK = 0.5
"""If saving takes fewer than `_QUICK` seconds, every epoch is saved."""

_MIN_INTERVAL = 50
"""An epoch is saved if the age of the last checkpoint is more than
`_MIN_INTERVAL` times the time that saving takes."""


class Checkpoint(keras.callbacks.Callback):
    """Saves model and optimizer, so that a run can be resumed."""

    def __init__(
        self, run: RunFolder, minutes: float, needed: Callable[[int], bool]
    ) -> None:
        super().__init__()
        self.run = run
        self.minutes = minutes
        self.needed = needed  # whether to save an epoch, counted from 1
        self._saved = time.monotonic()
        self._seconds = 0.0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Saves a checkpoint if the last checkpoint is too old."""
        if time.monotonic() - self._saved > 60 * self.minutes:
            self._save()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Saves a checkpoint, unless saving would take too much of the time.

        The last epoch, and each epoch for which `needed` is true, are saved in
        any case.
        """
        if (
            self._seconds < _QUICK
            or time.monotonic() - self._saved > _MIN_INTERVAL * self._seconds
            or self.needed(epoch + 1)
            or self.model.stop_training
            or epoch + 1 == self.params["epochs"]
        ):
            self._save()

    def on_interrupt(self) -> None:
        """Saves a checkpoint when ctrl-c interrupts `TextModel.fit`."""
        self._save()

    def _save(self) -> None:
        started = time.monotonic()
        check_finite(self.model)
        optimizer = self.model.optimizer
        with (
            getattr(optimizer, "pending_rows_saved", nullcontext)(),
            replacing(self.run.checkpoint) as partial,
        ):
            keras.saving.save_model(self.model, partial)
        self._saved = time.monotonic()
        self._seconds = self._saved - started


class HistoryFile(keras.callbacks.Callback):
    """Writes the metrics of each epoch to `history.csv`."""

    def __init__(self, run: RunFolder, initial_epoch: int) -> None:
        super().__init__()
        self.run = run
        self.rows = [
            row for row in run.read_history() if row["epoch"] <= initial_epoch
        ]

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Adds a row: epoch (from 1), number of updates, and the logs."""
        updates = int(self.model.optimizer.iterations.numpy())
        self.rows.append({"epoch": epoch + 1, "updates": updates, **logs})
        write_csv(self.run.history, self.rows)
