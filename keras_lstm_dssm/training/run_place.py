"""A run's folder is written by one process at a time."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from keras_lstm_dssm.errors import InputError


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keeps other processes from training in a folder meanwhile.

    The lock ends with the process, however it ends. What a process that was
    killed has left half-written is removed.

    Args:
        folder: The run's folder, made when missing.

    Raises:
        InputError: Another process trains in it.

    Example:
    >>> with locked(run.path):
    ...     train_run(run, model, TrainingPlan(log, epochs=5, batch_size=256))
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
        for partial in folder.rglob(".partial-*"):
            # The lock does not keep evaluation from writing its figures.
            if not partial.name.endswith("metrics.json"):
                partial.unlink()
        yield
