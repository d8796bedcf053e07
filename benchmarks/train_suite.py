"""Training: pairs a second, from strings to updated weights."""

from functools import partial
from typing import Any

from keras_lstm_dssm.benchmarks.batches import whole_batches
from keras_lstm_dssm.benchmarks.measure import interleaved
from keras_lstm_dssm.benchmarks.own_towers import OwnTowers
from keras_lstm_dssm.benchmarks.peers import compared, new_peers
from keras_lstm_dssm.data import ClickLog

_COUNTED_BATCHES = 8


def measure_training(
    log: ClickLog,
    machine: dict[str, Any],
    batch_size: int,
    steps: int,
    rounds: int,
) -> dict[str, Any]:
    """Times training steps of ours and of the peers on the same clicks.

    Args:
        log: The clicks.
        machine: From `describe_machine`, for the limit.
        batch_size: Pairs a step.
        steps: Steps of one measurement.
        rounds: Measurements, of which the median counts.

    Returns:
        See `compared`, in pairs a second, and `limit_fraction`: the time
        that the step's own work would take at the machine's rates (`limit`)
        by the time that it takes.
    """
    batches = whole_batches(log, batch_size, steps)
    own = OwnTowers()
    times = interleaved(
        {
            name: partial(towers.train, batches, steps)
            for name, towers in {"ours": own, **new_peers()}.items()
        },
        rounds,
    )
    limits = [
        own.work(*pair).seconds(machine["gemm_flops"], machine["copy_bytes"])
        for pair in batches.take(_COUNTED_BATCHES)
    ]
    result = compared(
        {name: batch_size / taken for name, taken in times.items()},
        "pairs_per_second",
    )
    limit = sum(limits) / len(limits)
    return {**result, "limit_fraction": limit / times["ours"]}
