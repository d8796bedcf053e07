"""Medians of repeated measurements, peers taking turns."""

import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

WARM_STEPS = 3


def interleaved(
    measures: Mapping[str, Callable[[], float]], rounds: int
) -> dict[str, float]:
    """Measures each of several things a number of times; returns medians.

    They take turns, so that a noisy minute of the machine does not fall on
    one of them alone. One round ahead, not counted, warms all of them up.

    Args:
        measures: Each returns what it measured, say seconds.
        rounds: Measurements of each.
    """
    found: dict[str, list[float]] = {name: [] for name in measures}
    for counts in range(rounds + 1):
        for name, measure in measures.items():
            value = measure()
            if counts:
                found[name].append(value)
    return {name: statistics.median(values) for name, values in found.items()}


def seconds(run: Callable[[], Any]) -> float:
    """How long a call takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def percentiles(run: Callable[[Any], Any], inputs: Iterable) -> np.ndarray:
    """Calls with one input after the other; milliseconds, p50 and p99."""
    taken = [1000 * seconds(partial(run, one)) for one in inputs]
    return np.percentile(taken, [50, 99])


def memory_megabytes(field: str) -> float:
    """This process's memory: `VmRSS`, resident now, or `VmHWM`, its peak."""
    # Not getrusage: its peak may be that of the parent before exec.
    lines = Path("/proc/self/status").read_text().splitlines()
    values = dict(line.split(":", 1) for line in lines)
    return int(values[field].split()[0]) * 1024 / 1e6


def fit_seconds(model: Any, batches: tf.data.Dataset, steps: int) -> float:
    """Seconds a step of `fit`, pipeline and all.

    The clock starts after some steps, when tracing, the first reads and the
    pipeline's start are over, and stops when the epoch has ended and all
    weights are up to date.

    Args:
        model: A compiled Keras model.
        batches: What `fit` takes, of at least `steps + WARM_STEPS` batches.
        steps: Steps timed.
    """
    clock = _Clock()
    model.fit(
        batches,
        steps_per_epoch=WARM_STEPS + steps,
        shuffle=False,  # the batches are shuffled already
        callbacks=[clock],
        verbose=0,
    )
    return (clock.end - clock.start) / steps


class _Clock(keras.callbacks.Callback):
    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if batch == WARM_STEPS - 1:
            self.start = time.perf_counter()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.end = time.perf_counter()
