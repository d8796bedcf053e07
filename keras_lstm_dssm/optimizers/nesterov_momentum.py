"""Nesterov's momentum as in Palangi et al. 2016, and the schedule of mu.

W are the weights, V their velocity, and mu is the momentum. `LazyRows` delays
the update of each row of an embedding table until a batch reads the row.
"""

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.private_api import JointUpdateOptimizer, only_copy
from keras_lstm_dssm.registration import register


class _ReadRows(NamedTuple):
    """Holds the rows of a table that the current training step has read."""

    indices: tf.Tensor
    weights: tf.Tensor  # rows of W + mu V, where the gradient is computed
    velocity: tf.Tensor  # rows of V as stored, before the missed updates
    decay: tf.Tensor  # factor of V for all missed steps and this step together


def _is_reshaped(tensor: tf.Tensor, original: tf.Tensor) -> bool:
    """Returns whether `tensor`, in a graph, is a reshaped `original`."""
    return (
        tf.is_symbolic_tensor(tensor)
        and tensor.op.type == "Reshape"
        and tensor.op.inputs[0] is original
    )


@dataclass(eq=False)
class LazyRows:
    """Updates a row of a table W only when a batch reads the row.

    In Algorithm 1, momentum moves all rows in each training step. Here a
    training step updates only the rows that the step reads. `read` also
    computes the updates that these rows have missed.
    """

    table: tf.Variable  # W, `[rows, units]`
    velocity: tf.Variable  # V, `[rows, units]`
    updated: tf.Variable  # int `[rows]`: value of `steps` at the last update
    mu: tf.Variable  # must be constant between two calls of `sync`
    steps: tf.Variable  # number of complete training steps
    _last_read: _ReadRows | None = field(default=None, init=False)

    def read(self, indices: tf.Tensor) -> tf.Tensor:
        """Returns rows of W + mu V after the missed updates.

        The row numbers `indices` must be distinct.
        """
        updated = tf.gather(self.updated, indices)
        decay, distance = self._powers(updated, self.steps + 1)
        velocity = tf.stop_gradient(tf.gather(self.velocity, indices))
        weights = tf.gather(self.table, indices) + velocity * distance
        self._last_read = _ReadRows(indices, weights, velocity, decay)
        return weights

    def update(self, change: tf.IndexedSlices) -> None:
        """Completes a training step: adds `change` to rows of V and W.

        `change` is -eps times the gradient; its indices are distinct.
        """
        indices = change.indices
        # With several workers, a gradient may have rows that this worker has
        # not read. All rows of the gradient are then read here.
        if self._last_read is None or not _is_reshaped(
            indices, self._last_read.indices
        ):
            self.read(indices)
        rows, self._last_read = self._last_read, None
        assert rows is not None
        step = tf.cast(self.steps + 1, self.updated.dtype)
        # `scatter_add` would be slower, because it allows repeated indices.
        for variable, values in (
            (self.velocity, rows.velocity * rows.decay + change.values),
            (self.table, rows.weights + change.values),
            (self.updated, tf.fill(tf.shape(indices), step)),
        ):
            variable.scatter_update(tf.IndexedSlices(values, indices))

    def sync(self) -> None:
        """Brings all rows up to date with the last complete training step."""
        eager = tf.executing_eagerly()
        if eager and self.updated.numpy().min() >= self.steps.numpy():
            return
        decay, distance = self._powers(self.updated, self.steps)
        self.table.assign_add(self.velocity * distance)
        self.velocity.assign(self.velocity * decay)
        self.restart()

    def restart(self) -> None:
        """Marks all rows as up to date with the last complete training step."""
        steps = tf.cast(self.steps, self.updated.dtype)
        self.updated.assign(tf.fill(tf.shape(self.updated), steps))

    def _powers(
        self, updated: tf.Tensor, steps: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns mu^m and mu + ... + mu^m, `[r, 1]`; m = steps - updated."""
        # In m steps without a gradient, V becomes mu^m V, and W moves by
        # (mu + ... + mu^m) V. This sum is mu (1 - mu^m) / (1 - mu). In float32,
        # 1 - mu^m would lose most digits.
        m = tf.cast(tf.cast(steps, updated.dtype) - updated, tf.float64)
        mu = tf.cast(self.mu, tf.float64)
        decay = mu**m
        rest = 1 - mu
        distance = tf.where(
            rest > 0, mu * (1 - decay) / tf.where(rest > 0, rest, 1), m
        )
        decay, distance = (
            tf.cast(power, self.table.dtype)[:, tf.newaxis]
            for power in (decay, distance)
        )
        return decay, distance


class LazyTables:
    """Holds the `LazyRows` of each table, by the table's key in the optimizer.

    The `LazyRows` of a table are kept when training stops changing the table.
    """

    def __init__(self) -> None:
        self.active: dict[str, LazyRows] = {}
        """The tables that training changes."""
        self._created: dict[str, LazyRows] = {}
        self._syncing = threading.Lock()
        self._sync_disabled = False

    def activate(self, makers: Mapping[str, Callable[[], LazyRows]]) -> None:
        """Activates only the tables with the keys of `makers`.

        The functions in `makers` create the `LazyRows` of new tables. Call
        `sync` first.
        """
        previous, self.active = self.active, {}
        for key, make in makers.items():
            if key not in self._created:
                self._created[key] = make()
            self.active[key] = self._created[key]
            if key not in previous:
                self.active[key].restart()

    def sync(self) -> None:
        """Brings all rows up to date, except while a checkpoint is saved."""
        with self._syncing:
            if not self._sync_disabled:
                for table in self.active.values():
                    table.sync()

    @contextmanager
    def pending_rows_saved(self) -> Iterator[None]:
        """Disables `sync` while a checkpoint is saved."""
        # `sync` rounds weights once more, so a resumed run would differ from a
        # run without interruption.
        self._sync_disabled = True
        try:
            yield
        finally:
            self._sync_disabled = False


def renormalise(
    gradients: Sequence[Any], groups: Sequence[int], threshold: float
) -> list[Any]:
    """Scales the gradients of each group to a joint norm <= `threshold`.

    If ||grad|| > th, then grad <- th grad / ||grad|| (Algorithm 1). The rows of
    a sparse gradient must be distinct.
    """
    pairs = list(zip(gradients, groups, strict=True))
    factors = {}
    for number in set(groups):
        members = [gradient for gradient, group in pairs if group == number]
        norm = tf.linalg.global_norm(members)
        factors[number] = threshold / tf.maximum(norm, threshold)
    return [scaled(g, tf.cast(factors[group], g.dtype)) for g, group in pairs]


def scaled(gradient: Any, factor: tf.Tensor) -> Any:
    """Multiplies a gradient; `*` would make a sparse gradient dense."""
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient * factor
    return tf.IndexedSlices(
        gradient.values * factor, gradient.indices, gradient.dense_shape
    )


_ALL_ROWS = (
    "weight_decay", "use_ema", "global_clipnorm", "loss_scale_factor",
    "gradient_accumulation_steps",
)  # fmt: skip
"""Options of Keras's optimizers that need all rows of a table in each step."""


def _only_copy(variable: keras.Variable) -> tf.Variable:
    return only_copy(variable.value)


@register
class NesterovMomentum(JointUpdateOptimizer):
    """Optimizes by Nesterov's method: Palangi et al. 2016, (6), Algorithm 1.

        V_k = mu V_{k-1} - eps grad L(W_{k-1} + mu V_{k-1})
        W_k = W_{k-1} + V_k

    After a training step the optimizer moves the variables to the look-ahead
    point W + mu V, because the next gradient is computed there. While mu is
    constant, the updates equal Keras's `SGD(nesterov=True)`. At the end of
    `fit`, `finalize_variable_values` moves the variables back to W. Models of
    this package also move the variables to W before a callback or a validation
    runs, and after an exception. Other models need the callback
    `NesterovSchedule` for this.

    Before the update, the gradient of each tower is renormalised separately:
    a norm above `threshold` becomes `threshold` (Algorithm 1, th_G).

    Args:
        learning_rate: epsilon, a float or a schedule, default 0.1.
        momentum: mu, default 0.9. `NesterovSchedule` changes mu.
        threshold: th_G, default 1. `None` disables renormalisation.
        lazy: Whether a `TwoTower` updates a row of its trigram tables only when
            a batch reads the row. Results with `True` and `False` are equal up
            to rounding. Default `True`.
        name: Name of the optimizer.
        **kwargs: See `keras.optimizers.Optimizer`. Weight decay, averages and
            constraints apply to W.

    Raises:
        InputError: An option needs all rows of a lazily updated table, or
            `tf.distribute` has several replicas.

    Example:
    >>> model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    >>> model.compile(NesterovMomentum(0.1), "mse")
    >>> x, y = np.ones((8, 2)), np.zeros((8, 1))
    >>> fitted = model.fit(x, y, verbose=0, callbacks=[NesterovSchedule()])
    """

    def __init__(
        self,
        learning_rate: Any = 0.1,
        momentum: float = 0.9,
        threshold: float | None = 1.0,
        lazy: bool = True,
        name: str = "nesterov_momentum",
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, name=name, **kwargs)
        self.initial_momentum = momentum
        self.threshold = threshold
        self.lazy = lazy

        def start(shape: Any, dtype: str) -> tf.Tensor:
            # `initializers.Constant` would round to float32.
            return tf.constant(momentum, dtype, shape)

        self.momentum = self.add_variable((), start, name="momentum")
        self.middle_momentum = self.add_variable((), start, name="middle")
        self.phases = self.add_variable((3,), "zeros", "int64", name="phases")
        # mu of the next training step, and of all pending updates of rows.
        self._mu = self.add_variable((), start, name="pace")
        # The variables without lazy updates are now at W + `_ahead` V.
        self._ahead = _only_copy(self.add_variable((), "zeros", name="ahead"))
        # Number of training steps left in the current call of the train
        # function, or 0 if the number is unknown. The last step of a call
        # leaves the variables at W.
        self._steps_left = _only_copy(
            self.add_variable((), "zeros", "int32", name="left")
        )
        self.velocity: list[keras.Variable] = []
        self._group_of: dict[str, int] = {}
        self._tables = LazyTables()
        self._in_train_function = False

    def build(self, variables: Sequence[keras.Variable]) -> None:
        """Creates the velocity V of each variable."""
        if self.built:
            return
        super().build(variables)
        self.velocity = self.add_optimizer_variables(variables, "velocity")

    def set_groups(self, groups: Sequence[Sequence[keras.Variable]]) -> None:
        """Sets the variables whose gradients are renormalised together."""
        self._group_of = {
            self.variable_key(variable): number
            for number, group in enumerate(groups)
            for variable in group
        }

    def set_tables(self, tables: Sequence[keras.Variable]) -> None:
        """Replaces the tables that are updated lazily.

        Each training step must read each table `[rows, units]` once, by the
        function that `row_reader` returns, with distinct row indices. Raises
        `InputError` if an option needs all rows.
        """
        for option in _ALL_ROWS:
            if tables and getattr(self, option):
                raise InputError(
                    f"{option} needs all rows of a table in each training "
                    "step, but a row of a trigram table is updated only when "
                    "it is read: give NesterovMomentum lazy=False"
                )
        self.sync()
        self._tables.activate(
            {
                self.variable_key(table): partial(self._lazy_rows, table)
                for table in tables
            }
        )

    def _lazy_rows(self, table: keras.Variable) -> LazyRows:
        updated = self.add_variable(
            table.shape[:1], "zeros", "int32", name=f"{table.name}_updated"
        )
        velocity = self.velocity[self.variable_index(table)]
        variables = table, velocity, updated, self._mu, self.iterations
        return LazyRows(*map(_only_copy, variables))

    def row_reader(
        self, table: keras.Variable
    ) -> Callable[[tf.Tensor], tf.Tensor] | None:
        """Returns the reader of a lazily updated table's rows, or `None`."""
        lazy = self._tables.active.get(self.variable_key(table))
        return lazy.read if lazy else None

    def set_phases(
        self, ends: float, middle: float, phases: Sequence[int]
    ) -> None:
        """Sets the schedule: mu is `middle` in the middle phase, else `ends`.

        `phases` are three values of `iterations`: the start and the end of the
        middle phase, and the end of training.
        """
        self.momentum.assign(ends)
        self.middle_momentum.assign(middle)
        self.phases.assign(phases)

    def momentum_at(self, step: Any) -> tf.Tensor:
        """Returns mu of a training step, counted from 0."""
        first, end, _ = tf.unstack(self.phases.value)
        is_middle = (first <= step) & (step < end)
        return tf.where(
            is_middle, self.middle_momentum.value, self.momentum.value
        )

    def from_weights(
        self, train_function: Callable[[Any], Any], steps: int, eager: bool
    ) -> Callable[[Any], Any]:
        """Wraps a train function: variables are at W before and after a call.

        A call of `train_function` runs up to `steps` training steps, eagerly if
        `eager` is true.
        """
        if getattr(train_function, "func", None) == self._run_from_weights:
            return train_function
        # A `tf.function` would warn of retracing; concrete functions do not.
        graph = cache(
            tf.function(self._begin, autograph=False).get_concrete_function
        )
        begin = self._begin if eager else lambda *key: graph(*key)()
        return partial(self._run_from_weights, train_function, steps, begin)

    def _run_from_weights(
        self, train_function: Any, steps: int, begin: Any, iterator: Any
    ) -> Any:
        begin(steps, tuple(key for key, *_ in self._dense()))
        self._in_train_function = True
        try:
            return train_function(iterator)
        finally:
            self._in_train_function = False
            if self._steps_left.numpy():  # an exception, or the data ended
                self._steps_left.assign(0)
                self._shift(0.0)

    def _begin(self, steps: int, keys: tuple[str, ...]) -> None:
        """Moves variables from W to W + mu V, where the gradient is taken."""
        self._steps_left.assign(steps)
        self._set_mu()
        self._shift(self._mu)

    def sync(self) -> None:
        """Moves all variables to W of the last complete training step.

        Does nothing while the train function runs.
        """
        with tf.init_scope():
            if not self._in_train_function:
                self._shift(0.0)
                self._tables.sync()

    def finalize_variable_values(self, var_list: Any) -> None:
        """Moves all variables to W, or to their averages (`use_ema`)."""
        self.sync()
        super().finalize_variable_values(var_list)

    def pending_rows_saved(self) -> AbstractContextManager[None]:
        """Keeps updates of rows pending while a checkpoint is saved."""
        return self._tables.pending_rows_saved()

    def apply(
        self, grads: Sequence[Any], trainable_variables: Any = None
    ) -> None:
        """Updates the variables; if a step follows, moves them to W + mu V."""
        variables = list(trainable_variables or self.built_variables)
        self.build(variables)
        # Keras cannot clip sparse gradients with repeated rows. The gradients
        # of lazily updated tables have distinct rows and stay sparse; all other
        # gradients become dense.
        grads = [
            gradient
            if gradient is None or self.row_reader(variable)
            else tf.convert_to_tensor(gradient)
            for gradient, variable in zip(grads, variables, strict=True)
        ]
        # If a batch cannot be read, no part of the update may run. All parts
        # therefore wait for the gradients.
        with tf.control_dependencies([g for g in grads if g is not None]):
            if self.weight_decay or self.gradient_accumulation_steps:
                # Keras decays the weights before the update, so the variables
                # must be at W. In a step that only accumulates gradients,
                # `update_variables` does not run, so the variables are moved
                # to W here.
                self._shift(0.0)
            super().apply(grads, variables)
            self._set_mu()
            step_follows = tf.not_equal(self._steps_left, 1)
            self._steps_left.assign(tf.maximum(self._steps_left - 1, 0))
            tf.cond(step_follows, lambda: self._shift(self._mu), lambda: None)

    def update_variables(
        self,
        gradients: Sequence[Any],
        variables: Sequence[tf.Variable],
        learning_rate: tf.Tensor,
    ) -> None:
        """Renormalises the gradients and moves all variables to W_k."""
        self._shift(self._mu)  # no effect unless the variables are at W
        keys = [self.variable_key(variable) for variable in variables]
        if self.threshold is not None:
            groups = [self._group_of.get(key, -1) for key in keys]
            gradients = renormalise(gradients, groups, self.threshold)
        changes = {
            key: scaled(gradient, -tf.cast(learning_rate, gradient.dtype))
            for key, gradient in zip(keys, gradients, strict=True)
        }
        for key, lazy in self._tables.active.items():
            if key in changes:
                lazy.update(changes[key])
        for key, weight, velocity in self._dense():
            mu_v = tf.cast(self._mu, weight.dtype) * velocity
            if key in changes:
                velocity.assign(mu_v + changes[key])
                weight.assign_add(changes[key])
            else:  # without a gradient, the variable moves back to W
                weight.assign_sub(mu_v)
        self._ahead.assign(0)

    def _set_mu(self) -> None:
        """Sets mu of the next step; first updates all rows if mu changes."""
        variable, mu = _only_copy(self._mu), self.momentum_at(self.iterations)
        tf.cond(tf.not_equal(variable, mu), self._tables.sync, lambda: None)
        variable.assign(mu)

    def _shift(self, ahead: Any) -> None:
        """Moves the variables without lazy updates to W + ahead V."""

        def move() -> None:
            for _, weight, velocity in self._dense():
                factor = tf.cast(ahead - self._ahead, weight.dtype)
                weight.assign_add(factor * velocity)
            self._ahead.assign(ahead)

        tf.cond(tf.not_equal(self._ahead, ahead), move, lambda: None)

    def _dense(self) -> list[tuple[str, tf.Variable, tf.Variable]]:
        """Returns key, W and V of trainable variables without lazy updates."""
        pairs = zip(self.built_variables, self.velocity, strict=True)
        return [
            (
                self.variable_key(weight),
                _only_copy(weight),
                _only_copy(velocity),
            )
            for weight, velocity in pairs
            if weight.trainable and not self.row_reader(weight)
        ]

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor arguments as a dict, for `from_config`."""
        return {
            **super().get_config(),
            "momentum": self.initial_momentum,
            "threshold": self.threshold,
            "lazy": self.lazy,
        }


class NesterovSchedule(keras.callbacks.Callback):
    """Sets mu to 0.9 at both ends of the training and to 0.995 in between.

    Palangi et al. 2016, section IV: "in the first and last 2% of all
    parameter updates mu = 0.9 and for the other 96% mu = 0.995". The position
    in the schedule is `optimizer.iterations`, so a resumed run continues the
    schedule. `NesterovMomentum` computes mu inside of each training step, so
    `steps_per_execution` has no effect on mu. An epoch's logs get the entry
    `momentum`, which is mu of the epoch's last training step.

    If the optimizer is `NesterovMomentum`, other callbacks, the validation of
    `fit` and saved files see the weights W of Algorithm 1, not the look-ahead
    point.

    The optimizer `keras.optimizers.SGD` works only with
    `compile(run_eagerly=True)`, because a traced training step of `SGD` keeps
    the momentum that was set when the step was traced.

    Args:
        total_steps: Number of training steps from the optimizer's first step
            on. By default the schedule spans this `fit`, from `initial_epoch`
            to the last epoch; the dataset must then have a known
            cardinality. If `keras.callbacks.BackupAndRestore` resumes the
            training, the old schedule continues.
        ends: mu in the first and in the last phase. Default 0.9.
        middle: mu in the middle phase. Default 0.995.
        fraction: Share of the training steps in the first phase, and also in
            the last phase. Default 0.02.

    Raises:
        InputError: The number of training steps is neither given nor known,
            or the momentum of the optimizer cannot be changed.

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
        self._phases: Sequence[int] | None = None

    def momentum(self, step: int, total: int) -> float:
        """Returns mu of training step `step` (from 0) of `total` steps."""
        return self._momentum_at(step, self._phases_of(0, total))

    def _phases_of(self, start: int, total: int) -> Sequence[int]:
        """Returns start and end of the middle phase, and the training's end."""
        edge = self.fraction * total
        steps = math.ceil(edge), math.ceil(total - edge), total
        return [start + step for step in steps]

    def on_train_begin(self, logs: Any = None) -> None:
        """Checks optimizer and number of steps; wraps the train function."""
        self._phases = None
        optimizer, model = self._optimizer(), self.model
        if isinstance(optimizer, NesterovMomentum):
            model.train_function = optimizer.from_weights(
                model.train_function,
                model.steps_per_execution,
                model.run_eagerly,
            )
        elif not (
            isinstance(optimizer, keras.optimizers.SGD)
            and optimizer.momentum
            and model.run_eagerly
            and model.steps_per_execution == 1
        ):
            raise InputError(
                "NesterovSchedule cannot change the momentum of "
                f"{type(optimizer).__name__} in a training step: compile with "
                "NesterovMomentum, or with SGD, momentum=0.9, "
                "run_eagerly=True and steps_per_execution=1"
            )
        if self.total_steps is None and self.params.get("steps") is None:
            raise InputError(
                "NesterovSchedule: the dataset's cardinality is unknown; "
                "give total_steps (epochs times steps)"
            )

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Sets the schedule before the first epoch.

        `on_train_begin` is too early: other callbacks load checkpoints there.
        """
        if self._phases is not None:
            return
        optimizer = self._optimizer()
        saved_phases = [0, 0, 0]
        if isinstance(optimizer, NesterovMomentum):
            saved_phases = optimizer.phases.numpy().tolist()
        if self.total_steps is not None:
            self._phases = self._phases_of(0, self.total_steps)
        else:
            done, steps = self._done(), self.params["steps"]
            total = steps * (self.params["epochs"] - epoch)
            total //= optimizer.gradient_accumulation_steps or 1
            # A resumed `fit` may repeat a part of an epoch. So `done + total`
            # is the saved end, or less than an epoch after the saved end.
            *_, end = saved_phases
            resumed = done < end <= done + total < end + steps
            self._phases = (
                saved_phases if resumed else self._phases_of(done, total)
            )
        if isinstance(optimizer, NesterovMomentum):
            optimizer.set_phases(self.ends, self.middle, self._phases)

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Sets `SGD.momentum` for the next training step."""
        optimizer = self._optimizer()
        if isinstance(optimizer, keras.optimizers.SGD):
            optimizer.momentum = self._momentum_at(self._done(), self._phases)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Adds mu of the last training step to the logs."""
        if logs is not None:
            logs["momentum"] = self._momentum_at(self._done() - 1, self._phases)

    def _momentum_at(self, step: int, phases: Sequence[int] | None) -> float:
        assert phases is not None  # on_epoch_begin has set them
        first, end, _ = phases
        return self.middle if first <= step < end else self.ends

    def _done(self) -> int:
        return int(self._optimizer().iterations.numpy())

    def _optimizer(self) -> Any:
        """Returns the optimizer, without a `LossScaleOptimizer` around it."""
        optimizer = self.model.optimizer
        return getattr(optimizer, "inner_optimizer", optimizer)
