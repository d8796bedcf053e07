"""Measure time and memory, repeatedly or in processes of their own."""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import InputError

WARM_STEPS = 3
"""Training steps before the clock of `fit_seconds` starts."""


def interleaved_medians(
    measurements: Mapping[str, Callable[[], Any]], rounds: int
) -> dict[str, Any]:
    """Repeat several measurements in turn and return their medians.

    They take turns so that a period in which other processes use the machine
    does not affect one of them alone. The first round is a warm-up and is
    discarded.

    Args:
        measurements: Functions by name, each of which returns a number, such
            as seconds, or an array of numbers.
        rounds: How often each is repeated.

    Returns:
        The median of each, by name; a list for arrays.
    """
    values: dict[str, list[Any]] = {name: [] for name in measurements}
    for _ in range(rounds + 1):
        for name, measurement in measurements.items():
            values[name].append(measurement())
    return {
        name: np.median(each[1:], axis=0).tolist()
        for name, each in values.items()
    }


def medians(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the median of each number, also in nested dictionaries.

    Example:
    >>> medians([{"p50": {"ms": 1.0}}, {"p50": {"ms": 2.0}}])
    {'p50': {'ms': 1.5}}
    """
    return {
        name: medians([each[name] for each in results])
        if isinstance(value, dict)
        else statistics.median(each[name] for each in results)
        for name, value in results[0].items()
    }


def torch_ratios(times: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Compare the model `ours` with the fastest of its peers.

    Args:
        times: Model -> the seconds by the clock and those of all threads.

    Returns:
        `ratio_torch` and `cpu_ratio_torch`, the times of the fastest peer
        divided by those of ours; nothing without a peer.

    Example:
    >>> torch_ratios({"ours": [1.0, 2.0], "a": [3.0, 5.0], "b": [4.0, 4.0]})
    {'ratio_torch': 3.0, 'cpu_ratio_torch': 2.0}
    """
    ours = times["ours"]
    peers = [of_peer for model, of_peer in times.items() if model != "ours"]
    return {
        name: min(of_peer[number] for of_peer in peers) / ours[number]
        for number, name in enumerate(("ratio_torch", "cpu_ratio_torch"))
        if peers
    }


def seconds(run: Callable[[], Any]) -> float:
    """Return how many seconds a call takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def wall_and_cpu(run: Callable[[], Any]) -> np.ndarray:
    """Return the seconds that a call takes, and those of all its threads.

    The second figure depends less on other work of the machine.
    """
    start = _clocks()
    run()
    return _clocks() - start


def _clocks() -> np.ndarray:
    return np.array([time.perf_counter(), time.process_time()])


def percentiles(run: Callable[[Any], Any], inputs: Iterable) -> np.ndarray:
    """Return percentiles of the time that calls with single inputs take.

    Returns:
        `[2]`, the 50th and the 99th percentile of the calls' milliseconds.
    """
    milliseconds = [1000 * seconds(partial(run, each)) for each in inputs]
    return np.percentile(milliseconds, [50, 99])


def beside_echo(
    ours: Callable[[Any], Any],
    echo: Callable[[Any], Any],
    requests: Sequence[Any],
    rounds: int,
) -> dict[str, float]:
    """Measure a server and, in turn, one that always sends the same reply.

    Args:
        ours: Sends one request to the server.
        echo: Sends one request to the echo server.
        requests: The requests of a round.
        rounds: Number of rounds, whose medians are taken.
    """
    (p50, p99), (echo_p50, echo_p99) = interleaved_medians(
        {
            "ours": partial(percentiles, ours, requests),
            "echo": partial(percentiles, echo, requests),
        },
        rounds,
    ).values()
    return {
        "p50_ms": p50,
        "p99_ms": p99,
        "echo_p50_ms": echo_p50,
        "echo_p99_ms": echo_p99,
        "ratio_echo": p50 / echo_p50,
    }


def memory_megabytes(field: str) -> float:
    """Return the memory of this process.

    Args:
        field: `VmRSS` for the memory that is resident now, or `VmHWM` for
            the peak.
    """
    # Not getrusage: its peak can be that of the parent before exec.
    lines = Path("/proc/self/status").read_text().splitlines()
    values = dict(line.split(":", 1) for line in lines)
    return int(values[field].split()[0]) * 1024 / 1e6


def fit_seconds(model: Any, batches: tf.data.Dataset, steps: int) -> float:
    """Return the seconds of a training step; see `fit_wall_and_cpu`."""
    return float(fit_wall_and_cpu(model, batches, steps)[0])


def fit_wall_and_cpu(
    model: Any, batches: tf.data.Dataset, steps: int
) -> np.ndarray:
    """Return the seconds that a training step of `fit` takes.

    The clock starts after `WARM_STEPS` steps, when the graph is traced and
    the input pipeline runs, and stops at the end of the epoch, when all
    weights are up to date.

    Args:
        model: A compiled Keras model.
        batches: The input of `fit`, `steps + WARM_STEPS` batches or more.
        steps: Number of steps to time.

    Returns:
        `[2]`: the seconds by the clock, and those of all threads.
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
            self.start = _clocks()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.end = _clocks()


def program_command(name: str, *flags: str) -> list[str]:
    """Return the command that starts a program, `lstm-dssm-NAME`."""
    return [sys.executable, "-m", "lstm_dssm_programs", name, *flags]


@contextmanager
def running_server(command: Sequence[str]) -> Iterator[str]:
    """Run a server in another process and return its address.

    Args:
        command: The command line. The server must print "serving on ADDRESS"
            when it is ready.

    Raises:
        InputError: The server ended before it was ready; the message ends
            with its last line.
    """
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        try:
            for line in process.stdout or ():
                if line.startswith("serving on "):
                    yield line.split()[-1]
                    break
            else:
                errors.seek(0)
                last_line = errors.read().strip().rpartition("\n")[2]
                raise InputError(
                    f"{' '.join(command)} ended before it served: {last_line}"
                )
        finally:
            process.terminate()


def results_of_process(module: str, *arguments: str) -> Any:
    """Run a module in a new process, whose memory is that of the work alone.

    Args:
        module: Dotted name of a module that prints its results as JSON when
            it is run.
        arguments: Command-line arguments of the module.

    Raises:
        InputError: The module failed; the message ends with its last line.
    """
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        last_line = done.stderr.strip().rpartition("\n")[2]
        raise InputError(f"{arguments[0]}: {last_line}")
    return json.loads(done.stdout)
