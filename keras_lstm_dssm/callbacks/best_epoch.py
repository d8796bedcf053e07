"""Callbacks that evaluate each epoch, keep the best, and stop early."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.data.collection import Collection
from keras_lstm_dssm.errors import InputError, check_at_least
from keras_lstm_dssm.evaluation.bm25 import TOKENIZERS, BM25System
from keras_lstm_dssm.evaluation.clustering import ClusterTask
from keras_lstm_dssm.evaluation.measures import MEASURES, mean
from keras_lstm_dssm.evaluation.runs import System
from keras_lstm_dssm.evaluation.systems import system_of, words_of
from keras_lstm_dssm.evaluation.task import Task


class BestEpoch(keras.callbacks.Callback):
    """Measures a model after epochs, keeps the best weights, stops early.

    Base of `RankingEvaluation`, which describes arguments and attributes, and
    of `ValidationLoss`. `on_best` is called with the model at a new best epoch.
    """

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
        """Name in the logs of the metric that decides which epoch is best."""
        raise NotImplementedError(f"{type(self).__name__}.name")

    def metrics(self) -> dict[str, float]:
        """Measures the model: name in the logs -> value, one of them `name`."""
        raise NotImplementedError(f"{type(self).__name__}.metrics")

    def is_better(self, metric: float, best: float) -> bool:
        """Returns whether a metric is better than the best one so far."""
        return metric > best

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Measures the model, if that is due after this epoch."""
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
        """Returns which of some epochs was kept, in one line."""
        if self.best is None:
            return f"kept the last epoch, {epochs}: none was measured"
        value = f"{self.name} {self.best:.4g}"
        if not self.keep_best:
            return f"kept the last epoch, {epochs}; best {self.best_epoch}"
        return f"kept epoch {self.best_epoch} of {epochs}: {value}"

    def is_due(self, epoch: int, epochs: int) -> bool:
        """Returns whether to measure after an epoch, counted from 1."""
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
        """Whether the last `patience` evaluations gave no better metric."""
        return (
            self.patience is not None
            and self.evaluations_since_best >= self.patience
        )

    def keep(self) -> None:
        """Keeps the weights as those of the best epoch."""
        self.best_weights = self.model.get_weights()
        if self.on_best is not None:
            self.on_best(self.model)

    def on_train_end(self, logs: Any = None) -> None:
        """Restores the best weights."""
        if self.best_weights is not None:
            self.model.set_weights(self.best_weights)


class RankingEvaluation(BestEpoch):
    """Measures rankings after epochs, keeps the best weights, stops early.

    The metrics are added to the epoch's logs under the name `dev_` and the
    measure, such as `dev_mrr@10`, so that they appear in the progress bar,
    in the history and in TensorBoard. List this callback before others that
    read the logs.

    Args:
        collection: A `Collection`, whose dev queries are searched in the
            whole corpus; a `Task` of other queries and documents; or a
            `ClusterTask`, for a model of documents.
        measure: The measure that decides which epoch is best, one of
            `evaluation.MEASURES`, or of the task's `measures`. Default
            `"mrr@10"`.
        every: Evaluate every n epochs, and after the last one. Default 1.
        keep_best: Whether the weights of the best epoch replace those of the
            last one when the training ends. Default `True`.
        patience: Number of evaluations without a better value after which
            the training stops; `None`, the default, never stops it.
        min_relevant: Grade from which a document of a `Collection` is
            relevant, default 1; a task has its own.
        progress: Whether to show a progress bar of encoding, default `False`.

    Attributes:
        best: The best value so far, from 0 to 1; `None` before the first.
        best_epoch: The epoch of that value, counted from 1.
        best_weights: The weights of that epoch, if they are kept.
        on_best: Function that is called with the model when its weights are
            the best so far; `None`, the default, for no function.

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
        known = (
            collection.measures
            if isinstance(collection, Task | ClusterTask)
            else MEASURES
        )
        if measure not in known:
            raise InputError(
                f"measure is {measure!r}: expected one of {', '.join(known)}"
            )
        self.task: Task | ClusterTask
        if isinstance(collection, Task | ClusterTask):
            self.task = collection
        else:
            self.task = Task.from_collection(
                collection, "dev", "retrieve", min_relevant, depth=100
            )
        self.measure = measure

    @property
    def name(self) -> str:
        """Name of the metric in the logs, such as `dev_mrr@10`."""
        return f"dev_{self.measure}"

    def metrics(self) -> dict[str, float]:
        """Evaluates on dev."""
        return {self.name: self.evaluate()}

    def evaluate(self) -> float:
        """Returns the metric of the model as it is now, from 0 to 1."""
        return self._value(system_of(self.model, progress=self.progress))

    def _value(self, system: System) -> float:
        _, by_query = self.task.measure(system)
        return mean(by_query, [self.measure])[self.measure]

    def describe(self, epochs: int) -> str:
        """Returns which epoch was kept, with the measure of BM25 beside it.

        BM25 splits words as the model does.
        """
        line = super().describe(epochs)
        if self.best is None or not isinstance(self.task, Task):
            return line
        tokenizer = TOKENIZERS[words_of(self.model)]
        bm25 = self._value(
            BM25System(tokenizer=tokenizer, fields=self.task.fields)
        )
        return f"{line} (BM25 {bm25:.4g})"


class ValidationLoss(BestEpoch):
    """Measures the loss after epochs, keeps the best weights, stops early.

    The metrics are those of `evaluate` on the batches of texts, with `val_`
    before their names, such as `val_loss`, of which the smallest is the best.
    """

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
        """Measures the loss and the other metrics of the model."""
        if self._hashed is None:  # each dataset traces the hashing anew
            self._hashed = self.model.hasher.dataset(self.batches)
        values = self.model.evaluate(self._hashed, verbose=0, return_dict=True)
        return {f"val_{name}": float(value) for name, value in values.items()}

    def is_better(self, metric: float, best: float) -> bool:
        """Returns whether a loss is smaller than the best one so far."""
        return metric < best
