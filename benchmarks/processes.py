"""Servers and measurements in processes of their own."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

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


def measured(module: str, *arguments: str) -> Any:
    """Runs a module in a fresh process, whose memory is its own.

    Args:
        module: Prints its figures as JSON.
        arguments: Of its command line.

    Raises:
        InputError: It failed; with its last line.
    """
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise InputError(
            f"{arguments[0]}: {done.stderr.strip().splitlines()[-1]}"
        )
    return json.loads(done.stdout)
