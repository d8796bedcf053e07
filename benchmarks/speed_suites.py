"""The suites `train` and `encode`: speed of our towers and of peers."""

import tempfile
from collections.abc import Callable
from functools import partial
from typing import Any

from keras_lstm_dssm.benchmarks.click_data import whole_batches
from keras_lstm_dssm.benchmarks.measurement import interleaved_medians, seconds
from keras_lstm_dssm.benchmarks.towers import OwnTowers, compared, new_peers
from keras_lstm_dssm.data import ClickLog
from keras_lstm_dssm.export.export_models import export_model
from keras_lstm_dssm.serving.saved_models import SavedEncoder

_COUNTED_BATCHES = 8


def measure_training(
    log: ClickLog,
    machine: dict[str, Any],
    batch_size: int,
    steps: int,
    rounds: int,
) -> dict[str, Any]:
    """Time training steps of our towers and of peers on the same clicks.

    Args:
        log: The clicks to train on.
        machine: The result of `describe_machine`.
        batch_size: Pairs in a training step.
        steps: Training steps in one measurement.
        rounds: Number of measurements, whose median is returned.

    Returns:
        The result of `compared`, in pairs a second, and `limit_fraction`:
        the time that the work of a step (`step_work`) would take at the
        machine's rates, divided by the time that a step takes.
    """
    batches = whole_batches(log, batch_size, steps)
    ours = OwnTowers()
    step_seconds = interleaved_medians(
        {
            name: partial(towers.train, batches, steps)
            for name, towers in {"ours": ours, **new_peers()}.items()
        },
        rounds,
    )
    limits = [
        ours.work(*pair).seconds(machine["gemm_flops"], machine["copy_bytes"])
        for pair in batches.take(_COUNTED_BATCHES)
    ]
    result = compared(
        {name: batch_size / each for name, each in step_seconds.items()},
        "pairs_per_second",
    )
    limit = sum(limits) / len(limits)
    return {**result, "limit_fraction": limit / step_seconds["ours"]}


def measure_encoding(
    titles: list[str], batch_size: int, rounds: int
) -> dict[str, Any]:
    """Time the encoding of distinct titles by our towers and by peers.

    The exported encoder is measured too. The PyTorch and JAX peers hash the
    titles before their clocks start.

    Args:
        titles: The distinct titles to encode.
        batch_size: Texts encoded at once.
        rounds: Number of measurements, whose median is returned.

    Returns:
        The result of `compared`, in titles a second.
    """
    ours = OwnTowers()
    encodings: dict[str, Callable[[], Any]] = {}
    for name, towers in {"ours": ours, **new_peers()}.items():
        if hasattr(towers, "prepare"):
            hashed = towers.prepare(titles, batch_size)
            encodings[name] = partial(towers.encode, hashed)
        else:
            encodings[name] = partial(towers.encode, titles, batch_size)
    with tempfile.TemporaryDirectory() as folder:
        export_model(ours.model.document_encoder, folder)
        exported = SavedEncoder(folder)
        encodings["exported"] = partial(exported.encode, titles, batch_size)
        medians = interleaved_medians(
            {name: partial(seconds, run) for name, run in encodings.items()},
            rounds,
        )
    rates = {name: len(titles) / each for name, each in medians.items()}
    return compared(rates, "titles_per_second")
