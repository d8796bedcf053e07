"""The suites `train`, `encode` and `profile` measure two towers.

The towers of this package and the peers in other libraries run in separate
processes, with the protocol of `benchmarks.peers`.
"""

import collections
import itertools
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import tensorflow as tf

import keras_lstm_dssm as dssm
from benchmarks.clocks import WARM_STEPS, interleaved_medians, wall_and_cpu
from benchmarks.machine import step_work
from benchmarks.measure import (
    Contender,
    compare,
    fit_seconds,
    fit_wall_and_cpu,
    full_batches,
    has_library,
    ours,
    peer,
)
from benchmarks.peers import Texts, as_batch, keras_towers, write_input
from keras_lstm_dssm.data import ClickLog, training_batches
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.export_models import export_model
from keras_lstm_dssm.layers import LetterTrigrams
from keras_lstm_dssm.serving.saved_models import SavedEncoder

CELLS = 96
KERAS_FORMS = {
    "keras_segments": keras_towers.SegmentTower,
    "keras_padded": keras_towers.PaddedTower,
}
"""Result -> tower. The result `keras` is the faster of these two results."""
TORCH_FORMS = {
    "torch_one_thread": "one thread",
    "torch_all_threads": "all threads",
}
"""Result -> key of `THREADS` in `benchmarks.measure`.

The result `torch` is the faster of these two results.
"""

# Number of batches whose operations and bytes are counted. The counts give the
# time of a step at the machine's full speed.
_COUNTED_BATCHES = 8

CELL_COUNTS = (48, 96, 192, 384)
TITLE_WORDS = (3, 6, 12, 24)
BATCH_FACTORS = (0.25, 0.5, 1, 2, 4)

HASHING = LetterTrigrams()

# Kind of operations -> suffixes of operation types in TensorFlow.
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
        "PyFuncStateless",  # calls `HashedTextCache`
        "UnicodeTranscode", "UnicodeDecode", "Unique", "CaseFoldUTF8",
        "NormalizeUTF8", "WhitespaceTokenizeWithOffsetsV2",
        "StaticRegexReplace", "StringSplitV2", "RegexReplace", "StringStrip",
    ),
}  # fmt: skip


def new_model(cells: int | None = None) -> dssm.TwoTower:
    """Returns a compiled model of two towers, by default with `CELLS` cells."""
    recipe = dssm.PRESETS["lstm_96"].replace(
        negatives="in_batch", encoder_config={"cells": cells or CELLS}
    )
    model = dssm.build_model(recipe)
    model.compile(dssm.NesterovMomentum(0.1), dssm.CosineSoftmax(10.0))
    return model


def measure_training(
    log: ClickLog,
    machine: dict[str, Any],
    batch_size: int,
    steps: int,
    rounds: int,
) -> dict[str, Any]:
    """Times training steps of our towers and of peers on the same clicks."""
    batches = batches_of(log, batch_size, steps)
    with tempfile.TemporaryDirectory() as folder:
        taken, environments = compare(
            contenders(Path(folder), log.paths, batches, [], batch_size, steps),
            "train",
            rounds,
        )
    model = new_model()
    cell = model.query_encoder.lstm.cell
    limits = [
        step_work(
            model.query_encoder.trigrams.distinct(query),
            model.document_encoder.trigrams.distinct(document),
            cell.units,
            len(cell.gates),
        ).seconds(machine["gemm_flops"], machine["copy_bytes"])
        for query, document in batches.take(_COUNTED_BATCHES)
    ]
    result = compared(
        {name: batch_size / wall for name, (wall, _) in taken.items()},
        "pairs_per_second",
    )
    limit = sum(limits) / len(limits)
    return {
        **result,
        "limit_fraction": limit / taken["ours"][0],
        "environments": environments,
    }


def measure_encoding(
    titles: list[str], batch_size: int, rounds: int
) -> dict[str, Any]:
    """Times how our towers, the exported encoder and peers encode titles."""
    with tempfile.TemporaryDirectory() as folder:
        encoders = contenders(Path(folder), [], [], titles, batch_size, 0)
        medians, environments = compare(encoders, "encode", rounds)
    rates = {name: len(titles) / wall for name, (wall, _) in medians.items()}
    return compared(rates, "titles_per_second") | {"environments": environments}


def contenders(
    folder: Path,
    paths: Sequence[str],
    batches: Iterable[tuple[tf.Tensor, tf.Tensor]],
    titles: Sequence[str],
    batch_size: int,
    steps: int,
) -> dict[str, Contender]:
    """Returns name -> contender, for our towers and the installed peers."""
    arguments = [*map(str, paths)], list(titles), batch_size, steps, CELLS
    result = {
        form: ours(folder, form, tower_works, form, *arguments)
        for form in ("ours", *["exported"] * bool(titles), *KERAS_FORMS)
    }
    with_torch, with_jax = has_library("torch"), has_library("jax")
    if with_torch or with_jax:
        write_input(
            folder,
            {"cells": CELLS, "trigrams": HASHING.size},
            train=(
                as_batch(*map(hash_texts, pair))
                for pair in islice(batches, WARM_STEPS + steps)
            ),
            encode=(
                as_batch(hash_texts(titles[start : start + batch_size]))
                for start in range(0, len(titles), batch_size)
            ),
        )
    if with_torch:
        for form, threads in TORCH_FORMS.items():
            result[form] = peer("torch_towers", folder, threads=[threads])
    if with_jax:
        result["jax"] = peer("jax_towers", folder)
    return result


def hash_texts(texts: tf.Tensor | Sequence[str]) -> Texts:
    """Hashes strings `(batch,)` for the peers in PyTorch and JAX."""
    ids = HASHING(tf.constant(texts))
    return Texts(
        ids.flat_values.numpy(),
        ids.values.row_lengths().numpy(),
        ids.row_lengths().numpy(),
    )


def tower_works(
    form: str,
    paths: Sequence[str],
    titles: list[str],
    batch_size: int,
    steps: int,
    cells: int,
) -> dict[str, Callable[[], Any]]:
    """Returns name -> task: `train` if there are `paths`, else `encode`."""
    train: Callable[..., Any]
    encode: Callable[..., Any]
    if form in KERAS_FORMS:
        towers = keras_towers.KerasTowers(KERAS_FORMS[form], cells)
        train, encode = towers.train, towers.encode
    else:
        model = new_model(cells)
        train = partial(fit_wall_and_cpu, model)
        encode = model.document_encoder.encode
    if form == "exported":
        with tempfile.TemporaryDirectory() as folder:
            export_model(model.document_encoder, folder)
            encode = SavedEncoder(folder).encode
    if paths:
        batches = batches_of(ClickLog(paths), batch_size, steps)
        return {"train": partial(train, batches, steps)}
    return {
        "encode": partial(wall_and_cpu, partial(encode, titles, batch_size))
    }


def compared(rates: Mapping[str, float], unit: str) -> dict[str, Any]:
    """Returns the rate of each model, and ratios.

    `ratio_NAME` is the rate `ours` divided by the rate of the peer NAME.
    `ratio_exported` is the rate of our exported encoder divided by `ours`.
    """
    rates = dict(rates)
    for library, names in (("keras", KERAS_FORMS), ("torch", TORCH_FORMS)):
        forms = [rates[name] for name in names if name in rates]
        if forms:
            rates[library] = max(forms)
    result: dict[str, Any] = {
        name: {unit: rate} for name, rate in rates.items()
    }
    for name, rate in rates.items():
        if name == "exported":
            result["ratio_exported"] = rate / rates["ours"]
        elif name != "ours":
            result[f"ratio_{name}"] = rates["ours"] / rate
    return result


def batches_of(log: ClickLog, batch_size: int, steps: int) -> tf.data.Dataset:
    """Streams a log as training does, in batches of equal size."""
    if log.count() < batch_size:
        raise InputError(
            f"{', '.join(log.paths)}: {log.count()} clicks, fewer than one "
            f"batch of {batch_size}; give a smaller --batch_size"
        )
    return full_batches(
        partial(training_batches, log), log.count(), batch_size, steps
    )


def measure_profile(
    log: ClickLog, batch_size: int, steps: int, rounds: int
) -> dict[str, Any]:
    """Times each kind of operation, and training steps, in milliseconds.

    Steps are timed for several numbers of cells, for several lengths of titles,
    and for several batch sizes.
    """
    batches = batches_of(log, batch_size, steps)
    sizes = [int(factor * batch_size) for factor in BATCH_FACTORS]
    growth = {
        "cells": {n: (n, batches) for n in CELL_COUNTS},
        "words": {
            n: (CELLS, _pairs_with_made_titles(n, log, batch_size, steps))
            for n in TITLE_WORDS
        },
        "batch_size": {
            n: (CELLS, batches_of(log, n, steps))
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
        "parts": _operation_kinds(batches, steps),
        **{
            axis: {
                str(value): 1000 * step_seconds[f"{axis} {value}"]
                for value in points
            }
            for axis, points in growth.items()
        },
    }


def _pairs_with_made_titles(
    words: int, log: ClickLog, batch_size: int, steps: int
) -> tf.data.Dataset:
    """Returns queries of the log with made-up titles of `words` words each."""
    count = batch_size * (steps + WARM_STEPS)
    pairs = list(islice(itertools.cycle(log), count))
    stream = itertools.cycle(
        [word for pair in pairs for word in pair.document.split()]
    )
    titles = [" ".join(islice(stream, words)) for _ in pairs]
    columns = [pair.query for pair in pairs], titles
    return tf.data.Dataset.from_tensor_slices(columns).batch(batch_size)


def _operation_kinds(batches: tf.data.Dataset, steps: int) -> dict[str, float]:
    model = new_model(CELLS)
    fit_seconds(model, batches, steps)  # fills the caches of texts
    by_kind: dict[str, float] = collections.defaultdict(float)
    with tempfile.TemporaryDirectory() as folder:
        with tf.profiler.experimental.Profile(folder):
            model.fit(batches, steps_per_epoch=steps, shuffle=False, verbose=0)
        for operation, milliseconds in _operations(folder):
            kind = next(
                (k for k, ends in _KINDS.items() if operation.endswith(ends)),
                "other",
            )
            by_kind[kind] += milliseconds / steps
    return dict(sorted(by_kind.items(), key=lambda item: -item[1]))


def _operations(folder: str) -> Iterable[tuple[str, float]]:
    """Yields the type and milliseconds of each operation in a profile."""
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    space = xplane_pb2.XSpace()
    (file,) = Path(folder).rglob("*.xplane.pb")
    space.ParseFromString(file.read_bytes())
    for plane in space.planes:
        for line in plane.lines:
            for event in line.events:
                name = plane.event_metadata[event.metadata_id].name
                # Only the name of an operation ends with a colon and a type.
                if "::" not in name and ":" in name and " " not in name:
                    yield name.rsplit(":", 1)[1], event.duration_ps / 1e9
