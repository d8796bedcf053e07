"""A lock that lets one process at a time work in a folder."""

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from keras_lstm_dssm.errors import InputError


@contextmanager
def lock_folder(
    folder: str | os.PathLike[str], activity: str, wait: bool = False
) -> Iterator[None]:
    """Keeps other processes that lock the same folder from working in it.

    The lock is released when the process ends, even if it is killed. Its file
    `.lock` stays in the folder.

    Args:
        folder: The folder, which is created if it does not exist.
        activity: What the processes do, for the message, such as "training".
        wait: Whether to wait for another process that has locked the folder,
            with a line on standard error, instead of raising an error.

    Raises:
        InputError: Another process has locked the folder.

    Example:
    >>> with lock_folder("build/run", "training"):
    ...     train()
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    # Whoever can write into the folder could have put a link there.
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(folder / ".lock", flags, 0o666), "wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not wait:
                raise InputError(
                    f"{folder}: another process is {activity} here: wait for"
                    " its end, or stop it"
                ) from None
            print(
                f"{folder}: waiting for another process that is {activity}"
                " here",
                file=sys.stderr,
                flush=True,
            )
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
