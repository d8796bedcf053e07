"""Collectives: exchange of tensors, results and errors between all workers."""

import json
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import InputError

_GROUP = 7001
"""Key of the group of all workers, unlike those that TensorFlow makes."""


class Cluster(NamedTuple):
    """Describes the workers of a training and which of them this process is."""

    workers: tuple[str, ...]  # address of each worker, `"host:port"`
    rank: int  # index of this process among them. Worker 0 writes the files

    @property
    def size(self) -> int:
        """Number of workers."""
        return len(self.workers)

    @property
    def first(self) -> bool:
        """Whether this is worker 0, which writes the files of the run."""
        return self.rank == 0

    def describe(self, rank: int) -> str:
        """Names a worker in messages."""
        return f"worker {rank} ({self.workers[rank]})"

    def share(self, count: int, rank: int) -> int:
        """Returns how many of `count` rows of a batch a worker takes.

        The numbers of two workers differ by 1 at most.
        """
        return count // self.size + (rank < count % self.size)


class Collectives:
    """Exchanges tensors among all workers, by TensorFlow's own operations.

    Every worker must call the same methods in the same order: a call returns
    when all workers have made it; in a `tf.function`, the operations run in
    each call. A lost worker raises `tf.errors.OpError`. The `connection` lives
    as long as the workers are connected; `count` is the number of collectives
    up to now.
    """

    def __init__(self, cluster: Cluster, connection: Any) -> None:
        self.cluster = cluster
        self._connection = connection
        with tf.init_scope():
            # The key of a collective, by which the workers know it.
            self.count = tf.Variable(0, trainable=False, dtype=tf.int32)
        # Traced once, for numbers outside of graphs.
        self._gather_numbers, self._sum_numbers = (
            tf.function(
                method,
                input_signature=[tf.TensorSpec([None], dtype)],
                autograph=False,
            )
            for method, dtype in (
                (self.gather, tf.int32),
                (self.sum, tf.int64),
            )
        )

    def gather(self, values: tf.Tensor) -> tf.Tensor:
        """Stacks the tensors of all workers, of one shape, by rank."""
        gathered = tf.raw_ops.CollectiveGatherV2(
            input=values[tf.newaxis], **self._arguments()
        )
        gathered.set_shape([self.cluster.size, *values.shape])
        return gathered

    def gather_rows(
        self, values: tf.Tensor, counts: Sequence[tf.Tensor]
    ) -> tf.Tensor:
        """Concatenates the rows of all workers, in the order of ranks.

        `counts` are the numbers of rows of each worker, known to all.
        """
        most = tf.reduce_max(tf.stack(counts))
        all_values = self.gather(_padded(values, most))
        return tf.concat(
            [all_values[rank, :count] for rank, count in enumerate(counts)], 0
        )

    def sum(self, values: tf.Tensor) -> tf.Tensor:
        """Adds the tensors of all workers; bit-equal on all of them."""
        return tf.raw_ops.CollectiveReduceV2(
            input=values, merge_op="Add", final_op="Id", **self._arguments()
        )

    def sum_own_rows(
        self, values: tf.Tensor, counts: Sequence[tf.Tensor]
    ) -> tf.Tensor:
        """Adds the tensors of all workers, and returns a part to each.

        Half the bytes of `sum`. Each worker gets as many consecutive rows as
        `counts` says, which all know.
        """
        most = tf.reduce_max(tf.stack(counts))
        parts = tf.stack(
            [_padded(part, most) for part in tf.split(values, counts)]
        )
        received = tf.raw_ops.CollectiveAllToAllV2(
            input=parts, **self._arguments()
        )
        return tf.reduce_sum(received, axis=0)[: counts[self.cluster.rank]]

    def gather_objects(self, value: Any) -> list[Any]:
        """Returns what each worker has given, anything that JSON can hold.

        To be called outside of graphs: at the start, and after epochs.
        """
        data = json.dumps(value).encode()
        lengths = self._gather_numbers(tf.constant([len(data)]))
        most = int(tf.reduce_max(lengths))
        values = tf.constant(list(data.ljust(most)), tf.int32)
        return [
            json.loads(bytes(row.tolist()))
            for row in self._gather_numbers(values).numpy()
        ]

    def barrier(self) -> None:
        """Waits for all workers."""
        self.gather_objects(None)

    def sum_counts(self, counts: np.ndarray) -> np.ndarray:
        """Adds numbers, int64 `(n,)`, outside of graphs."""
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
    """Adds rows of zeros up to a number of rows."""
    missing = rows - tf.shape(values)[0]
    return tf.pad(values, [[0, missing], *[[0, 0]] * (values.shape.rank - 1)])


class JointError(InputError):
    """Raised on all workers, for what is wrong on one of them."""


def on_all(collectives: Collectives, function: Callable[[], Any]) -> list[Any]:
    """Calls a function on each worker, and returns all results, by rank.

    If a worker raises an `InputError` or an `OSError`, all of them raise
    `JointError`: none waits for another that has stopped. JSON holds the
    results.
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
    for rank, each in enumerate(outcomes):
        if "error" in each:
            where = f"{collectives.cluster.describe(rank)}: " if rank else ""
            raise JointError(f"{where}{each['error']}")
    return [each["result"] for each in outcomes]


def check_equal(collectives: Collectives, values: dict[str, Any]) -> None:
    """Checks that all workers have equal values, by what is compared.

    Raises `JointError` if a worker has another value than worker 0.
    """
    cluster = collectives.cluster
    all_values = collectives.gather_objects(values)
    for rank, others in enumerate(all_values):
        for name, first in all_values[0].items():
            if others[name] != first:
                raise JointError(
                    f"{cluster.describe(rank)} has {name} {others[name]}, "
                    f"{cluster.describe(0)} has {first}: start all workers "
                    "with the same"
                )


def connect() -> Collectives:
    """Connects this worker with the others that `TF_CONFIG` names.

    To be called before anything else of TensorFlow runs in the process. For a
    worker that never starts, TensorFlow waits without end, and Python stands
    still: the process has to be killed from outside, as Ray does.
    """
    config = json.loads(os.environ["TF_CONFIG"])
    workers, rank = config["cluster"]["worker"], config["task"]["index"]
    # Nothing is created in its scope: it starts this worker's server, and
    # watches that the others are alive.
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    collectives = Collectives(Cluster(tuple(workers), rank), strategy)
    collectives.barrier()
    return collectives
