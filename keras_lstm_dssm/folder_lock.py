"""A lock that lets one process at a time work in a folder."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from keras_lstm_dssm.errors import InputError


@contextmanager
def lock_folder(
    folder: str | os.PathLike[str], activity: str
) -> Iterator[None]:
    """Keeps other processes that lock the same folder from working in it.

    The lock is released when the process ends, even if it is killed. Its file
    `.lock` stays in the folder.

    Args:
        folder: The folder, which is created if it does not exist.
        activity: What the processes do, for the message, such as "training".

    Raises:
        InputError: Another process has locked the folder.

    Example:
    >>> with lock_folder("build/run", "training"):
    ...     train()
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"{folder}: another process is {activity} here: wait for its"
                " end, or stop it"
            ) from None
        yield
