"""RankingEvaluation: measures rankings while a model is trained."""

from typing import Any

import keras
import numpy as np

from keras_lstm_dssm.data import Collection
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import (
    MEASURES,
    ClusterTask,
    Task,
    mean,
    system_of,
)


class RankingEvaluation(keras.callbacks.Callback):
    """Measures rankings after epochs, keeps the best weights, stops early.

    The figures are added to the epoch's logs under the name `dev_` and the
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
        patience: Number of evaluations without a better figure after which
            the training stops; `None`, the default, never stops it.

    Attributes:
        best: The best figure so far, from 0 to 1; `None` before the first.
        best_epoch: The epoch of that figure, counted from 1.
        best_weights: The weights of that epoch, if they are kept.

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
    ) -> None:
        super().__init__()
        known = (
            collection.measures
            if isinstance(collection, Task | ClusterTask)
            else MEASURES
        )
        if measure not in known:
            raise InputError(
                f"measure is {measure!r}: expected one of {', '.join(known)}"
            )
        for name, value in (("every", every), ("patience", patience)):
            if value is not None and value < 1:
                raise InputError(f"{name} is {value}: expected 1 or more")
        self.task: Task | ClusterTask
        if isinstance(collection, Task | ClusterTask):
            self.task = collection
        else:
            self.task = Task.from_collection(
                collection, "dev", "retrieve", depth=100
            )
        self.measure = measure
        self.every = every
        self.keep_best = keep_best
        self.patience = patience
        self.best: float | None = None
        self.best_epoch = 0
        self.evaluations_since_best = 0
        self.best_weights: list[np.ndarray] | None = None

    @property
    def name(self) -> str:
        """Name of the figure in the logs, such as `dev_mrr@10`."""
        return f"dev_{self.measure}"

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Evaluates on dev, if it is due after this epoch."""
        if not self.is_due(epoch + 1, self.params["epochs"]):
            return
        figure = self.evaluate()
        if logs is not None:
            logs[self.name] = figure
        self.count(epoch + 1, figure)
        if self.best_epoch == epoch + 1 and self.keep_best:
            self.keep()
        if self.should_stop:
            self.model.stop_training = True

    def is_due(self, epoch: int, epochs: int) -> bool:
        """Returns whether to evaluate after an epoch, counted from 1."""
        return epoch % self.every == 0 or epoch == epochs

    def evaluate(self) -> float:
        """Returns the figure of the model as it is now, from 0 to 1."""
        _, by_query = self.task.measure(system_of(self.model))
        return mean(by_query, [self.measure])[self.measure]

    def count(self, epoch: int, figure: float) -> None:
        """Records the figure of an epoch, counted from 1."""
        if self.best is None or figure > self.best:
            self.best, self.best_epoch = figure, epoch
            self.evaluations_since_best = 0
        else:
            self.evaluations_since_best += 1

    @property
    def should_stop(self) -> bool:
        """Whether the last `patience` evaluations gave no better figure."""
        return (
            self.patience is not None
            and self.evaluations_since_best >= self.patience
        )

    def keep(self) -> None:
        """Keeps the weights as those of the best epoch."""
        self.best_weights = self.model.get_weights()

    def on_train_end(self, logs: Any = None) -> None:
        """Restores the best weights."""
        if self.best_weights is not None:
            self.model.set_weights(self.best_weights)
