"""Collectives: exchange of tensors, results and errors between all workers."""

import json
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import InputError

_GROUP = 7001
"""Key of the group of all workers; TensorFlow's own groups have other keys."""


class Cluster(NamedTuple):
    """The addresses of the workers, by rank, and this process's rank."""

    workers: tuple[str, ...]
    rank: int

    @property
    def size(self) -> int:
        """Number of workers."""
        return len(self.workers)

    @property
    def first(self) -> bool:
        """Whether this is worker 0, which writes the files of the run."""
        return self.rank == 0

    def describe(self, rank: int) -> str:
        """Returns a worker's rank and address, for messages."""
        return f"worker {rank} ({self.workers[rank]})"

    def share(self, count: int, rank: int) -> int:
        """Returns a worker's number of rows in a batch of `count` rows."""
        return count // self.size + (rank < count % self.size)


class Collectives:
    """Exchanges tensors among all workers.

    All workers must call the same methods in the same order, because each call
    waits for the calls of all workers. If a worker is lost, calls raise
    `tf.errors.OpError`.
    """

    def __init__(self, cluster: Cluster, connection: Any) -> None:
        self.cluster = cluster
        self._connection = connection  # keeps the workers connected
        with tf.init_scope():
            # The n-th collective operation has the key n on all workers.
            self.count = tf.Variable(0, trainable=False, dtype=tf.int32)
        # Code outside of graphs calls these in place of `gather` and `sum`.
        self._gather_numbers, self._sum_numbers = (
            tf.function(
                method,
                input_signature=[tf.TensorSpec([None], dtype)],
                autograph=False,
            )
            for method, dtype in ((self.gather, tf.int32), (self.sum, tf.int64))
        )

    def gather(self, values: tf.Tensor) -> tf.Tensor:
        """Stacks the workers' tensors, of equal shapes, in order of rank."""
        gathered = tf.raw_ops.CollectiveGatherV2(
            input=values[tf.newaxis], **self._arguments()
        )
        gathered.set_shape([self.cluster.size, *values.shape])
        return gathered

    def gather_rows(
        self, values: tf.Tensor, counts: Sequence[tf.Tensor]
    ) -> tf.Tensor:
        """Concatenates the workers' rows; worker r gives `counts[r]` rows."""
        max_rows = tf.reduce_max(tf.stack(counts))
        all_values = self.gather(_padded(values, max_rows))
        return tf.concat(
            [all_values[rank, :count] for rank, count in enumerate(counts)], 0
        )

    def sum(self, values: tf.Tensor) -> tf.Tensor:
        """Adds the tensors of all workers; all workers get the same bits."""
        return tf.raw_ops.CollectiveReduceV2(
            input=values, merge_op="Add", final_op="Id", **self._arguments()
        )

    def sum_own_rows(
        self, values: tf.Tensor, counts: Sequence[tf.Tensor]
    ) -> tf.Tensor:
        """Adds tensors; worker r gets part r of the sum, `counts[r]` rows."""
        max_rows = tf.reduce_max(tf.stack(counts))
        blocks = tf.stack(
            [_padded(block, max_rows) for block in tf.split(values, counts)]
        )
        # This operation sends half as many bytes as `sum` would.
        received = tf.raw_ops.CollectiveAllToAllV2(
            input=blocks, **self._arguments()
        )
        return tf.reduce_sum(received, axis=0)[: counts[self.cluster.rank]]

    def gather_objects(self, value: Any) -> list[Any]:
        """Returns all workers' JSON values, by rank; cannot run in graphs."""
        data = json.dumps(value).encode()
        lengths = self._gather_numbers(tf.constant([len(data)]))
        max_length = int(tf.reduce_max(lengths))
        values = tf.constant(list(data.ljust(max_length)), tf.int32)
        return [
            json.loads(bytes(row.tolist()))
            for row in self._gather_numbers(values).numpy()
        ]

    def barrier(self) -> None:
        """Waits for all workers."""
        self.gather_objects(None)

    def sum_counts(self, counts: np.ndarray) -> np.ndarray:
        """Adds the workers' arrays, int64 `(n,)`; cannot run in graphs."""
        total: np.ndarray = self._sum_numbers(tf.constant(counts)).numpy()
        return total

    def _arguments(self) -> dict[str, Any]:
        return {
            "group_size": self.cluster.size,
            "group_key": _GROUP,
            "instance_key": self.count.assign_add(1),
            "ordering_token": [],
            "communication_hint": "ring",
        }


def _padded(values: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
    missing = rows - tf.shape(values)[0]
    return tf.pad(values, [[0, missing], *[[0, 0]] * (values.shape.rank - 1)])


class JointError(InputError):
    """Raised on all workers when a worker has an error."""


def on_all(collectives: Collectives, function: Callable[[], Any]) -> list[Any]:
    """Calls a function on each worker; returns all results, in rank order.

    The results must be JSON values. If a worker raises an `InputError` or an
    `OSError`, all workers raise `JointError`.
    """
    outcome: dict[str, Any] = {}
    try:
        outcome["result"] = function()
    except InputError as error:
        outcome["error"] = str(error)
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        outcome["error"] = f"{name}{error.strerror or error}"
    outcomes = collectives.gather_objects(outcome)
    for rank, worker_outcome in enumerate(outcomes):
        if "error" in worker_outcome:
            where = f"{collectives.cluster.describe(rank)}: " if rank else ""
            raise JointError(f"{where}{worker_outcome['error']}")
    return [worker_outcome["result"] for worker_outcome in outcomes]


def check_equal(collectives: Collectives, values: dict[str, Any]) -> None:
    """Raises `JointError` if a worker has another value than worker 0."""
    cluster = collectives.cluster
    all_values = collectives.gather_objects(values)
    for rank, worker_values in enumerate(all_values):
        for name, first in all_values[0].items():
            if worker_values[name] != first:
                raise JointError(
                    f"{cluster.describe(rank)} has {name}"
                    f" {worker_values[name]}, {cluster.describe(0)} has"
                    f" {first}: install the same packages on all workers"
                )


def connect() -> Collectives:
    """Connects the workers of `TF_CONFIG`; call it before any TensorFlow op."""
    config = json.loads(os.environ["TF_CONFIG"])
    workers, rank = config["cluster"]["worker"], config["task"]["index"]
    # The strategy only starts this worker's server and watches other workers.
    # If a worker never starts, TensorFlow waits forever. Another process, such
    # as Ray, must then kill this process.
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    collectives = Collectives(Cluster(tuple(workers), rank), strategy)
    collectives.barrier()
    return collectives
