"""Whether a run can be written where it shall be, and by nobody else."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from keras_lstm_dssm.errors import InputError


def check_place(folder: Path) -> None:
    """Checks that a run can be written in a folder, before the work.

    Args:
        folder: The run's folder, or where it shall be made.

    Raises:
        InputError: A file stands in the way, or there is no permission.
    """
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        raise InputError(
            f"{folder}: found a file, expected a folder for the run: name"
            " another --output"
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(
            f"{folder}: cannot be written to (no permission, or mounted"
            " read-only): name another --output"
        )


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keeps other processes from training in a folder meanwhile.

    The lock ends with the process, however it ends. Models that a process
    which was killed has left half-written are removed.

    Args:
        folder: The run's folder, made when missing.

    Raises:
        InputError: Another process trains in it.

    Example:
    >>> with locked(run.path):
    ...     train_run(run, model, log, epochs=5, batch_size=256, seed=0)
    """
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"{folder}: another process is training here: wait for its"
                " end, or stop it"
            ) from None
        for partial in folder.rglob(".partial-*.keras"):
            partial.unlink()
        yield
