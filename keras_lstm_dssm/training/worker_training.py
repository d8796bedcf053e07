"""train_worker: what each of several workers does in a training."""

import dataclasses
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import keras
import tensorflow as tf

import keras_lstm_dssm
from keras_lstm_dssm.data import (
    ClickLog,
    absolute_spec,
    alphabet_warning,
    judged_negatives,
)
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.fingerprints import files_hash
from keras_lstm_dssm.models import (
    AnyRecipe,
    Recipe,
    TwoTower,
    find_recipe,
    recipe_from_dict,
)
from keras_lstm_dssm.training.parent import Parent
from keras_lstm_dssm.training.run_folder import RunFolder
from keras_lstm_dssm.training.tower_training import TowerTraining
from keras_lstm_dssm.training.training_data import (
    DataOptions,
    TrainingData,
    open_clicks,
)
from keras_lstm_dssm.training.training_session import TrainingSession
from keras_lstm_dssm.training.worker_callbacks import (
    JointEvaluation,
    JointFigures,
    Stopped,
    StopTogether,
)
from keras_lstm_dssm.training.worker_plan import WorkerPlan, share_of
from keras_lstm_dssm.version import __version__
from keras_lstm_dssm.workers import Cluster, Collectives, JointStep, connect
from keras_lstm_dssm.workers.agreement import (
    JointError,
    check_equal,
    on_each,
    on_first,
)

STOP_FILE = ".stop"
"""A file in the run folder that stops the training, with a checkpoint."""


LOST = "another worker does not answer"


class LostWorker(InputError):
    """Raised when another worker was killed, or does not answer."""


class WorkerSettings(NamedTuple):
    """Holds the settings of a training by several workers, as JSON can.

    Attributes:
        recipe: The recipe, `Recipe.to_dict()`.
        data: See `TrainingData`, as a dict.
        seed: Seed of the weights and of all random draws.
        init: Folder of the run whose weights the training starts from.
    """

    recipe: dict[str, Any]
    data: dict[str, Any]
    seed: int = 0
    init: str | None = None

    @classmethod
    def make(
        cls,
        clicks: str | os.PathLike[str],
        recipe: str | AnyRecipe = "best",
        *,
        seed: int = 0,
        validation: str | None = None,
        dev: str | None = None,
        select: str = "mrr@10",
        every: int = 1,
        patience: int | None = None,
        min_relevant: int = 1,
        max_bad_lines: int = 0,
        init: str | os.PathLike[str] | None = None,
    ) -> "WorkerSettings":
        """Makes the settings of arguments that `train` has, too.

        Raises:
            InputError: The recipe is not one of two towers.
        """
        recipe = find_recipe(recipe)
        if not isinstance(recipe, Recipe):
            raise InputError(
                "several workers train two towers only: leave the workers "
                "out for a pair scorer or a KeyVec"
            )
        if dev is not None and patience is None:
            patience = recipe.patience or None
        data = TrainingData(
            absolute_spec(os.fspath(clicks)),
            validation and absolute_spec(validation),
            dev and absolute_spec(dev),
            select,
            every,
            patience,
            min_relevant,
            max_bad_lines,
        )
        return cls(
            recipe.to_dict(),
            data._asdict(),
            seed,
            None if init is None else os.path.abspath(init),
        )


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
            stop = stack.enter_context(_stop_by_signal())
            check_equal(collectives, _versions(run, settings))
            on_first(collectives, lambda: stack.enter_context(run.locked()))
            worker = _Worker(collectives, run, settings, stop)
            model = worker.train(save_minutes, verbose)
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


class _Worker:
    """Makes the parts of a training, together with the other workers."""

    def __init__(
        self,
        collectives: Collectives,
        run: RunFolder,
        settings: WorkerSettings | None,
        stop: threading.Event,
    ) -> None:
        self.stop = stop
        self.collectives = collectives
        self.cluster = collectives.cluster
        self.run = run
        self.config: dict[str, Any] | None = on_first(
            collectives, lambda: self._config(settings)
        )
        if self.config is not None:
            settings = WorkerSettings(
                self.config["recipe"],
                {name: self.config[name] for name in TrainingData._fields},
                self.config["seed"],
                (self.config["init"] or {}).get("path"),
            )
        assert settings is not None
        self.settings = settings
        recipe = recipe_from_dict(settings.recipe)
        assert isinstance(recipe, Recipe)
        self.recipe = recipe
        self.data = TrainingData(**settings.data)

    def _config(self, settings: WorkerSettings | None) -> Any:
        """Returns the `config.json` of a run to go on with, or `None`."""
        run = self.run
        if settings is not None and not run.config.exists():
            (run.path / STOP_FILE).unlink(missing_ok=True)
            return None
        config = run.read_config()
        size = self.cluster.size
        expected: dict[str, Any] = {"workers": size}
        if settings is not None:
            expected |= {
                **settings.data, "seed": settings.seed,
                "recipe": settings.recipe,
            }  # fmt: skip
        found = {"workers": 1, **config}
        for name, value in json.loads(json.dumps(expected)).items():
            if found.get(name) != value:
                raise InputError(
                    f"{run.path}: the run was started with {name} "
                    f"{found.get(name)}, not {value}: start with the same, "
                    "or train anew in another --output"
                )
        run.read_metrics()
        run.read_history()
        (run.path / STOP_FILE).unlink(missing_ok=True)
        return config

    def train(self, save_minutes: float, verbose: Any) -> TwoTower:
        """Trains to the end."""
        first, run = self.cluster.first, self.run
        plan = self._plan()
        model = self._model
        joint_step = JointStep(self.collectives, self.recipe.batch_size)
        model.train_jointly(joint_step)
        stop = StopTogether(joint_step, self.stop, run.path / STOP_FILE)
        plan = dataclasses.replace(
            plan, callbacks=(JointFigures(self.collectives), stop)
        )
        parts: dict[str, Any] = {"evaluation": None, "validation": None}

        def open_parts() -> None:
            parts["evaluation"] = self.data.ranking(self.recipe)
            parts["validation"] = self.data.open_validation(self.recipe)

        on_first(self.collectives, open_parts)
        best = None
        if self.data.dev is not None:
            best = JointEvaluation(self.collectives, parts["evaluation"])
        session = TrainingSession(run, first, plan, parts["validation"], best)
        if self.config is not None:
            session.restore(model)
        trained: TwoTower = session.fit(
            model, (), verbose if first else 0, save_minutes, False
        )
        return trained

    def _plan(self) -> WorkerPlan:
        """Makes the files of a new run, or opens those of an old one."""
        log, run, resumed = self._log(), self.run, self.config is not None
        judged = None
        if self.recipe.judged_negatives:
            judged = on_each(
                self.collectives,
                lambda: judged_negatives(
                    self.data.data, self.data.min_relevant
                ),
            )
        # Of the clicks' frequencies each worker counts its part.
        towers = TowerTraining(
            self.recipe.replace(logq=False), self.settings.seed, log,
            self.data.data, (), judged,
            continued=self.settings.init is not None,
            min_relevant=self.data.min_relevant,
        )  # fmt: skip
        parent: list[Parent] = []
        models: list[TwoTower] = []

        def make() -> None:
            if resumed:
                models.append(run.load_checkpoint())
            else:
                if self.settings.init is not None:
                    parent.append(Parent.open(self.settings.init))
                models.append(towers.new_model(*parent))
            towers.plan(run.path, models[0], resumed)

        on_first(self.collectives, make)
        model = models[0] if models else self.recipe.build(self.settings.seed)
        plan = share_of(
            dataclasses.replace(
                towers.plan(run.path, model, resumed=True), recipe=self.recipe
            ),
            self.collectives,
            model.document_encoder.trigrams.split,
        )
        found = plan.examples, sum(plan.bad_lines.values())

        def create() -> None:
            if self.config is not None:
                expected = self.config["pairs"], self.config["bad_lines"]
                if found != expected:
                    raise InputError(
                        f"{self.data.data}: found {found[0]} pairs and "
                        f"{found[1]} bad lines, expected the {expected[0]} and"
                        f" {expected[1]} that the run was started with; "
                        "restore them, or train anew in another --output"
                    )
                return
            if not self.recipe.encoder_config.get("oov_buckets"):
                if line := alphabet_warning(plan.log):
                    print(f"warning: {line}")
            run.create(
                {
                    "version": __version__,
                    **self.data._asdict(),
                    "init": parent[0].describe() if parent else None,
                    "seed": self.settings.seed,
                    "recipe": self.recipe.to_dict(),
                    "pairs": found[0],
                    "bad_lines": found[1],
                    "workers": self.cluster.size,
                },
                models[0],
            )

        on_first(self.collectives, create)
        self._model = on_each(self.collectives, run.load_checkpoint)
        return plan

    def _log(self) -> ClickLog:
        """Opens the clicks; reads none of them, but writes those of grades."""
        options = DataOptions(
            self.data.data, self.data.min_relevant, self.data.max_bad_lines
        )
        paths = on_first(
            self.collectives, lambda: open_clicks(options, self.run)[0].paths
        )
        absolute = [os.path.abspath(path) for path in paths]
        return on_each(
            self.collectives,
            lambda: ClickLog(absolute, self.data.max_bad_lines),
        )


def _versions(
    run: RunFolder, settings: WorkerSettings | None
) -> dict[str, Any]:
    """Returns what must be equal on all workers, for `check_equal`."""
    package = Path(keras_lstm_dssm.__file__).parent
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


@contextmanager
def _stop_by_signal() -> Iterator[threading.Event]:
    """Lets SIGTERM and SIGINT stop all workers after a step.

    A second signal interrupts this worker at once. To be called when the
    workers are connected: TensorFlow sets a handler of SIGTERM then, which
    ignores it.

    Yields:
        An event that a signal sets.
    """
    wanted = threading.Event()

    def handle(number: int, frame: Any) -> None:
        if wanted.is_set():
            raise KeyboardInterrupt
        wanted.set()

    if threading.current_thread() is not threading.main_thread():
        yield wanted  # Ray's workers are stopped by the file
        return
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, handle) for number in numbers]
    try:
        yield wanted
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler or signal.SIG_DFL)
