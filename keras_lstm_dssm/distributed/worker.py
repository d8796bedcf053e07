"""The training of a worker: its shard of the data, and its run."""

import dataclasses
import json
import os
import sys
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.data.batches import (
    ClickFrequencies,
    GivenNegatives,
    training_batches,
)
from keras_lstm_dssm.data.click_log import ClickLog, ShardedClickLog
from keras_lstm_dssm.data.sources import DataSource
from keras_lstm_dssm.data.statistics import alphabet_warning
from keras_lstm_dssm.distributed.cluster import Cluster
from keras_lstm_dssm.distributed.collectives import (
    Collectives,
    JointError,
    check_equal,
    connect,
    on_all,
    on_each,
    on_first,
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
from keras_lstm_dssm.models.kinds import recipe_from_dict
from keras_lstm_dssm.models.recipes import Recipe
from keras_lstm_dssm.models.two_tower import TwoTower
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.training.config import (
    DataOptions,
    TrainingData,
    WorkerSettings,
    open_clicks,
)
from keras_lstm_dssm.training.initial_model import Parent
from keras_lstm_dssm.training.mining import HardNegatives
from keras_lstm_dssm.training.session import (
    TrainingSession,
    check_same_data,
    new_config,
    warn_of_version,
)
from keras_lstm_dssm.training.tower_training import TowerTraining, TrainingPlan
from keras_lstm_dssm.version import __version__


def worker_versions(
    run: RunFolder, settings: WorkerSettings | None
) -> dict[str, Any]:
    """Returns what must be equal on all workers, for `check_equal`."""
    package = Path(__file__).parents[1]
    sources = sorted(
        Path(folder, name)
        for folder, _, names in os.walk(package, followlinks=True)
        for name in names
        if name.endswith(".py")
    )
    settings = settings or WorkerSettings({}, {})
    return {
        "keras_lstm_dssm": __version__,
        "keras_lstm_dssm with source files of hash": files_hash(sources)[:12],
        "TensorFlow": tf.__version__,
        "Keras": keras.__version__,
        "output": str(run.path.absolute()),
        "seed": settings.seed,
        "init": settings.init,
        **{f"recipe {k}": v for k, v in settings.recipe.items()},
        **settings.data,
    }


@dataclass(frozen=True)
class WorkerPlan(TrainingPlan):
    """Describes what a worker reads, its part of what all of them read.

    An epoch has as many steps for all workers: those of the smallest part. A
    worker with a larger part leaves out other pairs in each epoch.

    Attributes:
        rows: Pairs of this worker in a batch.
        steps: Training steps in an epoch.
        all_pairs: Pairs in an epoch, of all workers.
        all_bad_lines: What is wrong, and number of lines, of all workers.
        cluster: The workers.
        callbacks: What the workers do together after steps and epochs.
    """

    rows: int = 0
    steps: int = 0
    all_pairs: int = 0
    all_bad_lines: tuple[tuple[str, int], ...] = ()
    cluster: Cluster = Cluster((), 0)
    callbacks: tuple[keras.callbacks.Callback, ...] = ()

    @property
    def examples(self) -> int:
        """Pairs in an epoch, of all workers."""
        return self.all_pairs

    @property
    def bad_lines(self) -> dict[str, int]:
        """What is wrong -> number of lines that all workers leave out."""
        return dict(self.all_bad_lines)

    @property
    def watches(self) -> list[keras.callbacks.Callback]:
        """What the workers do together, before other callbacks."""
        return [*self.callbacks, *super().watches]

    @property
    def steps_per_epoch(self) -> int:
        """Training steps in an epoch."""
        return self.steps

    def describe(self) -> str:
        """Describes the amount of data."""
        return f"{self.all_pairs:,} pairs, {self.cluster.size} workers"

    def batches(
        self, first: int, negatives: GivenNegatives | None = None
    ) -> tf.data.Dataset:
        """Returns this worker's batches from training step `first` on."""
        batches = training_batches(
            self.log,
            self.rows,
            epochs=self.recipe.epochs,
            seed=self.seed,
            first_step=first,
            shuffle_buffer=self.recipe.shuffle_buffer,
            steps_per_epoch=self.steps,
        )
        if negatives:
            batches = negatives.attach(batches, first)
        if self.frequencies:
            batches = self.frequencies.attach(batches)
        return batches


class JointNegatives(HardNegatives):
    """Lets worker 0 mine the negatives, which all workers then read.

    Mining needs the queries and the titles of the whole log.
    """

    collectives: Collectives

    @classmethod
    def of(
        cls, negatives: HardNegatives, collectives: Collectives
    ) -> "JointNegatives":
        """Makes them of those of one process."""
        joint = cls.__new__(cls)
        joint.__dict__.update(negatives.__dict__, collectives=collectives)
        return joint

    def of_epoch(
        self,
        epoch: int,
        model: Any,
        begins: bool,
        clicks: ClickLog | None = None,
    ) -> GivenNegatives | None:
        """Returns the negatives of an epoch, see `HardNegatives`."""
        mined: list[GivenNegatives | None] = []

        def mine() -> None:
            of_epoch = super(JointNegatives, self).of_epoch
            mined.append(of_epoch(epoch, model, begins, clicks))

        on_first(self.collectives, mine)
        if mined:
            return mined[0]
        return super().of_epoch(epoch, model, False, clicks)


def share_of(
    plan: TrainingPlan, collectives: Collectives, split: str
) -> WorkerPlan:
    """Makes a worker's plan of the plan of all.

    Args:
        plan: The whole log, of which nothing has been read, and its negatives.
            Its last file is cut by lines if the recipe has synthetic pairs.
        collectives: The workers.
        split: How the encoder of titles separates words.

    Raises:
        JointError: The log of any worker is wrong.
    """
    cluster, recipe = collectives.cluster, plan.recipe
    if recipe.batch_size < cluster.size:
        raise JointError(
            f"batch_size is {recipe.batch_size}: expected {cluster.size} or "
            "more, a pair for each worker"
        )
    paths = list(plan.log.paths)
    cut = paths[-1:] if recipe.title_pairs else []
    rows = cluster.share(recipe.batch_size)

    def read() -> dict[str, Any]:
        log = ShardedClickLog(
            paths[: len(paths) - len(cut)],
            cluster.rank,
            cluster.size,
            plan.log.max_bad_lines,
            cut,
        )
        logs.append(log)
        return {"pairs": log.count(), "bad": log.bad_lines()}

    logs: list[ClickLog] = []
    parts = on_all(collectives, read)
    steps = min(
        -(-part["pairs"] // cluster.share(recipe.batch_size, rank))
        for rank, part in enumerate(parts)
    )
    bad: dict[str, int] = {}
    for part in parts:
        for problem, count in part["bad"].items():
            bad[problem] = bad.get(problem, 0) + count
    if sum(bad.values()) > plan.log.max_bad_lines:
        raise JointError(
            f"{paths[0]}: found {sum(bad.values())} bad lines in the parts of "
            f"all workers, more than --max_bad_lines={plan.log.max_bad_lines}:"
            " correct or remove them"
        )
    negatives = plan.negatives
    if isinstance(negatives, HardNegatives):
        negatives = JointNegatives.of(negatives, collectives)
    frequencies = None
    if recipe.logq:
        frequencies = ClickFrequencies.from_log(logs[0], split)
        frequencies.count(collectives.sum_counts(frequencies.counts))
    return WorkerPlan(
        logs[0],
        recipe,
        plan.seed,
        negatives,
        frequencies,
        rows=rows,
        steps=steps,
        all_pairs=sum(
            min(part["pairs"], steps * cluster.share(recipe.batch_size, rank))
            for rank, part in enumerate(parts)
        ),
        all_bad_lines=tuple(bad.items()),
        cluster=cluster,
    )


class WorkerRun:
    """Begins the run that several processes train together, or resumes it.

    Worker 0 reads and writes what is there once for all workers; the others
    wait, and read the files that it has written.

    Args:
        collectives: The workers.
        folder: The run folder, which worker 0 has locked.
        settings: What to train on; `None` for a run in the folder.

    Attributes:
        config: Content of the `config.json` of a run to go on with; `None`
            for a new run.
        settings: What to train on.
        recipe: The recipe.
        data: The data.

    Raises:
        JointError: The run in the folder has other settings or another
            number of workers, or a file of it is damaged.
    """

    def __init__(
        self,
        collectives: Collectives,
        folder: RunFolder,
        settings: WorkerSettings | None,
    ) -> None:
        self.collectives = collectives
        self.folder = folder
        self.config: dict[str, Any] | None = on_first(
            collectives, lambda: self._config(settings)
        )
        if self.config is not None:
            settings = WorkerSettings.from_config(folder, self.config)
        assert settings is not None
        self.settings = settings
        recipe = recipe_from_dict(settings.recipe)
        assert isinstance(recipe, Recipe)
        self.recipe = recipe
        self.data = TrainingData(**settings.data)

    def _config(self, settings: WorkerSettings | None) -> Any:
        """Reads `config.json` if the folder has a run; `None` for a new run."""
        folder = self.folder
        if settings is not None and not folder.config.exists():
            (folder.path / STOP_FILE).unlink(missing_ok=True)
            return None
        config = folder.read_config()
        started = WorkerSettings.from_config(folder, config)
        size = self.collectives.cluster.size
        found = _compared(started, config.get("workers", 1))
        expected = _compared(settings or started, size)
        for name, value in expected.items():
            if found[name] != value:
                raise InputError(
                    f"{folder.path}: the run was started with {name} "
                    f"{found[name]}, not {value}: start with the same, "
                    "or train anew in another --output"
                )
        folder.read_metrics()
        folder.read_history()
        (folder.path / STOP_FILE).unlink(missing_ok=True)
        return config

    @property
    def resumed(self) -> bool:
        """Whether the run was in the folder already."""
        return self.config is not None

    def prepare(self) -> tuple[WorkerPlan, TwoTower]:
        """Writes the files of a new run, or opens those of an old one.

        Returns:
            The plan of this worker, and the model of the last checkpoint.

        Raises:
            JointError: The data are wrong, or not those that the run was
                started with; or a file cannot be read or written.
        """
        towers = self._towers()
        parents: list[Parent] = []
        models: list[TwoTower] = []

        def make() -> None:
            if self.config is not None:
                warn_of_version(self.folder, self.config)
                models.append(self.folder.load_checkpoint())
            else:
                if self.settings.init is not None:
                    parents.append(Parent.open(self.settings.init))
                models.append(towers.new_model(*parents))
            towers.plan(self.folder.path, models[0], self.resumed)

        on_first(self.collectives, make)
        model = models[0] if models else self.recipe.build(self.settings.seed)
        whole_plan = towers.plan(self.folder.path, model, resumed=True)
        plan = share_of(
            dataclasses.replace(whole_plan, recipe=self.recipe),
            self.collectives,
            model.document_encoder.trigrams.split,
        )

        def create() -> None:
            if self.config is not None:
                check_same_data(self.config, plan)
                return
            if not self.recipe.encoder_config.get("oov_buckets"):
                if line := alphabet_warning(plan.log):
                    print(f"warning: {line}", file=sys.stderr)
            parent = parents[0] if parents else None
            config = new_config(
                self.data, self.recipe, self.settings.seed, parent, plan
            )
            size = self.collectives.cluster.size
            self.folder.create({**config, "workers": size}, models[0])

        on_first(self.collectives, create)
        return plan, on_each(self.collectives, self.folder.load_checkpoint)

    def _towers(self) -> TowerTraining:
        """Opens the clicks, and makes what one process would train."""
        log = self._log()
        judged = None
        if self.recipe.judged_negatives:
            judged = on_each(
                self.collectives,
                lambda: DataSource(self.data.data).judged_negatives(
                    self.data.min_relevant
                ),
            )
        # Of the clicks' frequencies each worker counts its part.
        return TowerTraining(
            self.recipe.replace(logq=False), self.settings.seed, log,
            self.data.data, (), judged,
            continued=self.settings.init is not None,
            min_relevant=self.data.min_relevant,
        )  # fmt: skip

    def _log(self) -> ClickLog:
        """Opens the clicks; reads none of them, but writes those of grades."""
        options = DataOptions(
            self.data.data, self.data.min_relevant, self.data.max_bad_lines
        )
        paths = on_first(
            self.collectives,
            lambda: open_clicks(options, self.folder)[0].paths,
        )
        absolute = [os.path.abspath(path) for path in paths]
        return on_each(
            self.collectives,
            lambda: ClickLog(absolute, self.data.max_bad_lines),
        )


def _compared(settings: WorkerSettings, workers: int) -> dict[str, Any]:
    """Returns the settings that those of the run in the folder must equal."""
    values = {
        "workers": workers,
        **settings.data,
        "seed": settings.seed,
        "recipe": settings.recipe,
    }
    return dict(json.loads(json.dumps(values)))


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
