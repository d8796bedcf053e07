"""RankingEvaluation: measures rankings while a model is trained."""

from keras_lstm_dssm.data import Collection
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import (
    MEASURES,
    ClusterTask,
    Task,
    mean,
    system_of,
)
from keras_lstm_dssm.training.best_epoch import BestEpoch


class RankingEvaluation(BestEpoch):
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
        min_relevant: Grade from which a document of a `Collection` is
            relevant, default 1; a task has its own.

    Attributes:
        best: The best figure so far, from 0 to 1; `None` before the first.
        best_epoch: The epoch of that figure, counted from 1.
        best_weights: The weights of that epoch, if they are kept.
        on_best: See `BestEpoch`.

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
    ) -> None:
        super().__init__(every, keep_best, patience)
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
        """Name of the figure in the logs, such as `dev_mrr@10`."""
        return f"dev_{self.measure}"

    def figures(self) -> dict[str, float]:
        """Evaluates on dev."""
        return {self.name: self.evaluate()}

    def evaluate(self) -> float:
        """Returns the figure of the model as it is now, from 0 to 1."""
        _, by_query = self.task.measure(system_of(self.model))
        return mean(by_query, [self.measure])[self.measure]
