"""Times functions in turn, and computes medians of the times.

The peers in `benchmarks.peers` import this module and need no TensorFlow. This
module therefore imports only NumPy and the standard library.
"""

import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

WARM_STEPS = 3


def interleaved_medians(
    measurements: Mapping[str, Callable[[], Any]], rounds: int
) -> dict[str, Any]:
    """Returns name -> median result of the rounds, after a warm-up round."""
    values: dict[str, list[Any]] = {name: [] for name in measurements}
    for _ in range(rounds + 1):
        for name, measurement in measurements.items():
            values[name].append(measurement())
    return {
        name: np.median(results[1:], axis=0).tolist()
        for name, results in values.items()
    }


def medians(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the median of each number over nested dicts with equal keys."""
    return {
        name: medians([result[name] for result in results])
        if isinstance(value, dict)
        else statistics.median(result[name] for result in results)
        for name, value in results[0].items()
    }


def timed_steps(
    step: Callable[..., Any], batches: Sequence[Sequence[Any]]
) -> np.ndarray:
    """Returns mean wall and processor seconds of a step, after a warm-up."""
    for batch in batches[:WARM_STEPS]:
        step(*batch)

    def run() -> None:
        for batch in batches[WARM_STEPS:]:
            step(*batch)

    return wall_and_cpu(run) / (len(batches) - WARM_STEPS)


def seconds(run: Callable[[], Any]) -> float:
    """Returns the wall seconds of a call."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def wall_and_cpu(run: Callable[[], Any]) -> np.ndarray:
    """Returns the wall seconds and the processor seconds of a call, `[2]`."""
    start = read_clocks()
    run()
    return read_clocks() - start


def read_clocks() -> np.ndarray:
    """Returns wall time, and processor time of all threads, in seconds."""
    return np.array([time.perf_counter(), time.process_time()])


def percentiles_and_cpu(
    run: Callable[[Any], Any], inputs: Sequence[Any]
) -> np.ndarray:
    """Returns p50 and p99 wall time, and mean processor time, in ms, `[3]`."""
    start = time.process_time()
    walls = percentiles(run, inputs)
    cpu = 1000 * (time.process_time() - start) / len(inputs)
    return np.append(walls, cpu)


def percentiles(run: Callable[[Any], Any], inputs: Iterable) -> np.ndarray:
    """Calls `run` with each input; returns p50 and p99 milliseconds, `[2]`."""
    milliseconds = [1000 * seconds(partial(run, value)) for value in inputs]
    return np.percentile(milliseconds, [50, 99])
