"""LazyRows: Nesterov's method on a table of which a batch reads few rows."""

from typing import NamedTuple

import keras
import tensorflow as tf

from keras_lstm_dssm.private_api import replica_copies


class _Rows(NamedTuple):
    """Some rows of a table of weights, and the state of their updates."""

    table: tf.Tensor
    velocity: tf.Tensor
    updated: tf.Tensor


class LazyRows:
    """Updates the rows of a table when they are next read, exactly.

    Momentum moves every row in every training step, whether the batch reads
    it or not. But a row without gradient moves by a geometric sum: over m
    training steps with momentum mu,

        V -> mu^m V        W -> W + V (mu + mu^2 + ... + mu^m)

    so its update can wait until a batch reads it. The rows then equal those
    of the dense update up to rounding, at the cost of the rows read. mu must
    not change between two updates of a row: before it changes, all rows are
    brought up to date (`sync`).

    Args:
        table: W, float `[rows, units]`.
        velocity: V, of the same shape.
        updated: int `[rows]`, the number of the last training step that each
            row includes.
        mu: Scalar, the momentum since the last `sync`.
        steps: Integer scalar, the number of complete training steps.
    """

    def __init__(
        self,
        table: tf.Variable,
        velocity: keras.Variable,
        updated: keras.Variable,
        mu: keras.Variable,
        steps: keras.Variable,
    ) -> None:
        self.table = _only_copy(table)
        self.velocity = _only_copy(velocity.value)
        self.updated = _only_copy(updated.value)
        self.mu = _only_copy(mu.value)
        self.steps = _only_copy(steps.value)
        self._ahead: _Rows | None = None
        self._rows_ahead = _only_copy(
            tf.Variable(tf.zeros([0], tf.int32), trainable=False, shape=[None])
        )

    def look_ahead(self, rows: tf.Tensor) -> None:
        """Moves rows to the look-ahead point of the coming training step.

        Args:
            rows: int `[r]`, each row at most once.
        """
        self._rows_ahead.assign(tf.cast(rows, tf.int32))
        read = self._read(rows)
        table = read.table + self._distance_ahead(read)
        self._write(rows, table)
        self._ahead = read._replace(table=table)

    def undo_look_ahead(self) -> None:
        """Moves the rows of the last `look_ahead` back, up to rounding."""
        rows = self._rows_ahead.value()
        read = self._read(rows)
        self._write(rows, read.table - self._distance_ahead(read))

    def update(self, change: tf.IndexedSlices) -> None:
        """Takes rows from the look-ahead point to the end of the training step.

        Args:
            change: -eps times the gradient, `[r, units]`, for the rows of the
                last `look_ahead`, in their order.
        """
        rows, end = change.indices, self.steps + 1
        read = self._read_ahead(rows)
        decay, _ = self._powers(read.updated, end)
        velocity = read.velocity * decay + change.values
        self.velocity.scatter_update(tf.IndexedSlices(velocity, rows))
        self._write(rows, read.table + change.values)
        done = tf.fill(tf.shape(rows), tf.cast(end, self.updated.dtype))
        self.updated.scatter_update(tf.IndexedSlices(done, rows))

    def sync(self) -> None:
        """Brings all rows up to date with the last complete training step."""
        if tf.executing_eagerly() and not self._behind():
            return
        decay, distance = self._powers(self.updated, self.steps)
        self.table.assign_add(self.velocity * distance)
        self.velocity.assign(self.velocity * decay)
        self.restart()

    def _behind(self) -> bool:
        return bool(self.updated.numpy().min() < self.steps.numpy())

    def restart(self) -> None:
        """Marks all rows as up to date with the last complete step."""
        steps = tf.cast(self.steps, self.updated.dtype)
        self.updated.assign(tf.fill(tf.shape(self.updated), steps))

    def _read(self, rows: tf.Tensor) -> _Rows:
        return _Rows(
            tf.gather(self.table, rows),
            tf.gather(self.velocity, rows),
            tf.gather(self.updated, rows),
        )

    def _read_ahead(self, rows: tf.Tensor) -> _Rows:
        """Returns rows at the look-ahead point."""
        ahead, self._ahead = self._ahead, None
        # A graph of the whole training step need not gather them again.
        if ahead is not None and not tf.executing_eagerly():
            graph = tf.compat.v1.get_default_graph()
            if getattr(ahead.table, "graph", None) is graph:
                return ahead
        return self._read(rows)

    def _distance_ahead(self, read: _Rows) -> tf.Tensor:
        _, distance = self._powers(read.updated, self.steps + 1)
        return read.velocity * distance

    def _write(self, rows: tf.Tensor, values: tf.Tensor) -> None:
        # Not scatter_add, which guards against repeated rows and is slower.
        self.table.scatter_update(tf.IndexedSlices(values, rows))

    def _powers(
        self, updated: tf.Tensor, steps: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns mu^m and mu + ... + mu^m, `[r, 1]`, m = steps - updated."""
        # In double precision: 1 - mu^m cancels most of a float's digits.
        m = tf.cast(tf.cast(steps, updated.dtype) - updated, tf.float64)
        mu = tf.cast(self.mu, tf.float64)
        decay = mu**m
        rest = 1 - mu
        distance = tf.where(
            rest > 0, mu * (1 - decay) / tf.where(rest > 0, rest, 1), m
        )
        dtype = self.table.dtype
        return (
            tf.expand_dims(tf.cast(decay, dtype), 1),
            tf.expand_dims(tf.cast(distance, dtype), 1),
        )


def _only_copy(variable: tf.Variable) -> tf.Variable:
    """Returns what a single replica holds of a mirrored variable.

    Within its step, a replica may assign rows of its own copy only.
    """
    copies = replica_copies(variable)
    return copies[0] if len(copies) == 1 else variable
