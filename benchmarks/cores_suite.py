"""The suite `cores`: training and encoding by the number of processor cores.

Each number of logical processors is measured in a new process that may use no
others, with TensorFlow's default number of threads:

    python -m keras_lstm_dssm.benchmarks.cores_suite LOGS BATCH_SIZE STEPS CORES

Times for more cores than the machine has are predicted by Amdahl's law.
"""

import json
import os
import sys
from collections.abc import Mapping
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from keras_lstm_dssm.benchmarks.click_data import whole_batches
from keras_lstm_dssm.benchmarks.measurement import (
    interleaved_medians,
    results_of_process,
    seconds,
)
from keras_lstm_dssm.benchmarks.towers import OwnTowers
from keras_lstm_dssm.data import ClickLog, open_log
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.tensorflow_start import usable_cores

PREDICTED = (8, 16)
_WORKS = ("train", "encode")


def measure_cores(
    log: ClickLog, batch_size: int, steps: int, rounds: int
) -> dict[str, Any]:
    """Time training and encoding with 1, 2, 4 and more cores, up to all.

    Args:
        log: The clicks to train on.
        batch_size: Pairs in a training step, and titles encoded at once.
        steps: Training steps timed in each process, and batches of titles.
        rounds: Number of processes for each number of cores, in turn, whose
            medians are returned.

    Returns:
        `cores`: number of cores -> milliseconds of a training step, `train`,
        and of encoding a batch, `encode`. `train` and `encode`: the results
        of `predict`.

    Raises:
        InputError: The system cannot limit a process to some of its cores.
    """
    if not hasattr(os, "sched_setaffinity"):
        raise InputError(
            "this system cannot limit a process to some cores: use Linux for"
            " --suite=cores"
        )
    usable = usable_cores()
    counts = sorted({usable, *(2**n for n in range(usable.bit_length()))})
    arguments = (",".join(log.paths), str(batch_size), str(steps))

    def run(cores: int) -> np.ndarray:
        found = results_of_process(__name__, *arguments, str(cores))
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
    """Fit Amdahl's law, and predict how much faster more cores would be.

        time(n) = serial + parallel / n

    Args:
        times: Number of cores -> time of a piece of work, for two numbers or
            more.

    Returns:
        `serial_share`, the part of the time with one core that stays with
        any number; `speedup_8` and `speedup_16`, the time with one core
        divided by that with 8 and 16, as fitted. With one number of cores,
        nothing.

    Reference: Amdahl 1967, "Validity of the single processor approach to
        achieving large scale computing capabilities".

    Example:
    >>> predict({1: 100.0, 2: 60.0})["serial_share"]
    0.2
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
    """Limit this process to some cores; time a training step and encoding.

    TensorFlow must not have computed anything in this process.

    Returns:
        `train` and `encode`, see `measure_cores`.
    """
    usable = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, usable[:cores])
    towers, log = OwnTowers(), open_log(paths)
    step = towers.train(whole_batches(log, batch_size, steps), steps)
    titles = list(islice(log.documents(), batch_size * steps))
    towers.encode(titles, batch_size)
    encoding = seconds(partial(towers.encode, titles, batch_size))
    batches = -(-len(titles) // batch_size)
    return {"train": 1000 * step, "encode": 1000 * encoding / batches}


if __name__ == "__main__":
    print(json.dumps(measure_on(sys.argv[1], *map(int, sys.argv[2:]))))
