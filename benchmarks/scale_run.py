"""One log in one fresh process: `python -m ... LOG BATCH_SIZE STEPS`.

A process of its own, because the peak of memory is the process's.
"""

import json
import sys
from typing import Any

from keras_lstm_dssm.benchmarks.batches import whole_batches
from keras_lstm_dssm.benchmarks.measure import memory_megabytes, seconds
from keras_lstm_dssm.benchmarks.own_towers import OwnTowers
from keras_lstm_dssm.data import ClickLog


def measure_log(path: str, batch_size: int, steps: int) -> dict[str, Any]:
    """Reads, checks and counts a log, then times training steps on it.

    Args:
        path: A click file.
        batch_size: Pairs a step.
        steps: Steps timed.

    Returns:
        `count_seconds`, `step_microseconds_per_pair`, and
        `microseconds_per_pair`, the steps' cost and the count's share of one
        pass over the log; `peak_gigabytes` of resident memory.
    """
    log = ClickLog(path)
    counting = seconds(log.count)
    pairs = log.count()
    batches = whole_batches(log, batch_size, steps)
    step = 1e6 * OwnTowers().train(batches, steps) / batch_size
    return {
        "count_seconds": counting,
        "step_microseconds_per_pair": step,
        "microseconds_per_pair": step + 1e6 * counting / pairs,
        "peak_gigabytes": memory_megabytes("VmHWM") / 1000,
    }


if __name__ == "__main__":
    path, batch_size, steps = sys.argv[1:]
    print(json.dumps(measure_log(path, int(batch_size), int(steps))))
