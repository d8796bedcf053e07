"""NesterovMomentum: the update (6), exact while the momentum changes."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.private_api import (
    DistributedOptimizer,
    replica_copies,
)
from keras_lstm_dssm.registration import register
from keras_lstm_dssm.training.lazy_rows import LazyRows
from keras_lstm_dssm.training.renormalisation import (
    renormalise,
    scaled,
    sum_rows,
)


@register
class NesterovMomentum(DistributedOptimizer):
    """Optimizes by Nesterov's method, Palangi et al. 2016, (6), Algorithm 1.

        V_k = mu V_{k-1} - eps grad L(W_{k-1} + mu V_{k-1})
        W_k = W_{k-1} + V_k

    The gradient is computed at the look-ahead point W + mu V. Keras's `SGD`
    keeps that point in the model, computed with the *next* mu, and reads mu
    as a constant, so that a changing mu makes it inexact, and the weights
    that are evaluated and saved are not W. Here `look_ahead` moves the
    variables to the look-ahead point just before the gradient is computed,
    and `apply` takes them from there to W_k. Between training steps the model
    always holds W. `TwoTower.train_step` calls both.

    Before the update, the gradient of each tower is renormalised separately:
    a norm above `threshold` becomes `threshold` (Algorithm 1, th_G).

    Args:
        learning_rate: The fixed epsilon. Default 0.1.
        momentum: Initial mu, default 0.9; `NesterovSchedule` changes it. It
            is a variable, so that a traced training step sees the change.
        threshold: th_G, default 1; `None` leaves gradients as they are.
        lazy: Whether `TwoTower` registers its tables (`set_tables`), so that
            rows which a batch does not read are updated later, with equal
            weights up to rounding. Default `True`.

    Raises:
        tf.errors.InvalidArgumentError: `apply` was called without a
            `look_ahead` before it, or `look_ahead` twice in a row.

    Example:
    >>> model.compile(NesterovMomentum(0.1), CosineSoftmax(10.0))
    """

    def __init__(
        self,
        learning_rate: float = 0.1,
        momentum: float = 0.9,
        threshold: float | None = 1.0,
        lazy: bool = True,
        name: str = "nesterov_momentum",
        **kwargs: Any,
    ) -> None:
        if kwargs:
            # Decay, clipping, averages and accumulation would have to take
            # the look-ahead point and lazily updated rows into account.
            raise ValueError(
                "NesterovMomentum does not support these options of Keras's "
                f"optimizers: {', '.join(kwargs)}; leave them out"
            )
        super().__init__(learning_rate=learning_rate, name=name)
        self.initial_momentum = momentum
        self.threshold = threshold
        self.lazy = lazy
        start = keras.initializers.Constant(momentum)
        self.momentum = self.add_variable((), start, name="momentum")
        # 1 between `look_ahead` and `apply`.
        self._ahead = self.add_variable((), "zeros", "int32", name="ahead")
        # The momentum of the last look-ahead, and of all updates that are
        # pending for rows of tables.
        self._pace = self.add_variable((), start, name="pace")
        self._group_of: dict[str, int] = {}
        self._tables: dict[str, LazyRows] = {}
        self._known_tables: dict[str, LazyRows] = {}
        self._replicas = 1
        self._dense: list[tf.Variable] = []
        self._sync_lock = threading.RLock()
        self._in_eager_step = False
        self._saves_pending_rows = False

    def build(self, variables: Sequence[keras.Variable]) -> None:
        """Creates V, zero, for each variable."""
        if self.built:
            return
        super().build(variables)
        self.velocity = self.add_optimizer_variables(variables, "velocity")

    def set_groups(self, groups: Sequence[Sequence[keras.Variable]]) -> None:
        """Sets which variables' gradients are renormalised together.

        Args:
            groups: The variables of each tower. By default, all variables
                are one group.
        """
        self._group_of = {
            self.variable_key(variable): number
            for number, group in enumerate(groups)
            for variable in group
        }

    def set_tables(self, tables: Sequence[keras.Variable]) -> None:
        """Registers the tables whose rows are updated when they are read.

        `look_ahead` must then be given the rows that the training step
        reads; `sync` brings all other rows up to date. See `LazyRows`. A
        table that was registered before and is left out now, because its
        tower was frozen, is no longer changed.

        Replicas read different rows. With several of them, all rows are
        updated in each training step; the optimizer's state is the same.

        Args:
            tables: Variables `[rows, units]` that are built already and are
                read by one gather of distinct rows in a training step.
        """
        self.sync()
        active, self._tables = self._tables, {}
        for table in tables:
            key = self.variable_key(table)
            if key not in self._known_tables:
                name = f"{table.name}_updated"
                updated = self.add_variable(
                    table.shape[:1], "zeros", "int32", name=name
                )
                self._known_tables[key] = LazyRows(
                    table.value,
                    self.velocity[self.variable_index(table)],
                    updated,
                    self._pace,
                    self.iterations,
                )
            self._tables[key] = self._known_tables[key]
            if key not in active:
                self._tables[key].restart()
        self._replicas = max(
            (len(replica_copies(table.value)) for table in tables), default=1
        )

    def look_ahead(
        self,
        variables: Sequence[keras.Variable],
        rows: Sequence[tuple[keras.Variable, tf.Tensor]] = (),
    ) -> None:
        """Moves `variables` from W to W + mu V.

        Args:
            variables: All variables that the gradient will be computed for.
            rows: For each registered table, the distinct rows that the
                training step reads, int `[r]`. Other tables are ignored.

        Raises:
            tf.errors.InvalidArgumentError: The variables are at a look-ahead
                point already.
        """
        self.build(variables)
        with self._check_ahead(
            0,
            "look_ahead was called twice without apply; call sync() after a "
            "training step that failed",
        ):
            self._ahead.assign(1)
        if self._tables and self._replicas == 1:
            # Rows move by a geometric sum as long as mu does not change.
            changes = tf.not_equal(self._pace.value, self.momentum.value)
            tf.cond(changes, self._sync_rows, lambda: None)
        self._pace.assign(self.momentum)
        for table, read_rows in rows:
            if lazy := self._lazy(table):
                lazy.look_ahead(read_rows)
        self._dense = [v.value for v in variables if self._lazy(v) is None]
        self.update_replicas(self._move, self._dense, [1.0] * len(self._dense))

    def sync(self) -> None:
        """Brings all weights to W of the last complete training step.

        Updates the rows of registered tables that no batch has read since,
        and takes variables back from the look-ahead point of a training step
        that failed. `TwoTower` calls it before its weights are read. Costs
        little when the weights are up to date.
        """
        with self._sync_lock, tf.init_scope():
            if self._in_eager_step:  # the step reads the look-ahead point
                return
            if self._ahead.numpy():
                self._undo_look_ahead()
            if not self._saves_pending_rows:
                self._sync_rows()

    @contextmanager
    def eager_step(self) -> Iterator[None]:
        """Lets a training step that runs eagerly read the look-ahead point."""
        self._in_eager_step = True
        try:
            yield
        finally:
            self._in_eager_step = False

    @contextmanager
    def pending_rows_saved(self) -> Iterator[None]:
        """Leaves lazily updated rows as they are while a checkpoint is saved.

        `sync` rounds, so that a run which was saved within an epoch and
        resumed would differ from one that was not.
        """
        self._saves_pending_rows = True
        try:
            self.sync()  # from the look-ahead point of a step that failed
            yield
        finally:
            self._saves_pending_rows = False

    def _sync_rows(self) -> None:
        for table in self._tables.values():
            table.sync()

    def _undo_look_ahead(self) -> None:
        if self._replicas == 1:
            for table in self._tables.values():
                table.undo_look_ahead()
        for variable in self._dense:
            self._move(variable, -1.0)
        self._ahead.assign(0)

    def _lazy(self, variable: Any) -> LazyRows | None:
        if self._replicas > 1:
            return None
        return self._tables.get(self.variable_key(variable))

    def _move(self, variable: tf.Variable, direction: float) -> None:
        """Moves a variable to the look-ahead point, or back with -1."""
        velocity = self.velocity[self.variable_index(variable)]
        pace = tf.cast(self._pace.value, variable.dtype)
        variable.assign_add(direction * pace * velocity.value)

    def _check_ahead(self, ahead: int, message: str) -> Any:
        """Returns a context whose operations need `ahead`, 0 or 1."""
        message = f"NesterovMomentum: {message}"
        return tf.control_dependencies(
            [tf.debugging.assert_equal(self._ahead.value, ahead, message)]
        )

    def update_step(
        self,
        gradient: tf.Tensor,
        variable: tf.Variable,
        learning_rate: tf.Tensor,
    ) -> None:
        """Takes one variable from the look-ahead point to W_k."""
        change = scaled(gradient, -tf.cast(learning_rate, variable.dtype))
        if lazy := self._lazy(variable):
            lazy.update(change)
            return
        # W_k = W_{k-1} + mu V_{k-1} - eps grad: `look_ahead` has added mu V,
        # so that only the rows with a gradient change here.
        velocity = self.velocity[self.variable_index(variable)]
        mu = tf.cast(self._pace, variable.dtype)
        self.assign(velocity, mu * velocity)
        self.assign_add(velocity, change)
        self.assign_add(variable, change)

    def update_variables(
        self,
        gradients: Sequence[Any],
        variables: Sequence[tf.Variable],
        learning_rate: tf.Tensor,
    ) -> None:
        """Renormalises the gradients and takes all variables to W_k."""
        with self._check_ahead(
            1,
            "call look_ahead(variables) before the gradient is computed; "
            "TwoTower.fit does",
        ):
            gradients = [
                gradient if self._lazy(variable) else sum_rows(gradient)
                for gradient, variable in zip(gradients, variables, strict=True)
            ]
            if self.threshold is not None:
                # Without groups, all variables are in group -1.
                groups = [
                    self._group_of.get(self.variable_key(variable), -1)
                    for variable in variables
                ]
                gradients = renormalise(gradients, groups, self.threshold)
            self.update_replicas(
                lambda v, g: self.update_step(g, v, learning_rate),
                variables,
                gradients,
            )
            if self._replicas > 1:  # all rows include this training step
                marks = [table.updated for table in self._tables.values()]
                self.update_replicas(
                    lambda mark, step: mark.assign(tf.fill(mark.shape, step)),
                    marks,
                    [tf.cast(self.iterations + 1, tf.int32)] * len(marks),
                )
            self._ahead.assign(0)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor arguments as a dict, for `from_config`."""
        return {
            "name": self.name,
            "learning_rate": super().get_config()["learning_rate"],
            "momentum": self.initial_momentum,
            "threshold": self.threshold,
            "lazy": self.lazy,
        }
