"""A run that is killed at any moment and resumed ends like one that was not.

SIGKILL leaves a process no time to do anything. The checkpoint is replaced
after about every second update here, so that many kills interrupt the writing
of a file.
"""

import pathlib
import random
import subprocess
from collections.abc import Iterator

import numpy as np
import pytest

from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.tools.train import program
from tests.fresh_process import ForkedProcess, FreshProcesses
from tests.reliability.program import SETTINGS, train, write_log

OFTEN = "--save_minutes=0.001"
SHORT = 4  # epochs
LONG = 40  # epochs; the training ends later than the last moment of a kill


@pytest.fixture(scope="module")
def log(tmp_path_factory) -> pathlib.Path:
    return write_log(tmp_path_factory.mktemp("kill") / "clicks.tsv")


def uninterrupted_run(log: pathlib.Path, epochs: int) -> RunFolder:
    """Trains a run without killing it, with checkpoints after epochs only."""
    output = log.with_name(f"{epochs} epochs")
    flags = [f"--data={log}", *SETTINGS, f"--epochs={epochs}"]
    assert program.run(["train", *flags, f"--output={output}"]) == 0
    return RunFolder(output)


@pytest.fixture(scope="module")
def uninterrupted_long(log) -> RunFolder:
    return uninterrupted_run(log, LONG)


def killed(
    process: subprocess.Popen[str] | ForkedProcess,
    seconds: float,
    after: str | None,
) -> bool:
    """Kills a process some time after a line of its output (or its start)."""
    assert process.stdout
    with process:
        lines: Iterator[str] = iter(process.stdout)
        if after:
            any(after in line for line in lines)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
        errors = process.communicate()[1]
    assert process.returncode in (0, -9), errors
    return process.returncode == -9


def state(run: RunFolder) -> list[np.ndarray]:
    """All numbers of a run: weights, velocities, last updates of the rows."""
    model = run.load_checkpoint()
    return [
        np.asarray(variable)
        for variable in model.variables + model.optimizer.variables
    ]


def kill_and_resume(
    fresh_process: FreshProcesses,
    log: pathlib.Path,
    run: RunFolder,
    seed: int,
    kills: int,
    epochs: int,
) -> int:
    """Kills a run a number of times, then resumes it to its end.

    The first kill is one of a program that a shell has started, the others
    are of forks. That of a long run may come before training, while the
    program imports, counts the log or makes the run.

    Returns:
        How often the run was killed before it ended.
    """
    moments = random.Random(seed)
    deaths = 0

    def flags(*more: str) -> list[str]:
        new = (f"--data={log}", *SETTINGS, f"--epochs={epochs}")
        first = ("--resume",) if run.config.exists() else new
        return [*first, *more, f"--output={run.path}"]

    for number in range(kills):
        if number:
            process = fresh_process.program("train", *flags(OFTEN))
        else:
            process = train(*flags(OFTEN))
        if number == 0 and epochs == LONG:
            deaths += killed(process, moments.uniform(0, 10), None)
        else:
            deaths += killed(process, moments.uniform(0, 4), "parameters")
    assert program.run(["train", *flags()]) == 0
    return deaths


def check_equal(
    run: RunFolder, uninterrupted: RunFolder, epochs: int = SHORT
) -> None:
    for one, other in zip(state(run), state(uninterrupted), strict=True):
        np.testing.assert_array_equal(one, other)
    models = run.load_model(), uninterrupted.load_model()
    for one, other in zip(*(m.weights for m in models), strict=True):
        np.testing.assert_array_equal(one, other)
    updates = [row["updates"] for row in run.read_history()]
    assert updates == list(range(15, 15 * epochs + 1, 15))
    assert not list(run.path.rglob(".partial-*"))


def test_killed_twice(fresh_process, log, tmp_path):
    run = RunFolder(tmp_path / "run")
    assert kill_and_resume(fresh_process, log, run, 4, 2, SHORT) >= 1
    check_equal(run, uninterrupted_run(log, SHORT))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 9))
def test_killed_at_24_random_moments(
    seed, fresh_process, log, uninterrupted_long, tmp_path
):
    """Three times in each of eight runs."""
    run = RunFolder(tmp_path / "run")
    assert kill_and_resume(fresh_process, log, run, seed, 3, LONG) == 3
    check_equal(run, uninterrupted_long, LONG)
