"""Measures the speed of training, encoding and serving.

Example:
  make benchmark ARGS='--suite=train,encode --data=clicks.tsv --json=out.json'

Suites (--suite takes several, separated by commas, or `all`):
  train   pairs/s of two towers, from strings to updated weights
  encode  titles/s of two towers, from strings to vectors
  serve   milliseconds for one query, in process and over gRPC
  load    latency of many clients of lstm-dssm-serve, half over gRPC and half
          over HTTP, while new versions are published; latency of one gRPC
          client and of one HTTP client, with lstm-dssm-serve and with a server
          that always sends the same reply
  batch   milliseconds for a request of 1 to 512 queries
  retriever  latency, memory and recall of a retriever of many titles
  profile milliseconds of each kind of operation in a training step, and of
          steps with different numbers of cells, words and pairs
  matching  triples/s of pair scorers, from strings to updated weights, and
          milliseconds to score 1,000 candidates of one query
  documents  documents/s and sentences/s of KeyVec, from strings to updated
          weights and from strings to vectors; microseconds for a sentence
          in documents of 8 to 1,000 sentences
  prepare  seconds of lstm-dssm-prepare for a random log, compared with one
          statement of DuckDB that reads and joins the same files
`train` and `encode` compare the towers of this package with the same towers in
stock Keras and, if installed, in PyTorch and JAX. `matching` and `documents`
compare their models with the same models in PyTorch, if it is installed. These
four suites run each model in a separate process, with the number of threads and
the memory allocator that are fastest for the model. `environments` in the
results names both. `matching` reads the judged lists of --data, or the clicks
if no training list has a negative. Results are medians. Use an idle machine;
the load of the machine is printed first.
"""

import importlib
import tempfile
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from absl import app

from lstm_dssm_programs import load_package
from keras_lstm_dssm.command_line import Program
from keras_lstm_dssm.errors import InputError

if TYPE_CHECKING:
    from keras_lstm_dssm.data import ClickLog, Triples

program = Program(__doc__)
FLAGS = program.flags
program.list("suite", ["train"], "Suites to run, or `all`.")
program.string(
    "data",
    None,
    "`api` (the default), `api_sentences`, a folder in BEIR's format, or click "
    "files. With --suite=documents or --suite=documents,prepare: "
    "`api_documents` (the default) or another folder of documents. Together "
    "with other suites, `documents` always reads `api_documents`.",
)
program.integer(
    "batch_size",
    1024,
    "Number of pairs in a training step, and of texts encoded at once.",
    2,
)
program.integer("triples", 128, "Triples in a training step of `matching`.", 1)
program.integer(
    "documents", 32, "Documents in a training step of `documents`.", 1
)
program.integer("steps", 30, "Training steps in one measurement.", 1)
program.integer("rounds", 5, "Number of measurements; results are medians.", 1)
program.integer("titles", 20_480, "Largest number of titles to encode.", 1)
program.integer("queries", 500, "Largest number of queries to send.", 1)
program.list("clients", ["8", "64"], "Numbers of concurrent clients in `load`.")
program.float(
    "seconds", 60.0, "Seconds of `load` for each number of clients.", 0.1
)
program.float(
    "swap_seconds", 5.0,
    "Seconds between the new versions published in `load`.", 0.1,
)  # fmt: skip
program.integer(
    "clicks_in_log", 1_000_000, "Number of clicks in `prepare`.", 1000
)
program.integer(
    "titles_in_index", 1_000_000, "Number of titles in `retriever`.", 1
)

DOCUMENTS, PREPARE = "documents", "prepare"
SUITES = {
    "train": "towers.measure_training",
    "encode": "towers.measure_encoding",
    "serve": "serving.measure_serving",
    "load": "serving.measure_load",
    "batch": "serving.measure_batches",
    "retriever": "retriever.measure_retriever",
    "profile": "towers.measure_profile",
    "matching": "word_models.measure_matching",
    DOCUMENTS: "word_models.measure_documents",
    PREPARE: "prepare.measure_prepare",
}

_SUITE_FLAGS = {
    "load": ("clients", "seconds", "swap_seconds"),
    "retriever": ("titles_in_index",),
    "matching": ("triples",),
    DOCUMENTS: ("documents",),
    PREPARE: ("clicks_in_log",),
}
"""Name of a suite -> flags that no other suite reads."""


@program.main
def main(_: list[str]) -> dict[str, Any]:
    """Runs the suites; prints and returns their results."""
    load_package()
    from benchmarks.machine import describe_machine
    from keras_lstm_dssm.data import open_documents, open_log
    from keras_lstm_dssm.data.sources import API, API_DOCUMENTS

    suites = list(SUITES) if FLAGS.suite == ["all"] else FLAGS.suite
    unknown = set(suites) - set(SUITES)
    if unknown or not suites:
        raise InputError(
            f"--suite={','.join(FLAGS.suite)}: expected all, or some of "
            f"{', '.join(SUITES)}"
        )
    clients = _clients()  # raises for wrong numbers
    for suite, names in _SUITE_FLAGS.items():
        if suite not in suites:
            program.check_unused(names, f"is for --suite={suite}: leave it out")
    reads_clicks = bool(set(suites) - {DOCUMENTS, PREPARE})
    arguments: dict[str, Callable[[], tuple[Any, ...]]] = {
        PREPARE: lambda: (FLAGS.clicks_in_log, FLAGS.rounds)
    }
    with tempfile.TemporaryDirectory() as folder:
        if DOCUMENTS in suites:
            data = None if reads_clicks else FLAGS.data
            documents = open_documents(data or API_DOCUMENTS)
            arguments[DOCUMENTS] = lambda: (
                documents, FLAGS.documents, FLAGS.steps, FLAGS.rounds
            )  # fmt: skip
        if reads_clicks:
            copy = Path(folder, "clicks.tsv")
            log = open_log(FLAGS.data or API, write_to=copy)
        print("machine", flush=True)
        machine = describe_machine()
        _print_results(machine)
        if reads_clicks:
            arguments |= _click_suites(log, machine, clients)
        results: dict[str, Any] = {"machine": machine}
        for suite in suites:
            print(suite, flush=True)  # a suite may take minutes
            module, function = SUITES[suite].split(".")
            measure = getattr(
                importlib.import_module(f"benchmarks.{module}"), function
            )
            results[suite] = measure(*arguments[suite]())
            _print_results(results[suite])
    return results


def _click_suites(
    log: "ClickLog", machine: dict[str, Any], clients: list[int]
) -> dict[str, Callable[[], tuple[Any, ...]]]:
    """Returns suite -> function that makes the arguments of the suite."""
    batch_size, rounds = FLAGS.batch_size, FLAGS.rounds
    effort = batch_size, FLAGS.steps, rounds
    return {
        "train": lambda: (log, machine, *effort),
        "encode": lambda: (_titles(log), batch_size, rounds),
        "serve": lambda: (_queries(log), rounds),
        "load": lambda: (
            _queries(log), clients, FLAGS.seconds, FLAGS.swap_seconds, rounds
        ),
        "batch": lambda: (_queries(log), _titles(log), rounds),
        "retriever": lambda: (
            log, FLAGS.titles_in_index, FLAGS.queries, rounds
        ),
        "profile": lambda: (log, *effort),
        "matching": lambda: (_triples(log), FLAGS.triples, FLAGS.steps, rounds),
    }  # fmt: skip


def _queries(log: "ClickLog") -> list[str]:
    distinct = dict.fromkeys(pair.query for pair in log)
    return list(islice(distinct, FLAGS.queries))


def _titles(log: "ClickLog") -> list[str]:
    return list(islice(log.documents(), FLAGS.titles))


def _triples(log: "ClickLog") -> "Triples":
    """Returns triples from judged lists in --data or, without them, clicks."""
    from keras_lstm_dssm.data import Triples, open_collection
    from keras_lstm_dssm.data.sources import API, is_collection

    data = FLAGS.data or API
    if is_collection(data):
        collection = open_collection(data)
        if collection.has_judged_negatives():
            return Triples.from_collection(collection)
    return Triples.from_clicks(log)


def _clients() -> list[int]:
    texts = FLAGS.clients
    if not texts or not all(text.isdecimal() and int(text) for text in texts):
        raise InputError(
            f"--clients={','.join(texts)}: expected numbers separated by "
            "commas, such as 8,64"
        )
    return [int(text) for text in texts]


def _print_results(results: dict[str, Any]) -> None:
    for key, value in results.items():
        print(f"  {key:20} {_format_value(value)}", flush=True)


def _format_value(value: Any) -> str:
    if isinstance(value, dict):
        return "  ".join(f"{k} {_format_value(v)}" for k, v in value.items())
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return str(value)


if __name__ == "__main__":
    app.run(main, flags_parser=program.parse)
