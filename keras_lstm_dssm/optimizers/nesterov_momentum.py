"""`NesterovMomentum`, the optimizer of Palangi et al. 2016, Algorithm 1."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cache, partial
from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.optimizers.lazy_rows import LazyRows, LazyTables
from keras_lstm_dssm.private_api import JointUpdateOptimizer, only_copy
from keras_lstm_dssm.registration import register


def renormalise(
    gradients: Sequence[Any], groups: Sequence[int], threshold: float
) -> list[Any]:
    """Scales each group's gradient down to a norm of at most `threshold`.

        if ||grad|| > th then grad <- th grad / ||grad||

    Gradients are tensors, or `IndexedSlices` of distinct rows.
    """
    pairs = list(zip(gradients, groups, strict=True))
    factors = {}
    for group in set(groups):
        norm = tf.linalg.global_norm([g for g, of in pairs if of == group])
        factors[group] = threshold / tf.maximum(norm, threshold)
    return [scaled(g, tf.cast(factors[group], g.dtype)) for g, group in pairs]


def scaled(gradient: Any, factor: tf.Tensor) -> Any:
    """Multiplies a gradient; `*` would make a sparse one dense."""
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
    """Returns the variable that a training step can assign."""
    return only_copy(variable.value)


@register
class NesterovMomentum(JointUpdateOptimizer):
    """Optimizes by Nesterov's method, Palangi et al. 2016, (6), Algorithm 1.

        V_k = mu V_{k-1} - eps grad L(W_{k-1} + mu V_{k-1})
        W_k = W_{k-1} + V_k

    Between training steps the variables hold the look-ahead point W + mu V,
    where the next gradient is taken. Keras's `SGD(nesterov=True)` takes equal
    steps while mu is constant. Here mu may change: each step computes it from
    `iterations`. `finalize_variable_values`, which Keras calls at the end of
    `fit`, takes the variables to W. With `NesterovSchedule` among the
    callbacks, and in the models of this package, they hold W whenever no
    training step runs: in callbacks, validation, files, after an exception.

    Before the update, the gradient of each tower is renormalised separately:
    a norm above `threshold` becomes `threshold` (Algorithm 1, th_G).

    Args:
        learning_rate: epsilon, default 0.1: a float or a schedule.
        momentum: mu, default 0.9; `NesterovSchedule` changes it.
        threshold: th_G, default 1; `None` leaves gradients as they are.
        lazy: Whether `TwoTower` registers its tables (`set_tables`), so that
            rows which a batch does not read are updated later, with equal
            weights up to rounding. Default `True`.
        name: Name of the optimizer.
        **kwargs: See `keras.optimizers.Optimizer`. Weight decay, averages and
            constraints apply to W.

    Raises:
        InputError: An option needs all rows of a table that is updated
            lazily, or `tf.distribute` has several replicas.

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
            # `initializers.Constant` rounds to float32 first.
            return tf.constant(momentum, dtype, shape)

        self.momentum = self.add_variable((), start, name="momentum")
        self.middle_momentum = self.add_variable((), start, name="middle")
        self.phases = self.add_variable((3,), "zeros", "int64", name="phases")
        # mu of the coming step, and of all pending updates of rows.
        self._pace = self.add_variable((), start, name="pace")
        # The dense variables hold W + ahead V.
        self._ahead = _only_copy(self.add_variable((), "zeros", name="ahead"))
        # Steps after which the variables are left at W; never if 0.
        self._left = _only_copy(
            self.add_variable((), "zeros", "int32", name="left")
        )
        self.velocity: list[keras.Variable] = []
        self._group_of: dict[str, int] = {}
        self._tables = LazyTables()
        self._in_steps = False

    def build(self, variables: Sequence[keras.Variable]) -> None:
        """Creates V, zero, for each variable."""
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
        """Registers the tables whose rows are updated when they are read.

        A table that is left out now, because its tower was frozen, is no
        longer changed. See `LazyRows`.

        Args:
            tables: Variables `[rows, units]` that are built. A training step
                reads distinct rows of each once, by `row_reader`.

        Raises:
            InputError: The optimizer has an option that needs all rows.
        """
        for option in _ALL_ROWS:
            if tables and getattr(self, option):
                raise InputError(
                    f"{option} needs all rows of a table in each training "
                    "step, and rows of trigram tables are updated when they "
                    "are read: give NesterovMomentum lazy=False"
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
        parts = table, velocity, updated, self._pace, self.iterations
        return LazyRows(*map(_only_copy, parts))

    def row_reader(
        self, table: keras.Variable
    ) -> Callable[[tf.Tensor], tf.Tensor] | None:
        """Returns the function that reads a registered table in training."""
        lazy = self._tables.active.get(self.variable_key(table))
        return lazy.read if lazy else None

    def set_phases(
        self, ends: float, middle: float, phases: Sequence[int]
    ) -> None:
        """Sets mu of all training steps: `middle` within `phases`, else `ends`.

        `phases` are three values of `iterations`: of the first step with mu =
        `middle`, of the first step after it, and of the end of the training.
        """
        self.momentum.assign(ends)
        self.middle_momentum.assign(middle)
        self.phases.assign(phases)

    def momentum_at(self, step: Any) -> tf.Tensor:
        """Returns mu of a step, counted by `iterations` from 0."""
        first, end, _ = tf.unstack(self.phases.value)
        middle = (first <= step) & (step < end)
        return tf.where(middle, self.middle_momentum.value, self.momentum.value)

    def from_weights(
        self, train_function: Callable[[Any], Any], steps: int, eager: bool
    ) -> Callable[[Any], Any]:
        """Wraps a train function: variables hold W before and after each call.

        Args:
            train_function: See `keras.Model.make_train_function`.
            steps: The largest number of training steps that it takes.
            eager: Whether they run eagerly.
        """
        if getattr(train_function, "func", None) == self._run_from_weights:
            return train_function
        # Called by itself, a `tf.function` counts how often it is traced, for
        # all optimizers together, and warns of the fifth.
        graph = cache(
            tf.function(self._begin, autograph=False).get_concrete_function
        )
        begin = self._begin if eager else lambda *key: graph(*key)()
        return partial(self._run_from_weights, train_function, steps, begin)

    def _run_from_weights(
        self, train_function: Any, steps: int, begin: Any, iterator: Any
    ) -> Any:
        # A graph is traced for each set of variables.
        begin(steps, tuple(key for key, *_ in self._dense()))
        self._in_steps = True
        try:
            return train_function(iterator)
        finally:
            self._in_steps = False
            if self._left.numpy():  # it failed, or took fewer steps
                self._left.assign(0)
                self._shift(0.0)

    def _begin(self, steps: int, keys: tuple[str, ...]) -> None:
        self._left.assign(steps)
        self._set_pace()
        self._shift(self._pace)

    def sync(self) -> None:
        """Takes all weights to W of the last complete training step.

        Does nothing inside a training step that runs eagerly.
        """
        with tf.init_scope():
            if not self._in_steps:
                self._shift(0.0)
                self._tables.sync()

    def finalize_variable_values(self, var_list: Any) -> None:
        """Takes all weights to W, or to their averages (`use_ema`)."""
        self.sync()
        super().finalize_variable_values(var_list)

    def pending_rows_saved(self) -> AbstractContextManager[None]:
        """Delays updates of lazy rows while a checkpoint is saved."""
        return self._tables.pending_rows_saved()

    def apply(
        self, grads: Sequence[Any], trainable_variables: Any = None
    ) -> None:
        """Takes a training step, and looks ahead to the next."""
        variables = list(trainable_variables or self.built_variables)
        self.build(variables)
        # V is dense, and Keras cannot clip rows that occur twice.
        grads = [
            gradient
            if gradient is None or self.row_reader(variable)
            else tf.convert_to_tensor(gradient)
            for gradient, variable in zip(grads, variables, strict=True)
        ]
        # A batch that cannot be read must not run a part of the update.
        with tf.control_dependencies([g for g in grads if g is not None]):
            if self.weight_decay or self.gradient_accumulation_steps:
                self._shift(0.0)  # Keras decays, averages and constrains W
            super().apply(grads, variables)
            self._set_pace()
            follows = tf.not_equal(self._left, 1)
            self._left.assign(tf.maximum(self._left - 1, 0))
            tf.cond(follows, lambda: self._shift(self._pace), lambda: None)

    def update_variables(
        self,
        gradients: Sequence[Any],
        variables: Sequence[tf.Variable],
        learning_rate: tf.Tensor,
    ) -> None:
        """Renormalises the gradients and takes all variables to W_k."""
        self._shift(self._pace)  # unless they are there, as in `fit`
        keys = [self.variable_key(variable) for variable in variables]
        if self.threshold is not None:
            # Without groups, all variables are in group -1.
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
            way = tf.cast(self._pace, weight.dtype) * velocity
            if key in changes:
                velocity.assign(way + changes[key])
                weight.assign_add(changes[key])
            else:  # it has no gradient, and stays at W
                weight.assign_sub(way)
        self._ahead.assign(0)

    def _set_pace(self) -> None:
        """Sets mu of the coming step; if mu changes, updates all rows first."""
        pace, mu = _only_copy(self._pace), self.momentum_at(self.iterations)
        # Rows move by a geometric sum as long as mu does not change.
        tf.cond(tf.not_equal(pace, mu), self._tables.sync, lambda: None)
        pace.assign(mu)

    def _shift(self, ahead: Any) -> None:
        """Takes the dense variables to W + ahead V."""

        def move() -> None:
            for _, weight, velocity in self._dense():
                way = tf.cast(ahead - self._ahead, weight.dtype)
                weight.assign_add(way * velocity)
            self._ahead.assign(ahead)

        tf.cond(tf.not_equal(self._ahead, ahead), move, lambda: None)

    def _dense(self) -> list[tuple[str, tf.Variable, tf.Variable]]:
        """Returns key, W and V of each variable that is trained, not lazily."""
        both = zip(self.built_variables, self.velocity, strict=True)
        return [
            (
                self.variable_key(weight),
                _only_copy(weight),
                _only_copy(velocity),
            )
            for weight, velocity in both
            if weight.trainable and not self.row_reader(weight)
        ]

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor arguments as a dict, for `from_config`."""
        own = {"threshold": self.threshold, "lazy": self.lazy}
        momentum = self.initial_momentum
        return {**super().get_config(), "momentum": momentum, **own}
