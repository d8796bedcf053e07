"""The suite `profile`: time of a training step, by operation and by size."""

import collections
import itertools
import tempfile
from collections.abc import Iterable
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import tensorflow as tf

from keras_lstm_dssm.benchmarks import keras_towers
from keras_lstm_dssm.benchmarks.click_data import whole_batches
from keras_lstm_dssm.benchmarks.measurement import (
    WARM_STEPS,
    fit_seconds,
    interleaved_medians,
)
from keras_lstm_dssm.benchmarks.towers import new_model
from keras_lstm_dssm.data import ClickLog

CELL_COUNTS = (48, 96, 192, 384)
TITLE_WORDS = (3, 6, 12, 24)
BATCH_FACTORS = (0.25, 0.5, 1, 2, 4)

# Kinds of operations, by the ends of the names of their types.
_KINDS = {
    "matrix products": ("MatMul",),
    "rows of tables and words": (
        "Gather", "GatherV2", "ScatterUpdate", "SegmentSum",
        "WithNumSegments", "TopKV2", "Pow",
    ),
    "loss and accuracy": (
        "SelectV2", "Max", "Exp", "Less", "Greater", "Equal", "L2Loss",
        "GatherNd", "TensorScatterSub",
    ),
    "gates": (
        "Sigmoid", "Tanh", "SigmoidGrad", "TanhGrad", "Mul", "AddV2", "Sub",
    ),
    "copies": (
        "ConcatV2", "Split", "Slice", "TensorListConcatV2", "Transpose",
        "Pack", "Tile",
    ),
    "words to trigrams": (
        "PyFuncStateless",  # `HashedTextCache`
        "UnicodeTranscode", "UnicodeDecode", "Unique", "CaseFoldUTF8",
        "NormalizeUTF8", "WhitespaceTokenizeWithOffsetsV2",
        "StaticRegexReplace", "StringSplitV2", "RegexReplace", "StringStrip",
    ),
}  # fmt: skip


def measure_profile(
    log: ClickLog, batch_size: int, steps: int, rounds: int
) -> dict[str, Any]:
    """Time training steps of several sizes, and the operations of one.

    Args:
        log: The clicks to train on.
        batch_size: Pairs in a training step.
        steps: Training steps in one measurement.
        rounds: Number of measurements, whose median is returned.

    Returns:
        `parts`, the milliseconds that each kind of operation takes in a
        step, summed over threads; and the milliseconds of a step by the
        number of `cells`, of `words` in a title, and by `batch_size`.
    """
    cells = keras_towers.CELLS
    batches = whole_batches(log, batch_size, steps)
    sizes = [int(factor * batch_size) for factor in BATCH_FACTORS]
    growth = {
        "cells": {n: (n, batches) for n in CELL_COUNTS},
        "words": {
            n: (cells, _titles_of_length(n, log, batch_size, steps))
            for n in TITLE_WORDS
        },
        "batch_size": {
            n: (cells, whole_batches(log, n, steps))
            for n in sizes
            if n <= log.count()
        },
    }
    step_seconds = interleaved_medians(
        {
            f"{axis} {value}": partial(
                fit_seconds, new_model(cells), data, steps
            )
            for axis, points in growth.items()
            for value, (cells, data) in points.items()
        },
        rounds,
    )
    return {
        "parts": _parts(batches, steps),
        **{
            axis: {
                str(value): 1000 * step_seconds[f"{axis} {value}"]
                for value in points
            }
            for axis, points in growth.items()
        },
    }


def _titles_of_length(
    words: int, log: ClickLog, batch_size: int, steps: int
) -> tf.data.Dataset:
    """Return batches whose titles have the same number of words."""
    count = batch_size * (steps + WARM_STEPS)
    pairs = list(islice(itertools.cycle(log), count))
    stream = itertools.cycle(
        [word for pair in pairs for word in pair.document.split()]
    )
    titles = [" ".join(islice(stream, words)) for _ in pairs]
    columns = [pair.query for pair in pairs], titles
    return tf.data.Dataset.from_tensor_slices(columns).batch(batch_size)


def _parts(batches: tf.data.Dataset, steps: int) -> dict[str, float]:
    """Profile the milliseconds of each kind of operation in a step."""
    model = new_model(keras_towers.CELLS)
    fit_seconds(model, batches, steps)  # the texts are cached then
    parts: dict[str, float] = collections.defaultdict(float)
    with tempfile.TemporaryDirectory() as folder:
        with tf.profiler.experimental.Profile(folder):
            model.fit(batches, steps_per_epoch=steps, shuffle=False, verbose=0)
        for operation, milliseconds in _operations(folder):
            kind = next(
                (k for k, ends in _KINDS.items() if operation.endswith(ends)),
                "other",
            )
            parts[kind] += milliseconds / steps
    return dict(sorted(parts.items(), key=lambda item: -item[1]))


def _operations(folder: str) -> Iterable[tuple[str, float]]:
    """Yield type and milliseconds of each operation in a profile."""
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    space = xplane_pb2.XSpace()
    (file,) = Path(folder).rglob("*.xplane.pb")
    space.ParseFromString(file.read_bytes())
    for plane in space.planes:
        for line in plane.lines:
            for event in line.events:
                name = plane.event_metadata[event.metadata_id].name
                # Events that are not operations have no type after the name.
                if "::" not in name and ":" in name and " " not in name:
                    yield name.rsplit(":", 1)[1], event.duration_ps / 1e9
