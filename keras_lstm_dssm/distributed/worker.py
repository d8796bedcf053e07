"""`train_worker`, which Ray Train calls in each process of a training."""

import os
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, TypeVar

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.callbacks import BestEpoch
from keras_lstm_dssm.data.batches import ClickFrequencies
from keras_lstm_dssm.data.click_log import ClickLog
from keras_lstm_dssm.data.sources import DataSource
from keras_lstm_dssm.distributed.collectives import (
    Collectives,
    JointError,
    check_equal,
    connect,
    on_all,
)
from keras_lstm_dssm.distributed.joint_step import JointStep
from keras_lstm_dssm.distributed.sharded_log import ShardedClickLog
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.fingerprints import files_hash, weights_hash
from keras_lstm_dssm.models.builders import build_towers
from keras_lstm_dssm.run_folder import RunFolder, config_of_run
from keras_lstm_dssm.settings.training import TrainingConfig
from keras_lstm_dssm.training.tower_training import TowerTraining
from keras_lstm_dssm.training.train import Processes, Training, run_training
from keras_lstm_dssm.version import __version__

STOP_FILE = ".stop"
"""Name of a file in the run folder that makes all workers save and stop."""

_POLL_SECONDS = 1.0


class Stopped(KeyboardInterrupt):
    """Raised on all workers after the step in which a worker asks to stop."""


class StopTogether(keras.callbacks.Callback):
    """Stops all workers after the same step, by a `KeyboardInterrupt`."""

    def __init__(self, joint_step: JointStep, stop_file: Path) -> None:
        super().__init__()
        self.joint_step = joint_step
        self.stop_file = stop_file
        self._last_look = 0.0

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Asks all workers to stop if there is a stop file."""
        now = time.monotonic()
        if now - self._last_look > _POLL_SECONDS:
            self._last_look = now
            if self.stop_file.exists():
                self.joint_step.stop_wanted.assign(1)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Raises `Stopped` if any worker has asked to stop."""
        if int(self.joint_step.stops):
            raise Stopped


class JointMetrics(keras.callbacks.Callback):
    """Replaces an epoch's metrics by the metrics over all workers' pairs.

    List this callback before callbacks that read the logs.
    """

    def __init__(self, collectives: Collectives) -> None:
        super().__init__()
        self.collectives = collectives
        self._sums: dict[str, list[float]] = {}

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Stores the metrics' sums after the last step of an epoch."""
        # A validation resets the metrics before `on_epoch_end`.
        if batch + 1 == self.params["steps"]:
            self._sums = {
                metric.name: [float(metric.total), float(metric.count)]
                for metric in self.model.metrics
            }

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Computes joint metrics; checks that workers have equal weights."""
        weights = weights_hash(self.model.trainable_weights)
        all_workers = self.collectives.gather_objects(
            {"sums": self._sums, "weights": weights}
        )
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
                sum(worker["sums"][name][index] for worker in all_workers)
                for index in (0, 1)
            )
            if logs is not None and name in logs:
                logs[name] = total / count


class JointEvaluation(BestEpoch):
    """Gives worker 0's metrics to all workers; all find the same best epoch."""

    def __init__(
        self, collectives: Collectives, evaluation: BestEpoch | None
    ) -> None:
        self.collectives = collectives
        self.evaluation = evaluation  # `None` on workers 1, 2, ...
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
        """Name, in the logs, of the metric that decides the best epoch."""
        return str(self._name)

    def set_model(self, model: Any) -> None:
        """Sets the model that is evaluated."""
        super().set_model(model)
        if self.evaluation is not None:
            self.evaluation.set_model(model)

    def metrics(self) -> dict[str, float]:
        """Returns the metrics that worker 0 measures."""
        local = self.evaluation.metrics() if self.evaluation else None
        return self.collectives.gather_objects(local)[0]


T = TypeVar("T")

_WEIGHT_UNITS = 1 << 20  # click weights are summed as multiples of 1 / 2**20


def worker_versions() -> dict[str, Any]:
    """Returns the versions that must be equal on all workers."""
    package = Path(__file__).parents[1]
    sources = sorted(
        Path(folder, name)
        for folder, _, names in os.walk(package, followlinks=True)
        for name in names
        if name.endswith(".py")
    )
    return {
        "keras_lstm_dssm": __version__,
        "keras_lstm_dssm with source files of hash": files_hash(sources)[:12],
        "TensorFlow": tf.__version__,
        "Keras": keras.__version__,
    }


class Workers(Processes):
    """Implements `Processes` for a training by several workers."""

    def __init__(self, collectives: Collectives) -> None:
        self.collectives = collectives
        self.first = collectives.cluster.first
        self.rank = collectives.cluster.rank
        self.size = collectives.cluster.size

    def on_first(self, function: Callable[[], Any]) -> Any:
        """Calls a function in worker 0; all workers get the result."""
        call = function if self.first else lambda: None
        return on_all(self.collectives, call)[0]

    def on_each(self, function: Callable[[], T]) -> T:
        """Calls a function in each worker; returns the local result."""
        results: list[T] = []
        on_all(self.collectives, lambda: results.append(function()))
        return results[0]

    def only_on_first(self, function: Callable[[], T]) -> T | None:
        """Calls a function in worker 0; other workers get `None`."""
        results: list[T] = []
        self.on_first(lambda: results.append(function()))
        return results[0] if results else None

    def open_clicks(
        self, open_log: Callable[[], tuple[ClickLog, DataSource]]
    ) -> tuple[ClickLog, DataSource]:
        """Opens on all workers the click log that worker 0 finds or writes."""

        def open_first() -> tuple[list[str], int, str, str | None]:
            log, source = open_log()
            paths = [os.path.abspath(path) for path in log.paths]
            return paths, log.max_bad_lines, source.spec, source.fields

        paths, max_bad_lines, *source = self.on_first(open_first)
        log = self.on_each(lambda: ClickLog(paths, max_bad_lines))
        return log, DataSource(*source)

    def shard(self, training: Training, model: Any) -> None:
        """Restricts a training to this worker's share of the data."""
        assert isinstance(training, TowerTraining)
        recipe, cluster = training.recipe, self.collectives.cluster
        max_bad_lines = training.clicks.max_bad_lines
        if recipe.batch_size < self.size:
            raise JointError(
                f"batch_size is {recipe.batch_size}: expected {self.size} or "
                "more, a pair for each worker"
            )

        def read() -> dict[str, Any]:
            if model is None:  # on workers 1, 2, ...
                # With `resumed`, this training reads the files that worker 0
                # has written. `prepare` needs a model only for the rule by
                # which the model splits texts into words.
                training.resumed = True
                training.prepare(build_towers(recipe, training.config.seed))
            paths = list(training.log.paths)
            # The last path has the synthetic pairs, which the workers divide.
            cut = paths[-1:] if recipe.title_pairs else []
            training.log = ShardedClickLog(
                paths[: len(paths) - len(cut)],
                cluster.rank,
                cluster.size,
                max_bad_lines,
                cut,
            )
            return {
                "pairs": training.log.count(),
                "bad": training.log.bad_lines(),
                "weighted": training.log.weighted,
            }

        logs = on_all(self.collectives, read)
        # All workers' batches must have the same fields, weights included.
        training.log.weighted = any(log["weighted"] for log in logs)
        bad: Counter[str] = Counter()
        for log in logs:
            bad.update(log["bad"])
        if sum(bad.values()) > max_bad_lines:
            raise JointError(
                f"{training.clicks.paths[0]}: found {sum(bad.values())} bad "
                f"lines in the data of all workers, more than "
                f"--max_bad_lines={max_bad_lines}: correct or remove them"
            )
        shares = [
            cluster.share(recipe.batch_size, rank) for rank in range(self.size)
        ]
        # An epoch ends when some worker has no pairs left. The other workers
        # leave out their remaining pairs. Each epoch leaves out other pairs.
        steps = min(
            -(-log["pairs"] // share)
            for log, share in zip(logs, shares, strict=True)
        )
        training.clicks, training.bad_lines = training.log, bad
        training.rows = shares[cluster.rank]
        training.steps_per_epoch = training.joint_steps = steps
        training.examples = sum(
            min(log["pairs"], steps * share)
            for log, share in zip(logs, shares, strict=True)
        )
        if recipe.logq:
            frequencies = ClickFrequencies.from_log(
                training.log, training.split_of_titles
            )
            counts = frequencies.counts
            if training.log.weighted:
                # Integers have exact sums, whatever the order of the workers.
                counts = np.rint(counts * _WEIGHT_UNITS).astype(np.int64)
            counts = self.collectives.sum_counts(counts)
            if training.log.weighted:
                counts = counts / _WEIGHT_UNITS
            frequencies.count(counts)
            training.frequencies = frequencies

    def best_epoch(self, training: Training) -> BestEpoch | None:
        """Returns the callback by which worker 0 evaluates for all workers."""
        evaluation = self.only_on_first(training.best_epoch)
        if training.config.dev is None:
            return None
        return JointEvaluation(self.collectives, evaluation)

    def settings(self) -> dict[str, Any]:
        """Returns the entries of `config.json` about the processes."""
        return {"workers": self.size}

    def start(self, model: Any, run: RunFolder) -> Any:
        """Loads on all workers the model that worker 0 has saved."""
        return self.on_each(run.load_checkpoint)

    def join(
        self, model: Any, training: Training
    ) -> list[keras.callbacks.Callback]:
        """Connects the model's training steps with the other workers."""
        joint_step = JointStep(self.collectives, training.recipe.batch_size)
        model.train_jointly(joint_step)
        return [
            JointMetrics(self.collectives),
            StopTogether(joint_step, training.run.path / STOP_FILE),
        ]


LOST = "another worker does not answer"


def train_worker(
    output: str,
    config: TrainingConfig | None,
    save_minutes: float | None,
    threads: int,
) -> None:
    """Trains two towers together with the other workers of `TF_CONFIG`.

    An existing run continues from its last checkpoint. Raises `JointError` or
    `Stopped` on all workers, or `InputError` if another worker is lost.
    """
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    collectives = connect()
    cluster, run = collectives.cluster, RunFolder(output)
    try:
        with ExitStack() as stack:
            check_equal(collectives, worker_versions())
            workers = Workers(collectives)
            workers.on_first(lambda: stack.enter_context(run.locked()))
            stored = workers.on_first(
                lambda: run.read_config() if run.config.exists() else None
            )
            if stored is not None:
                config = config_of_run(run, stored)
            assert config is not None  # `train_on_ray` has checked this
            if save_minutes is not None:
                config = config.replace(save_minutes=save_minutes)
            run_training(config, run, stored, verbose=0, processes=workers)
        collectives.barrier()
    except (Stopped, JointError):
        # A process that ended early would interrupt the others, so all wait.
        with suppress(tf.errors.OpError):
            collectives.barrier()
        time.sleep(0.2)
        raise
    except tf.errors.OpError as error:
        first_line = str(error).splitlines()[0]
        raise InputError(
            f"{cluster.describe(cluster.rank)}: {LOST} ({first_line})"
        ) from error
