"""LazyRows: Nesterov's method on a table of which a batch reads few rows."""

import keras
import tensorflow as tf


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
    """

    def __init__(
        self,
        table: tf.Variable,
        velocity: keras.Variable,
        updated: keras.Variable,
    ) -> None:
        self.table = table
        self.velocity = velocity.value
        self.updated = updated.value
        self._rows_ahead = tf.Variable(
            tf.zeros([0], tf.int32), trainable=False, shape=[None]
        )

    def look_ahead(
        self, rows: tf.Tensor, mu: tf.Tensor, now: tf.Tensor
    ) -> None:
        """Moves rows to the look-ahead point of training step `now` + 1.

        Args:
            rows: int `[r]`, each row at most once.
            mu: The momentum since the last `sync`.
            now: Number of complete training steps.
        """
        self._rows_ahead.assign(tf.cast(rows, tf.int32))
        self._move(rows, self._distance_ahead(rows, mu, now))

    def undo_look_ahead(self, mu: tf.Tensor, now: tf.Tensor) -> None:
        """Moves the rows of the last `look_ahead` back, up to rounding."""
        rows = self._rows_ahead.value()
        self._move(rows, -self._distance_ahead(rows, mu, now))

    def update(
        self,
        step: tf.Tensor,
        rows: tf.Tensor,
        mu: tf.Tensor,
        now: tf.Tensor,
    ) -> None:
        """Takes rows from the look-ahead point to the end of step `now` + 1.

        Args:
            step: -eps times the gradient, `[r, units]`.
            rows: int `[r]`, the rows of the last `look_ahead`.
            mu: The momentum since the last `sync`.
            now: Number of complete training steps.
        """
        decay, _ = self._powers(tf.gather(self.updated, rows), mu, now + 1)
        velocity = tf.gather(self.velocity, rows) * decay + step
        self.velocity.scatter_update(tf.IndexedSlices(velocity, rows))
        self._move(rows, step)
        done = tf.fill(tf.shape(rows), tf.cast(now + 1, self.updated.dtype))
        self.updated.scatter_update(tf.IndexedSlices(done, rows))

    def sync(self, mu: tf.Tensor, now: tf.Tensor) -> None:
        """Brings all rows up to date with training step `now`."""
        decay, distance = self._powers(self.updated, mu, now)
        self.table.assign_add(self.velocity * distance)
        self.velocity.assign(self.velocity * decay)
        self.restart(now)

    def restart(self, now: tf.Tensor) -> None:
        """Marks all rows as up to date with training step `now`."""
        now = tf.cast(now, self.updated.dtype)
        self.updated.assign(tf.fill(tf.shape(self.updated), now))

    def _distance_ahead(
        self, rows: tf.Tensor, mu: tf.Tensor, now: tf.Tensor
    ) -> tf.Tensor:
        _, distance = self._powers(tf.gather(self.updated, rows), mu, now + 1)
        return tf.gather(self.velocity, rows) * distance

    def _move(self, rows: tf.Tensor, step: tf.Tensor) -> None:
        # Not scatter_add, which guards against repeated rows and is slower.
        moved = tf.gather(self.table, rows) + step
        self.table.scatter_update(tf.IndexedSlices(moved, rows))

    def _powers(
        self, updated: tf.Tensor, mu: tf.Tensor, now: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns mu^m and mu + ... + mu^m for m pending steps, `[r, 1]`."""
        # In double precision: 1 - mu^m cancels most of a float's digits.
        m = tf.cast(tf.cast(now, updated.dtype) - updated, tf.float64)
        mu = tf.cast(mu, tf.float64)
        decay = mu**m
        rest = 1 - mu
        distance = tf.where(
            rest > 0, mu * (1 - decay) / tf.where(rest > 0, rest, 1), m
        )
        dtype = self.table.dtype
        return (
            tf.cast(decay, dtype)[:, tf.newaxis],
            tf.cast(distance, dtype)[:, tf.newaxis],
        )
