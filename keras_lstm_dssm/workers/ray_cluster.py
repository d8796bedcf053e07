"""ray_cluster: connects to Ray, or starts it on this machine."""

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import ModuleType
from typing import Any

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.private_api import ray_on_loopback

_CONNECT_SECONDS = 10.0
_RETRY_SECONDS = 1.0
_ENVIRONMENT = {
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    # Ray would give its workers the least of a busy machine, 15.
    "RAY_worker_niceness": "0",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}
"""What a Ray that is started here, and its workers, get from this process."""


@contextmanager
def ray_cluster(
    ray: ModuleType, address: str | None, minutes: float = 5.0, **local: Any
) -> Iterator[None]:
    """Connects to a Ray cluster, or starts Ray on this machine.

    At the end the connection is closed, and Ray ended if it was started here.
    It then listens to this machine only: who can reach Ray can run programs.
    If this process is connected already, nothing is done.

    Args:
        ray: The module `ray`, an optional requirement.
        address: Address of the cluster, such as `"auto"`; `None` starts Ray,
            also on a machine that is part of a cluster.
        minutes: How long to try to start it. Default 5.
        **local: Arguments of `ray.init` for a Ray that is started here.

    Raises:
        InputError: There is no cluster, or Ray cannot be started.

    Example:
    >>> with ray_cluster(ray, None, num_cpus=3):
    ...     ray.cluster_resources()["CPU"]
    3.0
    """
    if ray.is_initialized():
        yield
        return
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        with nullcontext() if address else ray_on_loopback():
            _init(ray, address, minutes, local)
            yield
    finally:  # also if ctrl-c interrupts the start
        ray.shutdown()


def _init(
    ray: ModuleType,
    address: str | None,
    minutes: float,
    local: dict[str, Any],
) -> None:
    if address:
        _check_reachable(address)
    options = {} if address else {"include_dashboard": False, **local}
    deadline = time.monotonic() + 60 * minutes
    try:
        while not ray.is_initialized():
            try:
                ray.init(
                    # Without an address Ray would connect to RAY_ADDRESS, or
                    # to a cluster of this machine.
                    address=address or "local",
                    log_to_driver=False,
                    logging_level="ERROR",
                    **options,
                )
            except Exception:  # Ray gives a new node 30 seconds to start
                ray.shutdown()
                if address or time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_SECONDS)
    except Exception as error:  # Ray raises `Exception` itself, too
        text = str(error).strip() or type(error).__name__
        reason = text.splitlines()[0]
        raise InputError(
            f"--ray_address={address}: found no Ray cluster ({reason}), "
            "expected one that runs: start it with `ray start`, or leave the "
            "flag out; one that asks for a token, as `ray start` makes it, "
            "needs RAY_AUTH_MODE=token in the environment, or the address auto"
            if address
            else f"Ray cannot be started here ({reason}): try again when the "
            "machine is less busy, or name a cluster with --ray_address"
        ) from error


def _check_reachable(address: str) -> None:
    """Checks that a host answers; Ray itself would try for minutes.

    Raises:
        InputError: Nothing answers at a host and port.
    """
    host, colon, port = address.rpartition(":")
    if "/" in address or not (colon and port.isdecimal()):
        return  # such as auto, or an address of Ray's client
    try:
        socket.create_connection((host, int(port)), _CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise InputError(
            f"--ray_address={address}: nothing answers there ({error}); start "
            "Ray with `ray start --head`, or leave the flag out"
        ) from error
