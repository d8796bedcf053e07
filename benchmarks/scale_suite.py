"""Scale: cost and memory as the log grows, and the wait for a first step."""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_lstm_dssm.benchmarks import scale_run
from keras_lstm_dssm.benchmarks.processes import measured
from keras_lstm_dssm.benchmarks.synthetic_log import write_log
from keras_lstm_dssm.errors import InputError

_POLL_SECONDS = 0.02


def measure_scale(
    sizes: Sequence[int], batch_size: int, steps: int, rounds: int
) -> dict[str, Any]:
    """Trains on synthetic logs of several sizes, each in fresh processes.

    Args:
        sizes: Pairs of the logs.
        batch_size: Pairs a step.
        steps: Steps timed in each process.
        rounds: Processes for each size, in turn; medians over them count.

    Returns:
        `logs`, by size what `scale_run.measure_log` gives; `cost_ratio`, the
        cost of a pair in the largest log by that in the smallest;
        `peak_gigabytes` with the largest; `first_step_seconds`, from the
        start of `lstm-dssm-train` until one step and its epoch are done.
    """
    sizes = sorted(set(sizes))
    with tempfile.TemporaryDirectory() as folder:
        paths = {size: Path(folder, f"{size}.tsv") for size in sizes}
        for size, path in paths.items():
            write_log(path, size)
        found: dict[int, list[dict[str, float]]] = {size: [] for size in sizes}
        waits = []
        for place in range(rounds):
            for size, path in paths.items():
                found[size].append(_run(path, batch_size, steps))
            run = Path(folder, f"run-{place}")
            waits.append(_first_step(Path(folder), run, batch_size))
    return {
        **summary(found),
        "first_step_seconds": statistics.median(waits),
    }


def summary(
    measured: Mapping[int, Sequence[Mapping[str, float]]],
) -> dict[str, Any]:
    """Medians by size, and the largest log beside the smallest.

    Args:
        measured: By size, what `measure_log` gave in each round.
    """
    logs = {
        size: {
            name: statistics.median(one[name] for one in rounds)
            for name in rounds[0]
        }
        for size, rounds in measured.items()
    }
    first, last = logs[min(logs)], logs[max(logs)]
    return {
        "logs": {str(size): figures for size, figures in logs.items()},
        "cost_ratio": (
            last["microseconds_per_pair"] / first["microseconds_per_pair"]
        ),
        "peak_gigabytes": last["peak_gigabytes"],
    }


def _run(path: Path, batch_size: int, steps: int) -> dict[str, float]:
    return measured(scale_run.__name__, str(path), str(batch_size), str(steps))


def _first_step(folder: Path, run: Path, batch_size: int) -> float:
    """Starts the program on a log of one step; its history tells the end."""
    log = folder / "one_step.tsv"
    write_log(log, batch_size)
    start = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "keras_lstm_dssm.tools.train",
         f"--data={log}", f"--output={run}", "--epochs=1",
         f"--batch_size={batch_size}"],
        stdout=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        while not (run / "history.csv").exists():
            if process.poll() is not None:
                raise InputError("lstm-dssm-train ended without a step")
            time.sleep(_POLL_SECONDS)
        return time.perf_counter() - start
