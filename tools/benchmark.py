"""Measure the speed of training, encoding and serving, and how it scales.

Example:
  lstm-dssm-benchmark --suite=train,encode --data=clicks.tsv.gz --json=out.json

Suites, several separated by commas, or `all`:
  train   pairs/s, from strings to updated weights
  encode  titles/s, from strings to vectors
  serve   milliseconds for one query, in process and over gRPC
  load    many clients of lstm-dssm-serve, over gRPC and HTTP, while versions
          are swapped, and one client of each kind beside servers that always
          send the same reply
  batch   milliseconds for a request of 1 to 512 queries
  retriever  latency, memory and recall of a retriever of many titles
  profile milliseconds of each kind of operation in a training step, and of
          the step by number of cells, words and pairs in a batch
  scale   cost of a pair, memory, and time to the first training step, on
          synthetic logs
  matching  triples/s of pair scorers, from strings to updated weights, and
          milliseconds to score 1,000 candidates of one query
  documents  documents/s and sentences/s of KeyVec, from strings to updated
          weights and from strings to vectors, and the cost of a sentence in
          documents of 8 to 1,000 sentences
In `train` and `encode`, the same towers in stock Keras and, where it is
installed, in PyTorch are measured in turn with those of this package; so are
the pair scorers of `matching` and the KeyVec of `documents` in PyTorch.
`matching` reads the judged lists of --data, or if they have none, mines
negatives for its clicks. Results are medians. Run it on an idle machine; its
load is printed first.
"""

import sys
import tempfile
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

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
    is_collection,
    open_collection,
    open_documents,
    open_log,
)
from keras_lstm_dssm.data.open_data import API, API_DOCUMENTS
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.tools.program import definers, new_flags, program

DOCUMENTS = "documents"
SUITES = (
    "train", "encode", "serve", "load", "batch", "retriever", "profile",
    "scale", "matching", DOCUMENTS,
)  # fmt: skip

FLAGS = new_flags()
define = definers(FLAGS)
define.list("suite", ["train"], "Suites to run, or `all`.")
define.string(
    "data",
    None,
    "`api` (the default), `api_sentences`, a folder in BEIR's format, or click "
    "files. If `documents` is the only suite: `api_documents` (the default) or "
    "a folder of documents; beside other suites it reads `api_documents`.",
)
define.integer(
    "batch_size", 1024, "Pairs in a training step; texts encoded at once.", 2
)
define.integer("triples", 128, "Triples in a training step of `matching`.", 1)
define.integer(
    "documents", 32, "Documents in a training step of `documents`.", 1
)
define.integer("steps", 30, "Training steps in one measurement.", 1)
define.integer("rounds", 5, "Measurements, whose median is printed.", 1)
define.integer("titles", 20_480, "Largest number of titles to encode.", 1)
define.integer("queries", 500, "Single queries in one measurement.", 1)
define.list("clients", ["8", "64"], "Numbers of concurrent clients in `load`.")
define.float(
    "seconds", 60.0, "Seconds of requests for each number of clients.", 0.1
)
define.float(
    "swap_seconds", 5.0,
    "Seconds between the new versions published in `load`.", 0.1,
)  # fmt: skip
define.integer(
    "titles_in_index", 1_000_000, "Number of titles in `retriever`.", 1
)
define.list(
    "pairs", ["10000", "100000", "1000000", "10000000"],
    "Sizes of the logs in `scale`; ten million pairs take 0.8 GB on disk.",
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
        ),
        "batch": lambda: measure_batches(_queries(log), _titles(log), rounds),
        "retriever": lambda: measure_retriever(
            log, FLAGS.titles_in_index, FLAGS.queries, rounds
        ),
        "profile": lambda: measure_profile(log, *effort),
        "scale": lambda: measure_scale(_numbers("pairs"), *effort),
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
        if collection.judged_negatives():
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


run = program(main, FLAGS, __doc__)

if __name__ == "__main__":
    sys.exit(run())
