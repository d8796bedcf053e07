"""`train_worker`, and what one of several workers does with others."""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, TypeVar

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.callbacks.best_epoch import BestEpoch
from keras_lstm_dssm.data.batches import ClickFrequencies
from keras_lstm_dssm.data.click_log import ClickLog, ShardedClickLog
from keras_lstm_dssm.data.sources import DataSource
from keras_lstm_dssm.distributed.cluster import Cluster
from keras_lstm_dssm.distributed.collectives import (
    Collectives,
    JointError,
    check_equal,
    connect,
    on_all,
)
from keras_lstm_dssm.distributed.joint_callbacks import (
    STOP_FILE,
    JointEvaluation,
    JointFigures,
    Stopped,
    StopTogether,
    stop_by_signal,
)
from keras_lstm_dssm.distributed.joint_step import JointStep
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.fingerprints import files_hash
from keras_lstm_dssm.models.two_tower import TwoTower
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.settings.training import TrainingConfig
from keras_lstm_dssm.training.pages import with_written_pages
from keras_lstm_dssm.training.session import (
    Processes,
    Training,
    config_of_run,
)
from keras_lstm_dssm.training.tower_training import TowerTraining
from keras_lstm_dssm.training.train import run_training
from keras_lstm_dssm.version import __version__

T = TypeVar("T")

_WEIGHT_UNITS = 1 << 20  # fractions of a click's weight that are summed


def worker_versions(
    run: RunFolder, config: TrainingConfig | None
) -> dict[str, Any]:
    """Returns what must be equal on all workers, for `check_equal`."""
    package = Path(__file__).parents[1]
    sources = sorted(
        Path(folder, name)
        for folder, _, names in os.walk(package, followlinks=True)
        for name in names
        if name.endswith(".py")
    )
    options: dict[str, Any] = {"seed": 0, "init": None, "recipe": {}}
    if config is not None:
        options = config.to_dict()
    recipe = options.pop("recipe")
    return {
        "keras_lstm_dssm": __version__,
        "keras_lstm_dssm with source files of hash": files_hash(sources)[:12],
        "TensorFlow": tf.__version__,
        "Keras": keras.__version__,
        "output": str(run.path.absolute()),
        **{f"recipe {name}": value for name, value in recipe.items()},
        **options,
    }


class Workers(Processes):
    """Does what a training asks of its processes, of several workers.

    What is there once for all workers is read and written by worker 0; the
    others wait, and read the files that it has written. If a worker raises an
    error, all of them raise a `JointError`.
    """

    def __init__(
        self, collectives: Collectives, stop_wanted: threading.Event
    ) -> None:
        self.collectives = collectives
        self.first = collectives.cluster.first
        self.size = collectives.cluster.size
        self._stop_wanted = stop_wanted

    def on_first(self, function: Callable[[], Any]) -> Any:
        """Calls a function in the first process; all have its result."""
        each = function if self.first else lambda: None
        return on_all(self.collectives, each)[0]

    def on_each(self, function: Callable[[], T]) -> T:
        """Calls a function in each process."""
        results: list[T] = []
        on_all(self.collectives, lambda: results.append(function()))
        return results[0]

    def only_on_first(self, function: Callable[[], T]) -> T | None:
        """Calls a function in the first process, which alone has its result."""
        results: list[T] = []
        self.on_first(lambda: results.append(function()))
        return results[0] if results else None

    def open_clicks(
        self, open_log: Callable[[], tuple[ClickLog, DataSource]]
    ) -> tuple[ClickLog, DataSource]:
        """Opens the clicks; reads none, but writes those of grades once."""

        def open_first() -> tuple[list[str], int, str]:
            log, source = open_log()
            paths = [os.path.abspath(path) for path in log.paths]
            return paths, log.max_bad_lines, source.spec

        paths, max_bad_lines, spec = self.on_first(open_first)
        log = self.on_each(lambda: ClickLog(paths, max_bad_lines))
        return log, DataSource(spec)

    def shard(self, training: Training, model: Any) -> None:
        """Lets a training read this worker's part of the data.

        An epoch has as many steps for all workers: those of the smallest
        part. A worker with a larger part leaves out other pairs in each
        epoch. The last file is cut by lines if the recipe has synthetic
        pairs.
        """
        assert isinstance(training, TowerTraining)
        recipe, cluster = training.recipe, self.collectives.cluster
        most = training.clicks.max_bad_lines
        if recipe.batch_size < self.size:
            raise JointError(
                f"batch_size is {recipe.batch_size}: expected {self.size} or "
                "more, a pair for each worker"
            )

        def read() -> dict[str, Any]:
            if model is None:  # only its rules of words are read
                training.resumed = True
                training.prepare(recipe.build(training.config.seed))
            paths = list(training.log.paths)
            cut = paths[-1:] if recipe.title_pairs else []
            training.log = ShardedClickLog(
                paths[: len(paths) - len(cut)],
                cluster.rank,
                cluster.size,
                most,
                cut,
            )
            return {
                "pairs": training.log.count(),
                "bad": training.log.bad_lines(),
                "weighted": training.log.weighted,
            }

        parts = on_all(self.collectives, read)
        # All workers have batches of the same parts.
        training.log.weighted = any(part["weighted"] for part in parts)
        bad: Counter[str] = Counter()
        for part in parts:
            bad.update(part["bad"])
        if sum(bad.values()) > most:
            raise JointError(
                f"{training.clicks.paths[0]}: found {sum(bad.values())} bad "
                f"lines in the parts of all workers, more than "
                f"--max_bad_lines={most}: correct or remove them"
            )
        shares = [
            cluster.share(recipe.batch_size, rank) for rank in range(self.size)
        ]
        steps = min(
            -(-part["pairs"] // share)
            for part, share in zip(parts, shares, strict=True)
        )
        training.clicks, training.bad_lines = training.log, bad
        training.rows = shares[cluster.rank]
        training.steps_per_epoch = training.joint_steps = steps
        training.examples = sum(
            min(part["pairs"], steps * share)
            for part, share in zip(parts, shares, strict=True)
        )
        if recipe.logq:
            frequencies = ClickFrequencies.from_log(
                training.log, training.split_of_titles
            )
            counts = frequencies.counts
            if training.log.weighted:
                # Whole numbers, whose sum has no order.
                counts = np.rint(counts * _WEIGHT_UNITS).astype(np.int64)
            counts = self.collectives.sum_counts(counts)
            if training.log.weighted:
                counts = counts / _WEIGHT_UNITS
            frequencies.count(counts)
            training.frequencies = frequencies

    def best_epoch(self, training: Training) -> BestEpoch | None:
        """Returns the callback by which worker 0 evaluates for all."""
        evaluation = self.only_on_first(training.best_epoch)
        if training.config.dev is None:
            return None
        return JointEvaluation(self.collectives, evaluation)

    def settings(self) -> dict[str, Any]:
        """Returns what `config.json` holds of the processes."""
        return {"workers": self.size}

    def start(self, model: Any, run: RunFolder) -> Any:
        """Returns the model that worker 0 has saved."""
        return self.on_each(run.load_checkpoint)

    def join(
        self, model: Any, training: Training
    ) -> list[keras.callbacks.Callback]:
        """Makes the steps of the model those of all workers."""
        joint_step = JointStep(self.collectives, training.recipe.batch_size)
        model.train_jointly(joint_step)
        return [
            JointFigures(self.collectives),
            StopTogether(
                joint_step, self._stop_wanted, training.run.path / STOP_FILE
            ),
        ]


def read_stored(
    run: RunFolder, config: TrainingConfig | None, size: int
) -> dict[str, Any] | None:
    """Reads `config.json` if the folder has a run; `None` for a new run.

    Raises `InputError` if that run has other settings or another number of
    workers, or is damaged.
    """
    (run.path / STOP_FILE).unlink(missing_ok=True)
    if config is not None and not run.config.exists():
        return None
    stored = run.read_config()
    started = config_of_run(run, stored)
    found = {"workers": stored.get("workers", 1), **started.to_dict()}
    expected = {"workers": size, **(config or started).to_dict()}
    for name, value in expected.items():
        if name != "init" and found[name] != value:
            raise InputError(
                f"{run.path}: the run was started with {name} "
                f"{found[name]}, not {value}: start with the same, "
                "or train anew in another --output"
            )
    run.read_metrics()
    run.read_history()
    return stored


LOST = "another worker does not answer"


class LostWorker(InputError):
    """Raised when another worker was killed, or does not answer.

    Example:
    >>> try:
    ...     raise LostWorker("worker 1 does not answer")
    ... except InputError as error:
    ...     print(error)
    worker 1 does not answer
    """


def train_worker(
    output: str | os.PathLike[str],
    config: TrainingConfig | None = None,
    *,
    save_minutes: float | None = None,
    start_minutes: float = 5.0,
    threads: int | None = None,
    verbose: Any = "auto",
) -> TwoTower:
    """Trains two towers together with the other workers of `TF_CONFIG`.

    Each worker calls this function in a process of its own, on any machine:
    started by Ray Train (`train_on_ray`), Slurm, Kubernetes or by hand. The
    workers take the steps of one process whose batches are all workers'
    batches together. Worker 0 writes the run folder, which all workers must
    be able to read; the files are those of `train`.

    A run that is in the folder already, of the same settings, goes on from
    its last checkpoint: after a failure, all workers are started again by
    the same command. `TF_CONFIG` must be set, and nothing of TensorFlow may
    have run in the process.

    Args:
        output: The run folder.
        config: What to train on. Default `None`: goes on with the run in the
            folder.
        save_minutes: Age of the last checkpoint after which one is saved
            within an epoch. Default `None`: that of `config`, or 10.
        start_minutes: How long to wait for the other workers; then the
            process ends with exit code 1 and one line. Default 5.
        threads: Threads of each worker. Default `None`: a thread for each
            core.
        verbose: 0, 1, 2 or `"auto"`, for worker 0, see `train`.

    Returns:
        The trained model, on each worker.

    Raises:
        InputError: See `train`; or the workers were started with different
            settings or versions.
        LostWorker: Another worker was killed, or does not answer.
        KeyboardInterrupt: A worker was sent SIGTERM or SIGINT; all stop
            after the same step, and worker 0 has saved a checkpoint.

    Example:
    >>> config = TrainingConfig("clicks-*.tsv.gz", "best")
    >>> model = train_worker("RUN", config)
    """
    if config is not None:
        config.check_workers()
    cluster = Cluster.from_environment()
    if threads:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
    collectives = connect(cluster, start_minutes)
    run = RunFolder(output)
    try:
        with ExitStack() as stack:
            stop = threading.Event()
            stack.enter_context(stop_by_signal(stop.is_set, stop.set))
            check_equal(collectives, worker_versions(run, config))
            workers = Workers(collectives, stop)
            workers.on_first(lambda: stack.enter_context(run.locked()))
            if config is not None and isinstance(config.data, str):
                start = config  # a run that goes on writes the same again
                data = workers.on_first(
                    lambda: with_written_pages(start, run).data
                )
                config = config.replace(data=data)
            size, given = cluster.size, config
            stored = workers.on_first(lambda: read_stored(run, given, size))
            if stored is not None:
                config = config_of_run(run, stored)
            assert config is not None
            if save_minutes is not None:
                config = config.replace(save_minutes=save_minutes)
            model: TwoTower = run_training(
                config, run, stored, (), verbose, processes=workers
            )
        collectives.barrier()
    except (Stopped, JointError):
        # A process that ends first would interrupt the others.
        with suppress(tf.errors.OpError):
            collectives.barrier()
        time.sleep(0.2)
        raise
    except tf.errors.OpError as error:
        first_line = str(error).splitlines()[0]
        raise LostWorker(
            f"{cluster.describe(cluster.rank)}: {LOST} ({first_line}): start "
            "all workers again by the same command, to go on from "
            f"{run.checkpoint}"
        ) from error
    return model
