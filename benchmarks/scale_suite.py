r"""The suite `scale`: cost and memory by log size; time to the first step.

Each log is measured in a new process, because memory is counted by process:

    python -m keras_lstm_dssm.benchmarks.scale_suite \
        PRESET LOG BATCH_SIZE STEPS MINE_CLUSTERS
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_lstm_dssm.benchmarks.click_data import whole_batches, write_log
from keras_lstm_dssm.benchmarks.measurement import (
    medians,
    memory_megabytes,
    program_command,
    results_of_process,
    seconds,
)
from keras_lstm_dssm.benchmarks.recipe_cost import measure_recipe
from keras_lstm_dssm.benchmarks.towers import PRESET, OwnTowers
from keras_lstm_dssm.data import ClickLog
from keras_lstm_dssm.errors import InputError

_POLL_SECONDS = 0.02


def measure_scale(
    sizes: Sequence[int],
    batch_size: int,
    steps: int,
    rounds: int,
    preset: str = PRESET,
    mine_clusters: int = 0,
) -> dict[str, Any]:
    """Train on synthetic logs of several sizes, each in new processes.

    Args:
        sizes: Numbers of pairs in the logs.
        batch_size: Pairs in a training step.
        steps: Training steps timed in each process.
        rounds: Number of processes for each size, in turn, for medians.
        preset: The towers; for others than the default the whole recipe is
            measured, with its own batch size, see `measure_recipe`.
        mine_clusters: As in `Recipe`, of a recipe that mines. Default 0.

    Returns:
        The `summary`, and `first_step_seconds`, from the start of
        `lstm-dssm-train` to the end of its first epoch, of `batch_size`
        clicks.
    """
    sizes = sorted(set(sizes))
    with tempfile.TemporaryDirectory() as folder:
        paths = {size: Path(folder, f"{size}.tsv") for size in sizes}
        for size, path in paths.items():
            write_log(path, size)
        results: dict[int, list[dict[str, float]]] = {n: [] for n in sizes}
        first_steps = []
        for round_number in range(rounds):
            for size, path in paths.items():
                arguments = preset, path, batch_size, steps, mine_clusters
                results[size].append(
                    results_of_process(__name__, *map(str, arguments))
                )
            run = Path(folder, f"run-{round_number}")
            first_steps.append(_first_step_seconds(run, batch_size, preset))
    return {
        **summary(results),
        "first_step_seconds": statistics.median(first_steps),
    }


def summary(
    results: Mapping[int, Sequence[Mapping[str, float]]],
) -> dict[str, Any]:
    """Return medians by size, and compare the largest and smallest log.

    Args:
        results: By size of the log, the results of `measure_log` or of
            `measure_recipe`.

    Returns:
        `logs`, the medians by size; `cost_ratio`, the cost of a pair in the
        largest log divided by that in the smallest; `peak_gigabytes` with
        the largest.
    """
    logs = {size: medians(rounds) for size, rounds in results.items()}
    smallest, largest = logs[min(logs)], logs[max(logs)]
    cost = "microseconds_per_pair"
    return {
        "logs": {str(size): each for size, each in logs.items()},
        "cost_ratio": largest[cost] / smallest[cost],
        "peak_gigabytes": largest["peak_gigabytes"],
    }


def measure_log(path: str, batch_size: int, steps: int) -> dict[str, Any]:
    """Read, check and count a log, then time training steps on it.

    Args:
        path: A click file.
        batch_size: Pairs in a training step.
        steps: Number of training steps to time.

    Returns:
        `count_seconds`; `step_microseconds_per_pair`;
        `microseconds_per_pair`, the cost of the steps and of one pass that
        counts the log, per pair; and `peak_gigabytes` of resident memory.
    """
    log = ClickLog(path)
    count_seconds = seconds(log.count)
    batches = whole_batches(log, batch_size, steps)
    step = 1e6 * OwnTowers().train(batches, steps) / batch_size
    return {
        "count_seconds": count_seconds,
        "step_microseconds_per_pair": step,
        "microseconds_per_pair": step + 1e6 * count_seconds / log.count(),
        "peak_gigabytes": memory_megabytes("VmHWM") / 1000,
    }


def _first_step_seconds(run: Path, batch_size: int, preset: str) -> float:
    """Return seconds to train on one batch of clicks and write the history."""
    log = run.with_name("one_step.tsv")
    write_log(log, batch_size)
    start = time.perf_counter()
    command = program_command(
        "train", f"--preset={preset}", f"--data={log}", f"--output={run}",
        "--epochs=1", f"--batch_size={batch_size}",
    )  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while not (run / "history.csv").exists():
            if process.poll() is not None:
                raise InputError("lstm-dssm-train ended without a step")
            time.sleep(_POLL_SECONDS)
        return time.perf_counter() - start


def main(
    preset: str, path: str, batch_size: str, steps: str, mine_clusters: str
) -> None:
    """Measure a training on one click file; print time and memory as JSON."""
    if preset == PRESET:
        costs = measure_log(path, int(batch_size), int(steps))
    else:
        costs = measure_recipe(path, preset, int(steps), int(mine_clusters))
    print(json.dumps(costs))


if __name__ == "__main__":
    main(*sys.argv[1:])
