"""Training by several workers, which Ray Train starts and restarts."""

import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from keras_lstm_dssm.distributed.collectives import JointError
from keras_lstm_dssm.distributed.worker import (
    LOST,
    STOP_FILE,
    Stopped,
    train_worker,
)
from keras_lstm_dssm.errors import InputError, import_optional
from keras_lstm_dssm.models.builders import find_recipe
from keras_lstm_dssm.private_api import ray_on_loopback
from keras_lstm_dssm.run_folder import RunFolder, config_of_run
from keras_lstm_dssm.settings.training import TrainingConfig

_CONNECT_SECONDS = 10.0
_RETRY_SECONDS = 1.0
_ENVIRONMENT = {
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    # By default, Ray's workers have niceness 15: too slow on a busy machine.
    "RAY_worker_niceness": "0",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}


@contextmanager
def ray_cluster(
    ray: ModuleType, address: str | None, minutes: float = 5.0, **local: Any
) -> Iterator[None]:
    """Connects to a Ray cluster, or starts Ray here with options `local`."""
    if ray.is_initialized():
        yield
        return
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        # If Ray is started here, only this machine may connect to it, because
        # everyone who can reach Ray can run programs.
        with nullcontext() if address else ray_on_loopback():
            _connect(ray, address, minutes, local)
            yield
    finally:  # ctrl-c may have interrupted the start of Ray
        ray.shutdown()


def _connect(
    ray: ModuleType, address: str | None, minutes: float, local: dict[str, Any]
) -> None:
    if address:
        _check_reachable(address)
    options = {} if address else {"include_dashboard": False, **local}
    deadline = time.monotonic() + 60 * minutes
    try:
        while not ray.is_initialized():
            try:
                ray.init(
                    # With the address `None`, Ray would connect to the cluster
                    # in RAY_ADDRESS, or to a cluster on this machine.
                    address=address or "local",
                    log_to_driver=False,
                    logging_level="ERROR",
                    **options,
                )
            # Ray gives up after 30 seconds if the node that it starts is slow.
            except Exception:
                ray.shutdown()
                if address or time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_SECONDS)
    except Exception as error:  # Ray raises plain `Exception`s
        text = str(error).strip() or type(error).__name__
        reason = text.splitlines()[0]
        raise InputError(
            f"--ray_address={address}: found no Ray cluster ({reason}): start "
            "one with `ray start`, or leave the flag out; if the cluster asks "
            "for a token, set RAY_AUTH_MODE=token in the environment, or give "
            "--ray_address=auto on one of its machines"
            if address
            else f"Ray cannot be started here ({reason}): try again when the "
            "machine is less busy, or name a cluster with --ray_address"
        ) from error


def _check_reachable(address: str) -> None:
    """Checks that a host answers; Ray itself would try for minutes."""
    host, colon, port = address.rpartition(":")
    if "/" in address or not (colon and port.isdecimal()):
        return  # `auto`, or an address such as ray://HOST:PORT
    try:
        socket.create_connection((host, int(port)), _CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise InputError(
            f"--ray_address={address}: nothing answers there ({error}); start "
            "Ray with `ray start --head`, or leave the flag out"
        ) from error


_POLL_SECONDS = 0.5
_LIMITS = (
    "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S",
    "RAY_TRAIN_WORKER_HEALTH_CHECK_TIMEOUT_S",
)
"""Environment variables with the seconds for which Ray waits for a worker."""

_CAUSES = {
    "worker group startup timed out": "found no room for all workers within "
    "--start_minutes",
    "health check has been hanging": "a worker did not answer for "
    "--start_minutes, or waited as long for another worker",
}
"""Maps a part of Ray's message to the cause, which names a flag."""


def train_on_ray(
    output: str | os.PathLike[str],
    config: TrainingConfig | None = None,
    *,
    workers: int | None = None,
    address: str | None = None,
    cpus: int | None = None,
    save_minutes: float | None = None,
    start_minutes: float = 5.0,
    max_failures: int = 3,
    verbose: bool = True,
) -> None:
    """Trains two towers by several workers that Ray Train starts.

    A step of all workers gives the same weights, up to rounding, as a step of
    one process on the batches of all workers together. The run folder has the
    same files as after `train`. When a worker is lost, Ray restarts all workers
    from the last checkpoint. The final weights have the same bits as without a
    restart. SIGTERM and ctrl-c stop all workers after a step, and a checkpoint
    is saved.

    Args:
        output: The run folder, which all machines must see under this path.
        config: Data and recipe. Default `None`: continues the run in the
            folder.
        workers: Number of workers. Default `None`: as in the run.
        address: The Ray cluster, such as `"auto"`. Default `None`: Ray is
            started on this machine and ends with the training.
        cpus: Cores and threads of each worker. Default `None`: the cluster's
            cores divided by `workers`.
        save_minutes: Minutes between checkpoints within an epoch. Default
            `None`: as in `config`, or 10.
        start_minutes: Minutes to wait for the cores of all workers, and for an
            answer of each worker. If cores are still missing, `InputError` is
            raised. If a worker still does not answer, all workers are
            restarted. Default 5.
        max_failures: Largest number of restarts. Default 3.
        verbose: Whether to print the metrics of each epoch. Default `True`.

    Raises:
        InputError: See `train`; or Ray is not installed, or has no room for
            the workers; or the workers failed too often.
        KeyboardInterrupt: The training was stopped; a checkpoint is saved.

    Example:
    >>> config = TrainingConfig("clicks-*.tsv.gz", "best")
    >>> train_on_ray("RUN", config, workers=2)
    """
    ray = import_optional("ray", "ray")
    import_optional("ray.train", "ray")
    run = RunFolder(os.path.abspath(output))
    if config is None:
        stored = run.read_config()
        config_of_run(run, stored)  # raises if a setting is missing
        run.read_metrics()
        run_workers = stored.get("workers", 1)
        workers = workers or run_workers
        if workers != run_workers:
            raise InputError(
                f"{run.path}: found a run of {run_workers} workers, not"
                f" {workers}: give --workers={run_workers}, or train anew in"
                " another --output"
            )
    else:
        find_recipe(config.recipe)
        config.check_workers()
        run.check_new()
    if not workers:
        raise InputError("workers is missing: expected a number of workers")
    (run.path / STOP_FILE).unlink(missing_ok=True)
    for name in _LIMITS:
        os.environ.setdefault(name, str(int(60 * start_minutes)))
    with ray_cluster(ray, address, start_minutes):
        # A cluster that grows on demand may have no machine yet: 0 cores.
        cores = ray.cluster_resources().get("CPU", 0)
        cpus = cpus or max(1, int(cores) // workers)
        _wait_for_room(ray, workers, cpus, start_minutes)
        trainer = _trainer(
            {
                "output": str(run.path),
                "config": config and config.to_dict(),
                "save_minutes": save_minutes,
                "threads": cpus,
            },
            run.path, workers, cpus, max_failures,
        )  # fmt: skip
        end = _fit(trainer, run, verbose)
    if "error" in end:
        raise InputError(end["error"])
    if end.get("stopped"):
        raise KeyboardInterrupt


def _train_loop(arguments: dict[str, Any]) -> dict[str, Any]:
    """Runs a worker; returns a `JointError` or a stop as a dict.

    Ray restarts all workers after any other exception.
    """
    options = arguments.pop("config")
    config = options and TrainingConfig.from_dict(options)
    try:
        train_worker(**arguments, config=config)
    except JointError as error:
        return {"error": str(error)}
    except Stopped:
        return {"stopped": True}
    return {}


def _trainer(
    arguments: dict[str, Any], run: Path, workers: int, cpus: int, failures: int
) -> Any:
    from ray.train import FailureConfig, RunConfig, ScalingConfig
    from ray.train.tensorflow import TensorflowTrainer

    return TensorflowTrainer(
        _train_loop,
        train_loop_config=arguments,
        scaling_config=ScalingConfig(
            num_workers=workers, resources_per_worker={"CPU": cpus}
        ),
        run_config=RunConfig(
            # Ray writes RUN/ray; worker 0 writes the run's other files.
            storage_path=str(run),
            name="ray",
            failure_config=FailureConfig(
                max_failures=failures, controller_failure_limit=failures
            ),
        ),
    )


def _wait_for_room(
    ray: ModuleType, workers: int, cpus: int, minutes: float
) -> None:
    """Waits for cores, because the cluster may first have to start machines."""
    group = ray.util.placement_group([{"CPU": cpus}] * workers)
    try:
        if not group.wait(60 * minutes):
            free = ray.available_resources().get("CPU", 0)
            raise InputError(
                f"found no room for {workers} workers of {cpus} cores in the "
                f"Ray cluster within {minutes:g} minutes ({free:g} of "
                f"{ray.cluster_resources().get('CPU', 0):g} cores are free): "
                "give fewer --workers or --worker_cpus, or wait longer "
                "(--start_minutes)"
            )
    finally:
        ray.util.remove_placement_group(group)


def _fit(trainer: Any, run: RunFolder, verbose: bool) -> dict[str, Any]:
    """Runs `trainer`, prints metrics; returns the result of `_train_loop`."""
    results: list[Any] = []

    def fit() -> None:
        try:
            results.append(trainer.fit())
        except BaseException as error:  # reported below
            results.append(error)

    stop_file = run.path / STOP_FILE
    # In the main thread Ray would replace the handler of ctrl-c.
    thread = threading.Thread(target=fit, daemon=True)
    with stop_by_signal(stop_file):
        thread.start()
        shown = len(run.read_history())
        while thread.is_alive():
            thread.join(_POLL_SECONDS)
            rows = run.read_history()
            for row in rows[shown:] if verbose else []:
                print(_metrics_line(row), flush=True)
            shown = len(rows)
    stop_file.unlink(missing_ok=True)
    (result,) = results
    if not isinstance(result, BaseException):
        return dict(result.return_value or {})
    failures = getattr(result, "worker_failures", {})
    # A worker that failed only because another worker was lost does not know
    # the cause, so its message is sorted last.
    causes = sorted(
        map(last_line, failures.values() or [result]),
        key=lambda cause: LOST in cause,
    )
    raise InputError(
        f"the workers failed too often: {causes[0]}; remove the cause, and go "
        "on with --resume"
    ) from result


@contextmanager
def stop_by_signal(stop_file: Path) -> Iterator[None]:
    """Makes SIGTERM and SIGINT create a file.

    A second signal raises `KeyboardInterrupt`.
    """

    def handle(number: int, frame: Any) -> None:
        if stop_file.exists():
            raise KeyboardInterrupt
        with suppress(OSError):
            stop_file.touch()
        print("stopping after this training step", file=sys.stderr, flush=True)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, handle) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler or signal.SIG_DFL)


def last_line(error: BaseException) -> str:
    """Returns the cause if `_CAUSES` has it, or the error's last line."""
    for message, cause in _CAUSES.items():
        if message in str(error):
            return cause
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return re.sub(r"^[\w.]+: ", "", lines[-1])


def _metrics_line(row: dict[str, float]) -> str:
    metrics = [
        f"{name}: {value:.4f}"
        for name, value in row.items()
        if name not in ("epoch", "updates")
    ]
    return f"Epoch {row['epoch']:g} - {' - '.join(metrics)}"
