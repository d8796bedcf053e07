"""Collectives: exchange of tensors, results and errors between all workers."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.distributed.cluster import Cluster, meet
from keras_lstm_dssm.errors import InputError

_GROUP = 7001
"""Key of the group of all workers, unlike those that TensorFlow makes."""


class Collectives:
    """Exchanges tensors among all workers, by TensorFlow's own operations.

    Every worker must call the same methods in the same order: a call returns
    when all workers have made it; in a `tf.function`, the operations run in
    each call. A lost worker raises `tf.errors.OpError`. The `connection` lives
    as long as the workers are connected; `count` is the number of collectives
    up to now, `sent` that of the bytes that this worker has sent.
    """

    def __init__(self, cluster: Cluster, connection: Any = None) -> None:
        self.cluster = cluster
        self._connection = connection
        with tf.init_scope():
            # The key of a collective, by which the workers know it.
            self.count = tf.Variable(0, trainable=False, dtype=tf.int32)
            self.sent = tf.Variable(0, trainable=False, dtype=tf.int64)
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
        self._count(values, self.cluster.size - 1)
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
        self._count(values, 2 * (self.cluster.size - 1) / self.cluster.size)
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
        size = self.cluster.size
        self._count(parts, (size - 1) / size)
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

    def _count(self, values: tf.Tensor, times: float) -> None:
        size = tf.cast(
            tf.size(values, tf.int64) * values.dtype.size, tf.float64
        )
        self.sent.assign_add(tf.cast(size * times, tf.int64))


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
        for name in sorted({*others, *all_values[0]}):
            first, other = (each.get(name) for each in (all_values[0], others))
            if first != other:
                raise JointError(
                    f"{cluster.describe(rank)} has {name} {other}, "
                    f"{cluster.describe(0)} has {first}: start all workers "
                    "with the same"
                )


def connect(cluster: Cluster, minutes: float = 5.0) -> Collectives:
    """Waits until all workers have started, and connects them.

    `TF_CONFIG` must be set, from which TensorFlow takes the addresses too.
    To be called before anything else of TensorFlow runs in the process.
    """
    meet(cluster, 60 * minutes)
    # Nothing is created in its scope: it starts this worker's server, and
    # watches that the others are alive.
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    collectives = Collectives(cluster, strategy)
    collectives.barrier()
    return collectives
