"""lstm-dssm-train in a process of its own, to be killed or starved."""

import os
import pathlib
import subprocess
import sys

from tests.conftest import TOPICS

TRAIN = pathlib.Path(__file__).parents[2] / "tools/train.py"

SETTINGS = ("--preset=lstm_32", "--batch_size=8", "--negatives=random")
"""With 4 epochs, 60 updates; the momentum changes at 2 and at 59."""


def write_log(path: pathlib.Path) -> pathlib.Path:
    """Writes 120 clicks."""
    path.write_text("".join(f"{q}\t{t}\n" for q, t in TOPICS.values()) * 20)
    return path


def train(*flags: str) -> subprocess.Popen[str]:
    """Starts the program."""
    # JAX sets a lower level where it is installed.
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    return subprocess.Popen(
        [sys.executable, TRAIN, *flags],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment,
    )  # fmt: skip
