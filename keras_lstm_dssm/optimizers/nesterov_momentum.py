"""`NesterovMomentum`, the optimizer of Palangi et al. 2016, Algorithm 1.

Tables of which a batch reads few rows are updated lazily, with equal results.
`NesterovSchedule` sets the momentum during a training.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.private_api import DistributedOptimizer, only_copy
from keras_lstm_dssm.registration import register


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
    brought up to date (`sync`). `updated`, int `[rows]`, is the number of the
    last training step that each row of W and V `[rows, units]` includes.
    """

    def __init__(
        self,
        table: tf.Variable,
        velocity: keras.Variable,
        updated: keras.Variable,
        mu: keras.Variable,
        steps: keras.Variable,
    ) -> None:
        self.table = only_copy(table)
        self.velocity = only_copy(velocity.value)
        self.updated = only_copy(updated.value)
        self.mu = only_copy(mu.value)
        self.steps = only_copy(steps.value)
        self._ahead: _Rows | None = None
        self._rows_ahead = only_copy(
            tf.Variable(tf.zeros([0], tf.int32), trainable=False, shape=[None])
        )

    def look_ahead(self, rows: tf.Tensor) -> None:
        """Moves distinct rows to the look-ahead point of the coming step."""
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

        `change` is -eps times the gradient, of the rows of the last
        `look_ahead`.
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


def renormalise(
    gradients: Sequence[Any], groups: Sequence[int], threshold: float
) -> list[Any]:
    """Scales each group's gradient down to a norm of at most `threshold`.

        if ||grad|| > th then grad <- th grad / ||grad||

    Gradients are tensors, or `IndexedSlices` of distinct rows, see `sum_rows`;
    those of a tower form one group.
    """
    norms = {
        group: tf.linalg.global_norm(
            [g for g, of in zip(gradients, groups, strict=True) if of == group]
        )
        for group in set(groups)
    }
    return [
        scaled(
            gradient,
            tf.cast(
                threshold / tf.maximum(norms[group], threshold), gradient.dtype
            ),
        )
        for gradient, group in zip(gradients, groups, strict=True)
    ]


def scaled(gradient: Any, factor: tf.Tensor) -> Any:
    """Multiplies a gradient; `*` would make a sparse one dense."""
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient * factor
    return tf.IndexedSlices(
        gradient.values * factor, gradient.indices, gradient.dense_shape
    )


def sum_rows(gradient: Any) -> Any:
    """Sums rows of equal index in a sparse gradient, for its norm."""
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    indices, place = tf.unique(gradient.indices)
    values = tf.math.unsorted_segment_sum(
        gradient.values, place, tf.size(indices)
    )
    return tf.IndexedSlices(values, indices, gradient.dense_shape)


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
        if self._tables:
            # Rows move by a geometric sum as long as mu does not change.
            changes = tf.not_equal(self._pace.value, self.momentum.value)
            tf.cond(changes, self._sync_rows, lambda: None)
        self._pace.assign(self.momentum)
        for table, read_rows in rows:
            if lazy := self._lazy(table):
                lazy.look_ahead(read_rows)
        self._dense = [
            only_copy(v.value) for v in variables if self._lazy(v) is None
        ]
        for variable in self._dense:
            self._move(variable, 1.0)

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
        for table in self._tables.values():
            table.undo_look_ahead()
        for variable in self._dense:
            self._move(variable, -1.0)
        self._ahead.assign(0)

    def _lazy(self, variable: Any) -> LazyRows | None:
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
        velocity = only_copy(self.velocity[self.variable_index(variable)].value)
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
            for gradient, variable in zip(gradients, variables, strict=True):
                self.update_step(gradient, variable, learning_rate)
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


class NesterovSchedule(keras.callbacks.Callback):
    """Sets mu to 0.9 at both ends of the training and to 0.995 in between.

    Palangi et al. 2016, section IV: "in the first and last 2% of all
    parameter updates mu = 0.9 and for the other 96% mu = 0.995". Training
    steps are counted by `optimizer.iterations`, which checkpoints hold, so
    that a resumed run continues the schedule.

    Args:
        total_steps: Number of training steps from the optimizer's first
            one on. By default the schedule spans this `fit`, from its
            `initial_epoch` to its last epoch, which needs a dataset of known
            cardinality.
        ends: mu in the first and in the last part. Default 0.9.
        middle: mu in between. Default 0.995.
        fraction: Share of the training steps in the first part, and also in
            the last part. Default 0.02.

    Raises:
        InputError: The number of training steps is neither given nor known,
            `steps_per_execution` is not 1, or the optimizer has no momentum
            variable.

    Example:
    >>> model.fit(pairs, epochs=8, callbacks=[NesterovSchedule()])
    """

    def __init__(
        self,
        total_steps: int | None = None,
        ends: float = 0.9,
        middle: float = 0.995,
        fraction: float = 0.02,
    ) -> None:
        super().__init__()
        self.total_steps = total_steps
        self.ends = ends
        self.middle = middle
        self.fraction = fraction
        self._first = 0
        self._total: int | None = None

    def momentum(self, step: int, total: int) -> float:
        """Returns mu of a training step, counted from 0, among `total`."""
        edge = self.fraction * total
        inside = edge <= step < total - edge
        return self.middle if inside else self.ends

    def on_train_begin(self, logs: Any = None) -> None:
        """Checks that the momentum can be set and the steps are known."""
        momentum = getattr(self.model.optimizer, "momentum", None)
        if not isinstance(momentum, keras.Variable):
            raise InputError(
                "NesterovSchedule needs an optimizer whose momentum is a "
                "variable, such as NesterovMomentum; the model has "
                f"{type(self.model.optimizer).__name__}"
            )
        if self.model.steps_per_execution != 1:
            raise InputError(
                "NesterovSchedule sets the momentum of each training step and "
                "needs steps_per_execution=1, not "
                f"{self.model.steps_per_execution}"
            )
        if self.total_steps is None and self.params.get("steps") is None:
            raise InputError(
                "NesterovSchedule: the dataset's cardinality is unknown; "
                "give total_steps (epochs times steps)"
            )
        self._first, self._total = 0, self.total_steps

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Computes the number of training steps, in the first epoch."""
        if self._total is None:
            self._first = int(self.model.optimizer.iterations.numpy())
            epochs = self.params["epochs"] - epoch
            self._total = epochs * self.params["steps"]

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Sets mu for the coming training step."""
        assert self._total is not None  # on_epoch_begin has set it
        optimizer = self.model.optimizer
        step = int(optimizer.iterations.numpy()) - self._first
        optimizer.momentum.assign(self.momentum(step, self._total))
