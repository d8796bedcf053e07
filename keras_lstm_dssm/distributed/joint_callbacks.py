"""Callbacks by which workers evaluate, report and stop together."""

import time
from pathlib import Path
from typing import Any

import keras

from keras_lstm_dssm.callbacks.best_epoch import BestEpoch
from keras_lstm_dssm.distributed.collectives import Collectives, JointError
from keras_lstm_dssm.distributed.joint_step import JointStep
from keras_lstm_dssm.fingerprints import weights_hash

STOP_FILE = ".stop"
"""A file in the run folder that stops the training, with a checkpoint."""

_LOOK_SECONDS = 1.0


class Stopped(KeyboardInterrupt):
    """Raised on all workers after the step in which one was to stop."""


class StopTogether(keras.callbacks.Callback):
    """Ends the training of all workers after one step, like ctrl-c.

    A worker that finds the `stop_file`, for which it looks every second, says
    so in the exchange of the next step, at the end of which all workers have
    equal weights, to be saved.
    """

    def __init__(self, joint_step: JointStep, stop_file: Path) -> None:
        super().__init__()
        self.joint_step = joint_step
        self.stop_file = stop_file
        self._looked = 0.0

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Lets the exchange of this step say whether this worker is to stop."""
        now = time.monotonic()
        if now - self._looked > _LOOK_SECONDS:
            self._looked = now
            if self.stop_file.exists():
                self.joint_step.stop_wanted.assign(1)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Raises `Stopped` if any worker is to stop."""
        if int(self.joint_step.stops):
            raise Stopped


class JointFigures(keras.callbacks.Callback):
    """Replaces the figures of an epoch by those of all workers' pairs.

    It also checks that the weights of all workers are still bit-equal. List
    it before callbacks that read the logs.
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
        weights = self.model.trainable_weights
        mine = {"sums": self._sums, "weights": weights_hash(weights)}
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


class JointEvaluation(BestEpoch):
    """Lets worker 0 evaluate, and gives the figures to all workers.

    All workers so choose the same best epoch, and stop after the same one.
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

    def metrics(self) -> dict[str, float]:
        """Returns what worker 0 measures."""
        mine = self.evaluation.metrics() if self.evaluation else None
        metrics: dict[str, float] = self.collectives.gather_objects(mine)[0]
        return metrics
