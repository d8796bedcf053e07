r"""The suites `cores` and `scale`: speed by cores, cost by size of the log.

Each number of logical processors is measured in a new process that may use no
others, with TensorFlow's default number of threads; and each log in a new
process, because memory is counted by process:

    python -m keras_lstm_dssm.benchmarks.scaling cores \
        LOGS BATCH_SIZE STEPS CORES
    python -m keras_lstm_dssm.benchmarks.scaling log \
        PRESET LOG BATCH_SIZE STEPS MINE_CLUSTERS

Times for more cores than the machine has are predicted by Amdahl's law.
"""

import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from keras_lstm_dssm.benchmarks.clocks import (
    interleaved_medians,
    medians,
    seconds,
)
from keras_lstm_dssm.benchmarks.measure import (
    fit_seconds,
    memory_megabytes,
    program_command,
    results_of_process,
)
from keras_lstm_dssm.benchmarks.towers import (
    PRESET,
    batches_of,
    new_model,
)
from keras_lstm_dssm.data import ClickLog, open_log
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.models import PRESETS
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.settings.training import TrainingConfig
from keras_lstm_dssm.tensorflow_start import usable_cores
from keras_lstm_dssm.training.tower_training import TowerTraining

PREDICTED = (8, 16)
_WORKS = ("train", "encode")
_POLL_SECONDS = 0.02

_LINES = 50_000
_QUERY_WORDS = 3
_TITLE_WORDS = 12
_VOCABULARY = 100_000
_SYLLABLES = tuple(
    "".join(letters)
    for letters in itertools.product("bdfgklmnprstvz", "aeiou", ("", "n", "r"))
)


def measure_cores(
    log: ClickLog, batch_size: int, steps: int, rounds: int
) -> dict[str, Any]:
    """Times training and encoding with 1, 2, 4 and more cores, up to all."""
    if not hasattr(os, "sched_setaffinity"):
        raise InputError(
            "this system cannot limit a process to some cores: use Linux for"
            " --suite=cores"
        )
    usable = usable_cores()
    counts = sorted({usable, *(2**n for n in range(usable.bit_length()))})
    arguments = (",".join(log.paths), str(batch_size), str(steps))

    def run(cores: int) -> np.ndarray:
        found = results_of_process(__name__, "cores", *arguments, str(cores))
        return np.array([found[work] for work in _WORKS])

    medians = interleaved_medians(
        {str(cores): partial(run, cores) for cores in counts}, rounds
    )
    times = {
        cores: dict(zip(_WORKS, values, strict=True))
        for cores, values in medians.items()
    }
    return {
        "cores": times,
        **{
            work: predict({int(n): each[work] for n, each in times.items()})
            for work in _WORKS
        },
    }


def predict(times: Mapping[int, float]) -> dict[str, float]:
    """Fits Amdahl's law, time(n) = serial + parallel / n, to times by cores.

    Predicts how much faster 8 and 16 cores would be than one. Reference: Amdahl
    1967, "Validity of the single processor approach to achieving large scale
    computing capabilities".
    """
    if len(times) < 2:
        return {}
    shares = 1 / np.array(list(times), float)
    fitted = np.polyfit(shares, list(times.values()), 1).tolist()
    parallel, serial = (max(part, 0.0) for part in fitted)
    alone = serial + parallel
    return {
        "serial_share": round(serial / alone, 4),
        **{
            f"speedup_{n}": round(alone / (serial + parallel / n), 2)
            for n in PREDICTED
        },
    }


def measure_on(
    paths: str, batch_size: int, steps: int, cores: int
) -> dict[str, float]:
    """Limits this process to some cores; times a training step and encoding.

    TensorFlow must not have computed anything in this process.
    """
    usable = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, usable[:cores])
    model, log = new_model(), open_log(paths)
    step = fit_seconds(model, batches_of(log, batch_size, steps), steps)
    titles = list(islice(log.documents(), batch_size * steps))
    encode = partial(model.document_encoder.encode, titles, batch_size)
    encode()
    encoding = seconds(encode)
    batches = -(-len(titles) // batch_size)
    return {"train": 1000 * step, "encode": 1000 * encoding / batches}


def measure_scale(
    sizes: Sequence[int],
    batch_size: int,
    steps: int,
    rounds: int,
    preset: str = PRESET,
    mine_clusters: int = 0,
) -> dict[str, Any]:
    """Trains on synthetic logs of several sizes, each in new processes.

    For other towers than the default the whole recipe is measured, with its own
    batch size. `first_step_seconds` are those of an epoch of `batch_size`
    clicks, from the start of `lstm-dssm-train` on.
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
                    results_of_process(__name__, "log", *map(str, arguments))
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
    """Returns medians by size, and compares the largest and smallest log."""
    logs = {size: medians(rounds) for size, rounds in results.items()}
    smallest, largest = logs[min(logs)], logs[max(logs)]
    cost = "microseconds_per_pair"
    return {
        "logs": {str(size): each for size, each in logs.items()},
        "cost_ratio": largest[cost] / smallest[cost],
        "peak_gigabytes": largest["peak_gigabytes"],
    }


def measure_log(path: str, batch_size: int, steps: int) -> dict[str, Any]:
    """Reads, checks and counts a log, then times training steps on it.

    `microseconds_per_pair` are the cost of the steps and of one pass that
    counts the log.
    """
    log = ClickLog(path)
    count_seconds = seconds(log.count)
    batches = batches_of(log, batch_size, steps)
    step = 1e6 * fit_seconds(new_model(), batches, steps) / batch_size
    return {
        "count_seconds": count_seconds,
        "step_microseconds_per_pair": step,
        "microseconds_per_pair": step + 1e6 * count_seconds / log.count(),
        "peak_gigabytes": memory_megabytes("VmHWM") / 1000,
    }


def _first_step_seconds(run: Path, batch_size: int, preset: str) -> float:
    """Returns seconds to train on one batch of clicks and write the history."""
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


def measure_recipe(
    path: str, preset: str, steps: int, mine_clusters: int = 0
) -> dict[str, float]:
    """Prepares a training, mines once, and times training steps.

    `microseconds_per_pair` are those in an epoch of the recipe, with its share
    of preparation and mining; pairs are clicks and synthetic ones.
    """
    recipe = PRESETS[preset].replace(mine_clusters=mine_clusters)
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        config = TrainingConfig(path, recipe)
        training = TowerTraining(config, RunFolder(folder))
        model = training.new_model()
        training.prepare(model)
        # The first epoch that begins with mining; the log is counted here.
        first = recipe.mine_every * training.steps_per_epoch
        prepared = time.perf_counter()
        batches, _ = training.batches_of_fit(first, model)
        mined = time.perf_counter()
        step = fit_seconds(model, batches, steps) / recipe.batch_size
    prepare_seconds, mining_seconds = prepared - start, mined - prepared
    in_an_epoch = (
        mining_seconds / recipe.mine_every + prepare_seconds / recipe.epochs
    )
    return {
        "prepare_seconds": prepare_seconds,
        "mining_seconds": mining_seconds,
        "step_microseconds_per_pair": 1e6 * step,
        "microseconds_per_pair": 1e6 * (step + in_an_epoch / training.examples),
        "peak_gigabytes": memory_megabytes("VmHWM") / 1000,
    }


def synthetic_lines(pairs: int) -> Iterator[str]:
    r"""Yields the lines of a click log, query TAB title, in blocks.

    Words are drawn from 100,000 by Zipf's law, with frequency 1 / rank. A
    query has 1 to 5 words. A title has 6 to 18 words and begins with those
    of the query, so that there is something to learn. The first n lines do
    not depend on `pairs`.

    Example:
    >>> "".join(synthetic_lines(2)).count("\t")
    2
    """
    rng = np.random.default_rng(0)
    words = _words(rng)
    total = np.cumsum(1 / np.arange(1, _VOCABULARY + 1))
    for start in range(0, pairs, _LINES):
        queries = rng.integers(1, 2 * _QUERY_WORDS, _LINES)
        fewest, most = _TITLE_WORDS // 2, 3 * _TITLE_WORDS // 2
        titles = rng.integers(fewest, most + 1, _LINES)
        ends = np.cumsum(titles)
        ranks = np.searchsorted(total, rng.uniform(0, total[-1], ends[-1]))
        drawn = words[ranks].tolist()
        lines = [
            f"{' '.join(drawn[end - n : end - n + q])}\t"
            f"{' '.join(drawn[end - n : end])}\n"
            for q, n, end in zip(
                queries.tolist(), titles.tolist(), ends.tolist(), strict=True
            )
        ]
        yield "".join(lines[: pairs - start])


def write_log(path: str | os.PathLike[str], pairs: int) -> None:
    """Writes `synthetic_lines` to a click file."""
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(synthetic_lines(pairs))


def _words(rng: np.random.Generator) -> np.ndarray:
    """Returns distinct words of one to four syllables."""
    words: dict[str, None] = {}
    while len(words) < _VOCABULARY:
        for size in (1, 2, 3, 4):
            drawn = rng.choice(_SYLLABLES, (_VOCABULARY // 4, size))
            words.update(dict.fromkeys(map("".join, drawn.tolist())))
    return np.array(list(words)[:_VOCABULARY], object)


def main(kind: str, *arguments: str) -> None:
    """Measures in this process, and prints the result as JSON."""
    if kind == "cores":
        paths, *numbers = arguments
        result = measure_on(paths, *map(int, numbers))
    else:
        preset, path, *numbers = arguments
        batch_size, steps, mine_clusters = map(int, numbers)
        result = (
            measure_log(path, batch_size, steps)
            if preset == PRESET
            else measure_recipe(path, preset, steps, mine_clusters)
        )
    print(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
