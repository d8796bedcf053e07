"""Callbacks by which several workers evaluate and report together."""

import zlib
from typing import Any

import keras

from keras_lstm_dssm.training.best_epoch import BestEpoch
from keras_lstm_dssm.workers import Collectives
from keras_lstm_dssm.workers.agreement import JointError


class JointFigures(keras.callbacks.Callback):
    """Replaces the figures of an epoch by those of all workers' pairs.

    It also checks that the weights of all workers are still bit-equal. List
    it before callbacks that read the logs.

    Args:
        collectives: The workers.

    Raises:
        JointError: The weights differ, as between different processors.
    """

    def __init__(self, collectives: Collectives) -> None:
        super().__init__()
        self.collectives = collectives
        self._sums: dict[str, list[float]] = {}

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Keeps the sums of the epoch: a validation starts others."""
        if batch + 1 == self.params["steps"]:
            self._sums = {
                metric.name: [float(metric.total), float(metric.count)]
                for metric in self.model.metrics
            }

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Adds the sums of all workers."""
        mine = {"sums": self._sums, "weights": _checksum(self.model)}
        all_workers = self.collectives.gather_objects(mine)
        for rank, worker in enumerate(all_workers):
            if worker["weights"] != all_workers[0]["weights"]:
                raise JointError(
                    f"{self.collectives.cluster.describe(rank)} has other "
                    f"weights than worker 0 after epoch {epoch + 1}: their "
                    "machines compute differently; use one kind of processor "
                    "and one number of threads"
                )
        for name in self._sums:
            total, count = (
                sum(worker["sums"][name][part] for worker in all_workers)
                for part in (0, 1)
            )
            if logs is not None and name in logs:
                logs[name] = total / count


def _checksum(model: Any) -> int:
    value = 0
    for weight in model.trainable_weights:
        value = zlib.crc32(weight.numpy().tobytes(), value)
    return value


class JointEvaluation(BestEpoch):
    """Lets worker 0 evaluate, and gives the figures to all workers.

    All workers so choose the same best epoch, and stop after the same one.

    Args:
        collectives: The workers.
        evaluation: What worker 0 measures; `None` on the other workers.
    """

    def __init__(
        self, collectives: Collectives, evaluation: BestEpoch | None
    ) -> None:
        self.collectives = collectives
        self.evaluation = evaluation
        settings = collectives.gather_objects(
            evaluation
            and [
                evaluation.every,
                evaluation.keep_best,
                evaluation.patience,
                evaluation.name,
            ]
        )[0]
        super().__init__(*settings[:3])
        self._name = settings[3]

    @property
    def name(self) -> str:
        """Name in the logs of the figure that decides which epoch is best."""
        return str(self._name)

    def set_model(self, model: Any) -> None:
        """Sets the model that is measured."""
        super().set_model(model)
        if self.evaluation is not None:
            self.evaluation.set_model(model)

    def figures(self) -> dict[str, float]:
        """Returns what worker 0 measures."""
        mine = self.evaluation.figures() if self.evaluation else None
        figures: dict[str, float] = self.collectives.gather_objects(mine)[0]
        return figures
