r"""Predicts the training steps of many workers from measured quantities.

    python -m keras_lstm_dssm.benchmarks.worker_model \
        --data=HOMEDEPOT --preset=lstm_96 --rows=2048 --step_seconds=1.5

Each worker computes its own rows, and so many machines train as many times
the pairs in a step. What grows with their number is modelled: the bytes of the
four collectives, in rings; the rows of the tables that any batch reads, which
each worker updates; and the matrix of its queries and all titles.
`worker_speed` measures the seconds, the latency and the bandwidth.
"""

import sys
from typing import Any, NamedTuple

from keras_lstm_dssm import PRESETS
from keras_lstm_dssm.command_line import Program
from keras_lstm_dssm.data import open_log, training_batches

program = Program(__doc__)
FLAGS = program.flags
program.string("data", "api", "The clicks, as for lstm-dssm-train.")
program.string("preset", "lstm_96", "The recipe of two towers.")
program.integer("rows", 2048, "Pairs of each worker in a batch.", 1)
program.list(
    "workers", ["1", "2", "8", "16", "32", "64"], "Numbers of workers."
)
program.float("step_seconds", 1.0, "Seconds of a step of one worker alone.")
program.float("latency", 1e-3, "Seconds of a message between two workers.")
program.float("bandwidth", 1e9, "Bytes per second from a worker to the next.")
program.float(
    "gigaflops", 100.0, "Matrix products of a worker, 1e9 per second."
)
program.float("row_seconds", 3e-6, "Seconds to update a row of all tables.")


class Step(NamedTuple):
    """Describes what the workers have in a training step."""

    workers: int  # number of workers
    rows: int  # pairs of each worker
    titles: int  # distinct titles of all workers
    width: int  # numbers in a vector
    trained: int  # numbers of a vector that have a gradient
    table_rows: int  # rows of the tables that any worker's batch reads
    units: int  # numbers in a row of all tables of a tower
    dense: int  # numbers in all other weights
    sets: int  # bytes of the packed sets of rows

    def network_seconds(self, latency: float, bandwidth: float) -> float:
        """Returns the seconds of the four collectives.

        A gather passes the tensor of each worker around the ring. A sum
        passes an n-th of the tensor around twice. The gradient of the
        vectors goes to the worker of each title at once.
        """
        n = self.workers
        if n == 1:
            return 0.0
        around = (n - 1) * latency
        keys = self.sets + 12 * self.rows
        vectors = 4 * self.width * self.titles / n
        gradients = 4 * (self.units * self.table_rows + self.dense)
        errors = 4 * self.trained * self.titles
        return (
            (around + (n - 1) * keys / bandwidth)
            + (around + (n - 1) * vectors / bandwidth)
            + (latency + (n - 1) / n * errors / bandwidth)
            + 2 * (around + (n - 1) / n * gradients / bandwidth)
        )

    def extra_seconds(
        self, alone: "Step", flops: float, row_seconds: float
    ) -> float:
        """Returns the seconds of computing more than a worker alone.

        `flops` are operations a second in matrix products, `row_seconds` those
        to update a row of all tables of a tower.
        """
        # Cosines, and the gradients of both sides.
        product = 3 * 2 * self.rows * self.width
        return (
            product * (self.titles - alone.titles) / flops
            + (self.table_rows - alone.table_rows) * row_seconds
        )


def steps_of(counts: list[int]) -> list[Step]:
    """Counts, in real batches, what many workers have in a step."""
    recipe = PRESETS[FLAGS.preset]
    model = recipe.build(0)
    tables = [table for tower in model.towers for table in tower.tables]
    in_tables = sum(table.shape[0] * table.shape[1] for table in tables)
    all_weights = sum(
        weight.numpy().size for weight in model.trainable_variables
    )
    towers = len(model.towers)
    log = open_log(FLAGS.data)
    one_text = model.document_encoder.trigrams.distinct(["hex bolt"])
    trained = model.document_encoder.blocks(one_text)[0].shape[1]
    steps = []
    for workers in counts:
        batch = workers * FLAGS.rows
        epochs = -(-batch // log.count())
        rows: list[set[int]] = [set() for _ in model.towers]
        titles: set[bytes] = set()
        batches = training_batches(log, 2048, epochs=epochs, seed=0)
        for queries, documents in batches.take(-(-batch // 2048)):
            titles.update(documents.numpy().tolist())
            for of_tower, tower, texts in zip(
                rows, model.towers, (queries, documents), strict=False
            ):
                words = tower.trigrams.distinct(texts)
                of_tower.update(words.trigrams.numpy().tolist())
        steps.append(
            Step(
                workers,
                FLAGS.rows,
                len(titles),
                model.document_encoder.dimension,
                trained,
                sum(map(len, rows)),
                sum(table.shape[1] for table in tables) // towers,
                all_weights - in_tables,
                towers * model.document_encoder.trigrams.size // 8,
            )
        )
    return steps


def main(_: list[str]) -> dict[str, Any]:
    """Prints the predicted seconds and throughputs."""
    counts = [int(count) for count in FLAGS.workers]
    alone, *steps = steps_of([1, *counts])
    results: dict[str, Any] = {}
    print("workers  step s  network s  pairs/s  of ideal")
    for step in steps:
        network = step.network_seconds(FLAGS.latency, FLAGS.bandwidth)
        extra = step.extra_seconds(
            alone, 1e9 * FLAGS.gigaflops, FLAGS.row_seconds
        )
        seconds = FLAGS.step_seconds + extra + network
        pairs = step.workers * step.rows / seconds
        ideal = FLAGS.step_seconds / seconds
        print(
            f"{step.workers:7}  {seconds:6.3f}  {network:9.3f}  {pairs:7,.0f}"
            f"  {ideal:8.2f}"
        )
        results[str(step.workers)] = {
            "seconds": seconds, "network": network, "pairs_per_second": pairs,
            "of_ideal": ideal, **step._asdict(),
        }  # fmt: skip
    return results


run = program.main(main)

if __name__ == "__main__":
    sys.exit(run())
