r"""Predicts what many clicks, titles and queries need, from measured figures.

    python -m benchmarks.capacity \
        --clicks_a_day=1e9 --titles=1e8 --queries_a_second=1e4

The model has four parts, each a formula of figures that are given as flags:

* training: a worker computes its pairs, then n workers wait for
  `collectives` collectives, of n - 1 messages each, and for the bytes that a
  worker sends in a step;
* encoding: titles divided by titles per core and second, and by the share
  that is left when several processes run;
* memory: bytes of a vector, of the graph of an HNSW index, and of an id;
* search: an approximate search takes a measured time for each query, that
  grows with the logarithm of the titles.
"""

import math
import sys
from typing import Any, NamedTuple

from keras_lstm_dssm.command_line import Program

program = Program(__doc__)
FLAGS = program.flags
program.float("clicks_a_day", 1e9, "Clicks to train on every day.")
program.float("training_hours", 6.0, "Hours in which they are trained on.")
program.float("pairs_a_second", 11523.0, "Pairs of one worker alone.")
program.integer("rows", 2048, "Pairs of a worker in a training step.", 1)
program.integer("collectives", 4, "Collectives in a training step.", 0)
program.float("latency", 2e-4, "Seconds of a message between two workers.")
program.float("bandwidth", 1.25e9, "Bytes a second from a worker to the next.")
program.float("step_bytes", 30e6, "Bytes that a worker sends in a step.")
program.float("titles", 1e8, "Titles in the index.")
program.float("encoding_hours", 1.0, "Hours in which all are encoded.")
program.float("titles_a_second", 26000.0, "Titles that a core encodes.")
program.float("parallel", 0.9, "Share of it when many processes run.")
program.integer("dimension", 96, "Width of a vector.", 1)
program.float("queries_a_second", 1e4, "Queries at the busiest time.")
program.float("encode_ms", 0.53, "Milliseconds of a core to encode a query.")
program.float(
    "index_ms", 0.47, "Milliseconds of a core for a query in an index."
)
program.float("index_titles", 5e4, "Titles of the index that was measured.")
program.integer("cores", 32, "Cores of a server.", 1)
program.float("memory", 128e9, "Bytes of a server's memory.")
program.float("use", 0.5, "Share of cores and of memory to plan with.")

_ID_BYTES = 13
_LINKS = 32  # HNSW32


class Training(NamedTuple):
    """A training of n workers."""

    workers: int  # number of workers
    seconds: float  # seconds of a training step
    ideal: float  # share of n times the throughput of one worker
    sent: float  # bytes a second that each worker sends


def training(
    workers: int,
    rows: int,
    pairs_a_second: float,
    latency: float,
    bandwidth: float,
    step_bytes: float,
    collectives: int = 4,
) -> Training:
    """Predicts the training step of several workers."""
    compute = rows / pairs_a_second
    network, sent = 0.0, 0.0
    if workers > 1:
        network = collectives * (workers - 1) * latency
        network += step_bytes / bandwidth
        sent = step_bytes / (compute + network)
    seconds = compute + network
    return Training(workers, seconds, compute / seconds, sent)


def workers_for(pairs_a_second: float, **figures: Any) -> Training | None:
    """Finds the fewest workers that train so many pairs a second, or `None`."""
    one = figures.pop("one")
    for workers in range(1, 4097):
        step = training(workers, pairs_a_second=one, **figures)
        if workers * one * step.ideal >= pairs_a_second:
            return step
    return None


def title_bytes(dimension: int, kind: str) -> float:
    """Predicts the bytes of a title in memory, with its id.

    `kind` is `float32` or `int8`, of a retriever, or `HNSW32` or `HNSW32_SQ8`,
    of an index without ids.
    """
    links = 4 * 2 * _LINKS + 4  # two for each title and link; the ends of lists
    return {
        "float32": 4 * dimension + _ID_BYTES,
        "int8": dimension + 4 + _ID_BYTES,
        "HNSW32": 4 * dimension + links,
        "HNSW32_SQ8": dimension + links,
    }[kind]


def main(_: list[str]) -> dict[str, Any]:
    """Prints and returns what is needed."""
    needed = FLAGS.clicks_a_day / (3600 * FLAGS.training_hours)
    step = workers_for(
        needed,
        one=FLAGS.pairs_a_second,
        rows=FLAGS.rows,
        latency=FLAGS.latency,
        bandwidth=FLAGS.bandwidth,
        step_bytes=FLAGS.step_bytes,
        collectives=FLAGS.collectives,
    )
    encoding_cores = FLAGS.titles / (
        3600 * FLAGS.encoding_hours * FLAGS.titles_a_second * FLAGS.parallel
    )
    index = FLAGS.titles * title_bytes(FLAGS.dimension, "HNSW32_SQ8")
    shards = math.ceil(index / (FLAGS.memory * FLAGS.use))
    # A query visits every shard, each of which has fewer titles.
    in_shard = FLAGS.titles / shards
    growth = math.log(in_shard) / math.log(FLAGS.index_titles)
    a_core = 1000 * FLAGS.use
    index_cores = FLAGS.queries_a_second * FLAGS.index_ms * growth / a_core
    encoder_cores = FLAGS.queries_a_second * FLAGS.encode_ms / a_core
    results: dict[str, Any] = {
        "training: pairs a second": needed,
        "training: workers": step.workers if step else math.inf,
        "training: share of the ideal": step.ideal if step else 0.0,
        "training: each sends, MB/s": (step.sent if step else 0.0) / 1e6,
        "encoding: cores": encoding_cores,
        "vectors, float32, GB": 4e-9 * FLAGS.dimension * FLAGS.titles,
        "index, HNSW32_SQ8, GB": index / 1e9,
        "index: shards": shards,
        "index: servers": shards * math.ceil(index_cores / FLAGS.cores),
        "query encoder: servers": math.ceil(encoder_cores / FLAGS.cores),
    }
    for name, value in results.items():
        print(f"{name:32} {value:12,.6g}")
    return results


run = program.main(main)

if __name__ == "__main__":
    sys.exit(run())
