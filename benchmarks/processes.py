"""Servers in processes of their own, as in production."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from keras_lstm_dssm.errors import InputError


@contextmanager
def served(module: str, *arguments: str) -> Iterator[str]:
    """Runs a module that serves, and gives its address.

    Args:
        module: Prints "serving on ADDRESS" when it is ready.
        arguments: Of its command line.

    Raises:
        InputError: It ended before it served.
    """
    with subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            for line in process.stdout or ():
                if line.startswith("serving on "):
                    yield line.split()[-1]
                    break
            else:
                raise InputError(f"{module} ended before it served")
        finally:
            process.terminate()
