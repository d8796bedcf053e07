"""train_worker: what each of several workers does in a training."""

import dataclasses
import os
import threading
import time
from contextlib import ExitStack, suppress
from typing import Any

import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.models import TwoTower
from keras_lstm_dssm.training.joint_stop import (
    STOP_FILE,
    Stopped,
    StopTogether,
    stop_by_signal,
)
from keras_lstm_dssm.training.run_folder import RunFolder
from keras_lstm_dssm.training.training_session import TrainingSession
from keras_lstm_dssm.training.worker_callbacks import (
    JointEvaluation,
    JointFigures,
)
from keras_lstm_dssm.training.worker_run import WorkerRun
from keras_lstm_dssm.training.worker_settings import (
    WorkerSettings,
    worker_versions,
)
from keras_lstm_dssm.workers import Cluster, JointStep, connect
from keras_lstm_dssm.workers.agreement import (
    JointError,
    check_equal,
    on_first,
)

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
    settings: WorkerSettings | None = None,
    *,
    save_minutes: float = 10.0,
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
        settings: What to train on, see `WorkerSettings.make`. Default
            `None`: goes on with the run in the folder.
        save_minutes: Age of the last checkpoint after which one is saved
            within an epoch. Default 10.
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
    >>> settings = WorkerSettings.make("clicks-*.tsv.gz", "best")
    >>> model = train_worker("RUN", settings)
    """
    cluster = Cluster.from_environment()
    if threads:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
    collectives = connect(cluster, start_minutes)
    run = RunFolder(output)
    try:
        with ExitStack() as stack:
            stop = threading.Event()
            stack.enter_context(stop_by_signal(stop.is_set, stop.set))
            check_equal(collectives, worker_versions(run, settings))
            on_first(collectives, lambda: stack.enter_context(run.locked()))
            worker_run = WorkerRun(collectives, run, settings)
            model = _train(worker_run, stop, save_minutes, verbose)
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


def _train(
    worker_run: WorkerRun,
    stop_wanted: threading.Event,
    save_minutes: float,
    verbose: Any,
) -> TwoTower:
    """Trains to the end, together with the other workers."""
    collectives, folder = worker_run.collectives, worker_run.folder
    recipe, data = worker_run.recipe, worker_run.data
    first = collectives.cluster.first
    plan, model = worker_run.prepare()
    joint_step = JointStep(collectives, recipe.batch_size)
    model.train_jointly(joint_step)
    stop = StopTogether(joint_step, stop_wanted, folder.path / STOP_FILE)
    plan = dataclasses.replace(
        plan, callbacks=(JointFigures(collectives), stop)
    )
    parts: dict[str, Any] = {"evaluation": None, "validation": None}

    def open_parts() -> None:
        parts["evaluation"] = data.ranking(recipe)
        parts["validation"] = data.open_validation(recipe)

    on_first(collectives, open_parts)
    best = None
    if data.dev is not None:
        best = JointEvaluation(collectives, parts["evaluation"])
    session = TrainingSession(folder, first, plan, parts["validation"], best)
    if worker_run.resumed:
        session.restore(model)
    trained: TwoTower = session.fit(
        model, (), verbose if first else 0, save_minutes, False
    )
    return trained
