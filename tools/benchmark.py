"""Measures the speed of training, encoding and serving.

This is the work of the program lstm-dssm-benchmark. Its help and its
flags are in `tools/flags/benchmark.py`, which is imported first and without
TensorFlow.
"""

import sys
import tempfile
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

from keras_lstm_dssm.benchmarks.cores_suite import measure_cores
from keras_lstm_dssm.benchmarks.documents_suite import measure_documents
from keras_lstm_dssm.benchmarks.load_suite import measure_load
from keras_lstm_dssm.benchmarks.machine import describe_machine
from keras_lstm_dssm.benchmarks.matching_suite import measure_matching
from keras_lstm_dssm.benchmarks.profile_suite import measure_profile
from keras_lstm_dssm.benchmarks.request_suites import (
    measure_batches,
    measure_serving,
)
from keras_lstm_dssm.benchmarks.retriever_suite import measure_retriever
from keras_lstm_dssm.benchmarks.scale_suite import measure_scale
from keras_lstm_dssm.benchmarks.speed_suites import (
    measure_encoding,
    measure_training,
)
from keras_lstm_dssm.data import (
    ClickLog,
    Triples,
    open_collection,
    open_documents,
    open_log,
)
from keras_lstm_dssm.data.sources import API, API_DOCUMENTS, is_collection
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.tools.flags.benchmark import COMMAND_LINE, FLAGS

DOCUMENTS = "documents"
SUITES = (
    "train", "encode", "serve", "load", "batch", "retriever", "profile",
    "scale", "cores", "matching", DOCUMENTS,
)  # fmt: skip


def main(_: list[str]) -> dict[str, Any]:
    """Run the suites; print and return their results."""
    suites = SUITES if FLAGS.suite == ["all"] else FLAGS.suite
    unknown = set(suites) - set(SUITES)
    if unknown or not suites:
        raise InputError(
            f"--suite={','.join(FLAGS.suite)}: expected all, or some of "
            f"{', '.join(SUITES)}"
        )
    _numbers("pairs")  # raises for wrong numbers before the work
    _numbers("clients")
    only_documents = set(suites) == {DOCUMENTS}
    suite_runs: dict[str, Callable[[], dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        if DOCUMENTS in suites:
            given = FLAGS.data if only_documents else None
            documents = open_documents(given or API_DOCUMENTS)
            suite_runs[DOCUMENTS] = lambda: measure_documents(
                documents, FLAGS.documents, FLAGS.steps, FLAGS.rounds
            )
        if not only_documents:
            copy = Path(folder, "clicks.tsv")
            log = open_log(FLAGS.data or API, write_to=copy)
        print("machine", flush=True)
        machine = describe_machine()
        _show(machine)
        if not only_documents:
            suite_runs |= _click_suites(log, machine)
        results: dict[str, Any] = {"machine": machine}
        for suite in suites:
            print(suite, flush=True)  # some take minutes
            results[suite] = suite_runs[suite]()
            _show(results[suite])
    return results


def _click_suites(
    log: ClickLog, machine: dict[str, Any]
) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the suites that read clicks, by name."""
    batch_size, rounds = FLAGS.batch_size, FLAGS.rounds
    effort = batch_size, FLAGS.steps, rounds
    return {
        "train": lambda: measure_training(log, machine, *effort),
        "encode": lambda: measure_encoding(_titles(log), batch_size, rounds),
        "serve": lambda: measure_serving(_queries(log), rounds),
        "load": lambda: measure_load(
            _queries(log),
            _numbers("clients"),
            FLAGS.seconds,
            FLAGS.swap_seconds,
            rounds,
            FLAGS.hostile,
        ),
        "batch": lambda: measure_batches(_queries(log), _titles(log), rounds),
        "retriever": lambda: measure_retriever(
            log, FLAGS.titles_in_index, FLAGS.queries, rounds
        ),
        "profile": lambda: measure_profile(log, *effort),
        "scale": lambda: measure_scale(
            _numbers("pairs"), *effort, FLAGS.preset, FLAGS.mine_clusters
        ),
        "cores": lambda: measure_cores(log, *effort),
        "matching": lambda: measure_matching(
            _triples(log), FLAGS.triples, FLAGS.steps, rounds
        ),
    }


def _queries(log: ClickLog) -> list[str]:
    distinct = dict.fromkeys(pair.query for pair in log)
    return list(islice(distinct, FLAGS.queries))


def _titles(log: ClickLog) -> list[str]:
    return list(islice(log.documents(), FLAGS.titles))


def _triples(log: ClickLog) -> Triples:
    data = FLAGS.data or API
    if is_collection(data):
        collection = open_collection(data)
        if collection.has_judged_negatives():
            return Triples.from_collection(collection)
    return Triples.from_clicks(log)


def _numbers(name: str) -> list[int]:
    texts = FLAGS[name].value
    if not texts or not all(text.isdecimal() and int(text) for text in texts):
        raise InputError(
            f"--{name}={','.join(texts)}: expected numbers separated by "
            f"commas, such as {','.join(FLAGS[name].default)}"
        )
    return [int(text) for text in texts]


def _show(results: dict[str, Any]) -> None:
    """Print one line for each key."""
    for key, value in results.items():
        print(f"  {key:20} {_text(value)}", flush=True)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "  ".join(f"{k} {_text(v)}" for k, v in value.items())
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return str(value)


run = COMMAND_LINE.program(main)

if __name__ == "__main__":
    sys.exit(run())
