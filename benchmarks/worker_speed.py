r"""Measures two workers of one thread beside one process of two threads.

    python -m benchmarks.worker_speed \
        --data=HOMEDEPOT --preset=lstm_96 --batch_size=4096

All processes are started once and train on the same clicks. Then they take
turns: the one process trains for some steps while the workers wait, and the
workers while it waits, so that each round gives one ratio on the machine as
it is at that time. Also printed: what the workers send in a step, and the
latency and bandwidth between them.
"""

import json
import os
import socket
import statistics
import sys
import time
from contextlib import ExitStack
from typing import Any

import keras
import tensorflow as tf

import keras_lstm_dssm as dssm
from benchmarks.measure import Worker
from keras_lstm_dssm.command_line import Program
from keras_lstm_dssm.data import open_log, training_batches
from keras_lstm_dssm.distributed.cluster import Cluster, in_cluster
from keras_lstm_dssm.distributed.collectives import Collectives, connect
from keras_lstm_dssm.distributed.joint_step import JointStep

program = Program(__doc__)
FLAGS = program.flags
program.string("data", "api", "The clicks, as for lstm-dssm-train.")
program.string("preset", "lstm_96", "The recipe of two towers.")
program.string("negatives", None, "Negatives other than the recipe's.")
program.integer("batch_size", 4096, "Pairs in a batch of all workers.", 2)
program.integer("steps", 4, "Training steps in a turn.", 1)
program.integer("rounds", 5, "Turns of each.", 1)
program.integer("worker_threads", 1, "Threads of each of the two workers.", 1)

_MEGABYTE = 2**20


class TimedTurns(keras.callbacks.Callback):
    """Waits for a line on standard input before each turn, and times it."""

    def __init__(self, steps: int, collectives: Collectives | None) -> None:
        super().__init__()
        self.steps = steps
        self.collectives = collectives
        self._start = 0.0
        self._sent = 0

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Waits at the beginning of a turn."""
        if batch % self.steps == 0:
            print("waiting", flush=True)
            if not sys.stdin.readline():
                raise KeyboardInterrupt
            self._start, self._sent = time.monotonic(), self._bytes()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Prints the seconds of a step."""
        if (batch + 1) % self.steps == 0:
            seconds = (time.monotonic() - self._start) / self.steps
            sent = (self._bytes() - self._sent) / self.steps
            print(json.dumps([seconds, sent]), flush=True)

    def _bytes(self) -> int:
        return int(self.collectives.sent) if self.collectives else 0


def train() -> None:
    """Trains, in turns, as one of two workers or as the one process."""
    threads = FLAGS.worker_threads if in_cluster() else 2 * FLAGS.worker_threads
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    collectives = None
    rows = FLAGS.batch_size
    if in_cluster():
        cluster = Cluster.from_environment()
        collectives = connect(cluster)
        rows = cluster.share(rows)
    recipe = dssm.PRESETS[FLAGS.preset]
    if FLAGS.negatives:
        recipe = recipe.replace(negatives=FLAGS.negatives)
    log = open_log(FLAGS.data)
    model = recipe.build(seed=0)
    if model.needs_adapt:
        model.adapt(list(log.documents()))
    model.compile(
        dssm.NesterovMomentum(recipe.learning_rate, recipe.momentum_ends),
        dssm.CosineSoftmax(recipe.gamma),
    )
    if collectives:
        model.train_jointly(JointStep(collectives, FLAGS.batch_size))
        for name, seconds in connection(collectives).items():
            if collectives.cluster.first:
                print(f"{name}: {seconds}", file=sys.stderr, flush=True)
    options = tf.data.Options()
    options.threading.private_threadpool_size = threads
    # Worker 1 reads the clicks in another order.
    rank = collectives.cluster.rank if collectives else 0
    batches = training_batches(log, rows, epochs=10**6, seed=rank)
    model.fit(
        batches.with_options(options),
        epochs=1,
        steps_per_epoch=FLAGS.steps * (FLAGS.rounds + 1),
        verbose=0,
        callbacks=[TimedTurns(FLAGS.steps, collectives)],
    )


def connection(collectives: Collectives) -> dict[str, float]:
    """Measures latency, and the bandwidth of a sum of 16 MB."""
    add = tf.function(collectives.sum, autograph=False)
    seconds = {}
    for elements in (1, 4 * _MEGABYTE):
        values = tf.zeros([elements])
        times = []
        for _ in range(12):
            start = time.monotonic()
            add(values)
            times.append(time.monotonic() - start)
        seconds[elements] = statistics.median(times[2:])
    small, large = seconds.values()
    return {
        "seconds of a small sum": round(small, 5),
        "megabytes per second and direction": round(
            4 * 4 * _MEGABYTE / (large - small) / 1e6
        ),
    }


def main(_: list[str]) -> dict[str, Any]:
    """Lets the processes take turns, and prints the ratios."""
    if os.environ.get("WORKER_SPEED"):
        train()
        return {}
    with socket.socket() as one, socket.socket() as other:
        for each in (one, other):
            each.bind(("127.0.0.1", 0))
        ports = [each.getsockname()[1] for each in (one, other)]
    addresses = [f"127.0.0.1:{port}" for port in ports]
    configs = [
        {
            "cluster": {"worker": addresses},
            "task": {"type": "worker", "index": rank},
        }
        for rank in (0, 1)
    ]
    environments: dict[str, list[dict[str, str]]] = {
        "one process": [{}],
        "two workers": [{"TF_CONFIG": json.dumps(each)} for each in configs],
    }
    command = [sys.executable, "-m", __spec__.name, *sys.argv[1:]]
    seconds: dict[str, list[float]] = {name: [] for name in environments}
    sent = 0.0
    with ExitStack() as stack:
        teams = {
            name: [
                stack.enter_context(
                    Worker(command, {"WORKER_SPEED": "1", **environment})
                )
                for environment in team
            ]
            for name, team in environments.items()
        }
        for _turn in range(FLAGS.rounds + 1):  # the first one traces
            for name, workers in teams.items():
                for worker in workers:
                    assert "waiting" in worker.line()
                for worker in workers:
                    worker.start_turn("go")
                turns = [json.loads(worker.line()) for worker in workers]
                seconds[name].append(max(each[0] for each in turns))
                print(f"{name}: {seconds[name][-1]:.3f} s a step", flush=True)
                sent = max(sent, turns[0][1])
    ratios = [
        one / two
        for one, two in zip(*(t[1:] for t in seconds.values()), strict=True)
    ]  # fmt: skip
    results: dict[str, Any] = {
        "preset": FLAGS.preset,
        "batch_size": FLAGS.batch_size,
        **{
            f"seconds of a step, {name}": round(statistics.median(times[1:]), 3)
            for name, times in seconds.items()
        },
        "ratios": [round(ratio, 2) for ratio in ratios],
        "median ratio": round(statistics.median(ratios), 2),
        "megabytes sent in a step": round(sent / 1e6, 2),
    }
    for name, value in results.items():
        print(f"{name}: {value}")
    return results


run = program.main(main)

if __name__ == "__main__":
    sys.exit(run())
