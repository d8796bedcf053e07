"""Trains one model by several processes, the workers.

`lstm-dssm-train --workers=N` starts them by Ray; a launcher that starts the
program on each machine itself sets the environment variable TF_CONFIG.
"""

from typing import Any

from absl import flags

from keras_lstm_dssm.distributed.cluster import Cluster, in_cluster
from keras_lstm_dssm.distributed.worker import train_worker
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.tools.flagged_recipe import flagged_recipe
from keras_lstm_dssm.tools.train_flags import data_options
from keras_lstm_dssm.training.config import WorkerSettings

_OF_ONE_PROCESS = (
    "histograms", "negatives_from", "replay", "salience", "teacher",
)  # fmt: skip
_OF_WORKERS = ("ray_address", "worker_cpus", "start_minutes")


def trains_by_workers(values: flags.FlagValues) -> bool:
    """Returns whether this process is to train together with others.

    Raises:
        InputError: It is not, and a flag of workers is set.
    """
    if (values.workers or 1) > 1 or in_cluster():
        return True
    for name in _OF_WORKERS:
        if values[name].present:
            raise InputError(
                f"--{name} is set, but one process trains: leave it out, or "
                "set --workers or TF_CONFIG"
            )
    return False


def is_first_worker() -> bool:
    """Returns whether this process reports the results."""
    return not in_cluster() or Cluster.from_environment().first


def train_by_workers(values: flags.FlagValues, run: RunFolder) -> None:
    """Trains as one of the workers of `TF_CONFIG`, or starts all workers.

    Raises:
        InputError: A flag is one of a training by one process.
    """
    for name in _OF_ONE_PROCESS:
        if values[name].value:
            raise InputError(
                f"--{name} is not supported by several workers: leave it out, "
                "or train without --workers and TF_CONFIG"
            )
    joins = in_cluster()
    options: dict[str, Any] = {
        "save_minutes": values.save_minutes,
        "start_minutes": values.start_minutes,
    }
    settings = None if values.resume else _settings(values)
    if joins:
        cluster = Cluster.from_environment()
        if values.workers not in (None, cluster.size):
            raise InputError(
                f"--workers={values.workers}: found {cluster.size} workers in "
                "TF_CONFIG: leave the flag out, or unset TF_CONFIG"
            )
        if values.ray_address:
            raise InputError(
                "--ray_address and TF_CONFIG are both set: expected one of "
                "them: leave the flag out, or unset TF_CONFIG"
            )
        options["threads"] = values.worker_cpus
        train_worker(run.path, settings, **options)
        return
    from keras_lstm_dssm.distributed.on_ray import train_on_ray

    train_on_ray(
        run.path,
        settings,
        workers=values.workers,
        address=values.ray_address,
        cpus=values.worker_cpus,
        **options,
    )


def _settings(values: flags.FlagValues) -> WorkerSettings:
    if not values.data:
        raise InputError(
            "--data is missing: expected `api`, a BEIR folder or click files"
        )
    options = {
        name: value
        for name, value in data_options(values).items()
        if name not in _OF_ONE_PROCESS
    }
    return WorkerSettings.make(values.data, flagged_recipe(values), **options)
