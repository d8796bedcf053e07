"""Measures time and memory, repeatedly or in separate processes.

A contender is a program that is measured: a model of this package, or its peer
in another library. A task, such as `train`, is a function without arguments
that measures something. In code, `work` is the name of a task. In all of
`benchmarks`, `batch_size` counts examples in a training step, or texts that are
encoded at once. `steps` counts the training steps in a measurement, and
`rounds` counts the measurements.

This command runs a contender of this package. The function `ours` writes FILE.

    python -m benchmarks.measure FILE
"""

import importlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from ctypes.util import find_library
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from benchmarks.clocks import WARM_STEPS, interleaved_medians, read_clocks
from benchmarks.peers import answer
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.tensorflow_start import usable_cores

THREADS = {
    "one thread": {
        "OMP_NUM_THREADS": "1",
        "TF_NUM_INTRAOP_THREADS": "1",
        "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    },
    "all threads": {
        "OMP_NUM_THREADS": str(usable_cores()),
        "TF_NUM_INTRAOP_THREADS": "0",  # TensorFlow's default: all cores
    },
}
"""Number of threads -> environment variables for PyTorch, TensorFlow, JAX."""

_GIGABYTE = 10**9
_LIBRARIES = {
    "torch": ("PyTorch", "torch==2.14.1"),
    "jax": ("JAX", "jax==0.10.2"),
}


@cache
def allocators() -> dict[str, dict[str, str]]:
    """Returns name of an allocator -> variables that select it."""
    environments: dict[str, dict[str, str]] = {
        "malloc": {},
        "malloc that keeps memory": {
            "MALLOC_MMAP_THRESHOLD_": str(4 * _GIGABYTE),
            "MALLOC_TRIM_THRESHOLD_": str(16 * _GIGABYTE),
            "MALLOC_TOP_PAD_": str(_GIGABYTE // 8),
        },
    }
    if jemalloc := find_library("jemalloc"):
        environments["jemalloc"] = {"LD_PRELOAD": jemalloc}
    return environments


def has_library(name: str) -> bool:
    """Returns whether a library is installed; if not, prints a pip command."""
    if importlib.util.find_spec(name):
        return True
    library, requirement = _LIBRARIES[name]
    print(
        f"the peers in {library} are left out: to run them, pip install"
        f" {requirement} into this Python",
        file=sys.stderr,
    )
    return False


def memory_megabytes(field: str) -> float:
    """Returns resident megabytes now (`VmRSS`) or at the peak (`VmHWM`)."""
    # The peak that getrusage returns may be the peak of the parent process.
    lines = Path("/proc/self/status").read_text().splitlines()
    values = dict(line.split(":", 1) for line in lines)
    return int(values[field].split()[0]) * 1024 / 1e6


def fit_seconds(model: Any, batches: tf.data.Dataset, steps: int) -> float:
    """Returns the mean wall seconds of a training step of `fit`."""
    return float(fit_wall_and_cpu(model, batches, steps)[0])


def fit_wall_and_cpu(
    model: Any, batches: tf.data.Dataset, steps: int
) -> np.ndarray:
    """Returns mean wall and processor seconds of a step of `fit`, `[2]`."""
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
        if batch == WARM_STEPS - 1:  # the warm-up, which traces graphs, ends
            self.start = read_clocks()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.end = read_clocks()


def full_batches(
    batches_of: Callable[..., tf.data.Dataset],
    examples: int,
    batch_size: int,
    steps: int,
) -> tf.data.Dataset:
    """Streams at least `WARM_STEPS + steps` batches of equal size."""
    epochs = -(-(WARM_STEPS + steps) // (examples // batch_size))
    batches = batches_of(batch_size, epochs=epochs, seed=0)

    def is_full(first: Any, *_: Any) -> tf.Tensor:
        ragged = isinstance(first, tf.RaggedTensor)
        return (first.nrows() if ragged else tf.size(first)) == batch_size

    return batches.filter(is_full)


def program_command(name: str, *flags: str) -> list[str]:
    """Returns the command that starts the program `lstm-dssm-NAME`."""
    file = Path(__file__).parents[1] / "tools" / f"{name}.py"
    return [sys.executable, str(file), *flags]


class Worker:
    """A process that runs a contender until the end of the `with` block."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str]
    ) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"TF_CPP_MIN_LOG_LEVEL": "3", **os.environ, **environment},
        )

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def line(self) -> str:
        """Returns the next line that the process prints."""
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            raise InputError("a process of the benchmark has ended")
        return line

    def turn(self, work: str) -> Any:
        """Runs the task named `work` in the process; returns the result."""
        assert self.process.stdin
        with suppress(BrokenPipeError):  # if the process ended, `line` raises
            self.process.stdin.write(f"{work}\n")
            self.process.stdin.flush()
        return json.loads(self.line())


class Contender(NamedTuple):
    """A program to measure; it follows the protocol in `benchmarks.peers`."""

    command: Sequence[str]
    threads: Sequence[str] = tuple(THREADS)  # keys of `THREADS` to try


def ours(
    folder: Path, name: str, function: Callable[..., Any], *arguments: Any
) -> Contender:
    """Returns a contender with the tasks of the dict `function(*arguments)`."""
    path = folder / f"{name}.json"
    call = function.__module__, function.__name__, arguments
    path.write_text(json.dumps(call), encoding="utf-8")
    return Contender([sys.executable, "-m", __name__, str(path)])


def read_works(path: str) -> dict[str, Callable[[], Any]]:
    """Calls the function that `ours` wrote to a file; returns name -> task."""
    module, name, arguments = json.loads(Path(path).read_text("utf-8"))
    return getattr(importlib.import_module(module), name)(*arguments)


def peer(
    module: str, *arguments: object, threads: Sequence[str] = tuple(THREADS)
) -> Contender:
    """Returns a contender that runs a module of `benchmarks.peers`."""
    name = f"{__package__}.peers.{module}"
    return Contender(
        [sys.executable, "-m", name, *map(str, arguments)], threads
    )


def compare(
    contenders: Mapping[str, Contender], work: str, rounds: int
) -> tuple[dict[str, Any], dict[str, str]]:
    """Runs the task named `work` once in each contender, in each round.

    Each contender runs in its fastest environment. Returns two dicts with the
    names of the contenders as keys: median results, and names of environments.
    """
    fastest = {
        name: best_environment(contender, work)
        for name, contender in contenders.items()
    }
    with ExitStack() as stack:
        turns: dict[str, Callable[[], Any]] = {}
        for name, contender in contenders.items():
            variables = environments(contender)[fastest[name]]
            worker = Worker(contender.command, variables)
            stack.enter_context(worker).line()  # waits for "ready"
            turns[name] = partial(worker.turn, work)
        return interleaved_medians(turns, rounds), fastest


def environments(contender: Contender) -> dict[str, dict[str, str]]:
    """Returns name of an environment (threads, allocator) -> variables."""
    return {
        f"{threads}, {allocator}": {**THREADS[threads], **variables}
        for threads in contender.threads
        for allocator, variables in allocators().items()
    }


def best_environment(contender: Contender, work: str) -> str:
    """Returns the name of the environment in which a contender is fastest."""
    seconds_of: dict[str, float] = {}
    for name, variables in environments(contender).items():
        with Worker(contender.command, variables) as worker:
            worker.line()  # waits for "ready"
            worker.turn(work)  # a warm-up: traces the graphs
            seconds_of[name] = float(np.ravel(worker.turn(work))[0])
    return min(seconds_of, key=seconds_of.__getitem__)


@contextmanager
def running_server(command: Sequence[str]) -> Iterator[str]:
    """Runs a server in another process, and yields the server's address."""
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
    """Runs a module in a new process; returns the JSON that it prints."""
    process = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        capture_output=True,
        text=True,
    )
    if process.returncode:
        last_line = process.stderr.strip().rpartition("\n")[2]
        raise InputError(f"{arguments[0]}: {last_line}")
    return json.loads(process.stdout)


if __name__ == "__main__":
    answer(read_works(sys.argv[1]))
