"""Tables of which a batch reads few rows, updated lazily with equal results.

`LazyRows` updates one table; `LazyTables` has the tables of an optimizer.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import tensorflow as tf


class _Read(NamedTuple):
    """Rows that a training step has read, and the state of their updates."""

    rows: tf.Tensor
    ahead: tf.Tensor
    velocity: tf.Tensor
    decay: tf.Tensor


def _are_rows(indices: tf.Tensor, rows: tf.Tensor) -> bool:
    """Returns whether the indices of a gradient are exactly these rows.

    TensorFlow reshapes them. A graph of the whole training step then need not
    gather the rows again; other workers may have added rows.
    """
    return (
        tf.is_symbolic_tensor(indices)
        and indices.op.type == "Reshape"
        and indices.op.inputs[0] is rows
    )


class LazyRows:
    """Updates the rows of a table when they are next read, exactly.

    Momentum moves every row in every training step, whether the batch reads
    it or not. But a row without gradient moves by a geometric sum: over m
    training steps with momentum mu,

        V -> mu^m V        W -> W + V (mu + mu^2 + ... + mu^m)

    so its update can wait until a batch reads it. The rows then equal those
    of the dense update up to rounding, at the cost of the rows read. mu must
    not change between two updates of a row: before it changes, all rows are
    brought up to date (`sync`). `updated`, int `[rows]`, is the number of the
    last training step that each row of W and V `[rows, units]` includes.
    """

    def __init__(
        self,
        table: tf.Variable,
        velocity: tf.Variable,
        updated: tf.Variable,
        mu: tf.Variable,
        steps: tf.Variable,
    ) -> None:
        self.table = table
        self.velocity = velocity
        self.updated = updated
        self.mu = mu
        self.steps = steps
        self._read: _Read | None = None

    def read(self, rows: tf.Tensor) -> tf.Tensor:
        """Returns distinct rows at the look-ahead point, `[r, units]`."""
        updated = tf.gather(self.updated, rows)
        decay, distance = self._powers(updated, self.steps + 1)
        velocity = tf.stop_gradient(tf.gather(self.velocity, rows))
        ahead = tf.gather(self.table, rows) + velocity * distance
        self._read = _Read(rows, ahead, velocity, decay)
        return ahead

    def update(self, change: tf.IndexedSlices) -> None:
        """Takes distinct rows to the end of the training step.

        `change` is -eps times their gradient at the look-ahead point.
        """
        rows = change.indices
        read, self._read = self._read, None
        if read is None or not _are_rows(rows, read.rows):
            self.read(rows)
            read, self._read = self._read, None
            assert read is not None
        done = tf.cast(self.steps + 1, self.updated.dtype)
        # Not scatter_add, which guards against repeated rows and is slower.
        for variable, values in (
            (self.velocity, read.velocity * read.decay + change.values),
            (self.table, read.ahead + change.values),
            (self.updated, tf.fill(tf.shape(rows), done)),
        ):
            variable.scatter_update(tf.IndexedSlices(values, rows))

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


class LazyTables:
    """The tables whose rows an optimizer updates when a batch reads them.

    Tables are found by the key of their variable. A table that is no longer
    active, because its tower was frozen, stays as it is.
    """

    def __init__(self) -> None:
        self.active: dict[str, LazyRows] = {}
        self._known: dict[str, LazyRows] = {}
        self._lock = threading.Lock()
        self._pending = False

    def activate(self, tables: Mapping[str, Callable[[], LazyRows]]) -> None:
        """Replaces the active tables. All tables must be up to date.

        New tables are made by the functions.
        """
        before, self.active = self.active, {}
        for key, make in tables.items():
            if key not in self._known:
                self._known[key] = make()
            self.active[key] = self._known[key]
            if key not in before:
                self.active[key].restart()

    def sync(self) -> None:
        """Brings all rows up to date, unless `pending_rows_saved`."""
        with self._lock:
            if not self._pending:
                for table in self.active.values():
                    table.sync()

    @contextmanager
    def pending_rows_saved(self) -> Iterator[None]:
        """Delays `sync` while a checkpoint is saved.

        `sync` rounds, so that a run which was saved within an epoch and
        resumed would differ from a run that was not.
        """
        self._pending = True
        try:
            yield
        finally:
            self._pending = False
