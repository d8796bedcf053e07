"""NesterovMomentum: the update (6), exact while the momentum changes."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.registration import register
from keras_lstm_dssm.training.lazy_rows import LazyRows


def renormalise(
    gradients: Sequence[Any], groups: Sequence[int], threshold: float
) -> list[Any]:
    """Shortens each group's gradient to the threshold when it is longer.

        if ||grad|| > th then grad <- th grad / ||grad||

    Args:
        gradients: Tensors, or `IndexedSlices` of distinct rows, see
            `sum_rows`.
        groups: For each gradient, which group's it is: the two towers'
            gradients are shortened on their own.
        threshold: th_G, above 0.

    Returns:
        The gradients, in their order.
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
    """Sums a sparse gradient's rows of one index, as its norm requires."""
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    indices, place = tf.unique(gradient.indices)
    values = tf.math.unsorted_segment_sum(
        gradient.values, place, tf.size(indices)
    )
    return tf.IndexedSlices(values, indices, gradient.dense_shape)


@register
class NesterovMomentum(keras.optimizers.Optimizer):
    """Nesterov's method as Palangi et al. 2016 have it, (6), Algorithm 1.

        V_k = mu V_{k-1} - eps grad L(W_{k-1} + mu V_{k-1})
        W_k = W_{k-1} + V_k

    The gradient belongs to the look-ahead point W + mu V. Keras's `SGD`
    keeps that point in the model, with the *next* mu in it, and reads mu as
    a constant; so a changing mu makes it inexact, and what is evaluated and
    saved is not W. Here `look_ahead` moves the variables to the look-ahead
    point just before the gradient is computed, and `apply` takes them from
    there to W_k. Between steps the model always holds W, and one value of
    mu is all that a step needs. `TwoTower.train_step` calls both.

    Each tower's gradient is renormalised on its own before the update: a
    norm above `threshold` becomes `threshold` (Algorithm 1, th_G).

    Args:
        learning_rate: The fixed step eps.
        momentum: mu at the start; `NesterovSchedule` changes it. It lives in
            a variable, so that a traced step sees the change.
        threshold: th_G; `None` leaves gradients as they are.
        lazy: Whether `TwoTower` names its tables (`set_tables`), so that
            rows move when they are read. The weights are those of the dense
            update, to rounding.

    Raises:
        tf.errors.InvalidArgumentError: A step was applied without a
            `look_ahead` before it, or begun while one was under way.

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
            # Decay, clipping, averages and accumulation would have to know
            # of the look-ahead point, and of rows that are behind.
            raise ValueError(
                "NesterovMomentum has none of Keras's other options; got "
                + ", ".join(kwargs)
            )
        super().__init__(learning_rate=learning_rate, name=name)
        self.initial_momentum = momentum
        self.threshold = threshold
        self.lazy = lazy
        self.momentum = self.add_variable(
            shape=(), initializer=_constant(momentum), name="momentum"
        )
        self._ahead = self.add_variable(
            shape=(), initializer="zeros", dtype="int32", name="ahead"
        )
        # The momentum that rows of tables have moved with since they were
        # last brought up to date.
        self._pace = self.add_variable(
            shape=(), initializer=_constant(momentum), name="pace"
        )
        self._groups: list[list[str]] = []
        self._tables: dict[str, LazyRows] = {}

    def build(self, variables: Sequence[keras.Variable]) -> None:
        """Creates V, zero, for each variable."""
        if self.built:
            return
        super().build(variables)
        self.velocity = self.add_optimizer_variables(variables, "velocity")

    def set_groups(self, groups: Sequence[Sequence[keras.Variable]]) -> None:
        """Says which variables' gradients are renormalised together.

        Args:
            groups: The variables of each tower. Without it, all variables
                are one group.
        """
        self._groups = [[self._var_key(v) for v in group] for group in groups]

    def set_tables(self, tables: Sequence[keras.Variable]) -> None:
        """Names tables whose rows move only when a batch reads them.

        `look_ahead` must then be told the rows, and `settle` brings the
        other rows up to date before the model is used or saved. The result
        is that of the dense update, to rounding; see `LazyRows`.

        Args:
            tables: Variables `[rows, units]`, built already, each read by
                one gather of distinct rows in a step.
        """
        for table in tables:
            if self._lazy(table) is not None:  # compiled again
                continue
            updated = self.add_variable(
                shape=(table.shape[0],),
                initializer="zeros",
                dtype="int32",
                name=f"{table.name}_updated",
            )
            velocity = self.velocity[self._get_variable_index(table)]
            self._tables[self._var_key(table)] = LazyRows(
                table.value, velocity, updated
            )

    def look_ahead(
        self,
        variables: Sequence[keras.Variable],
        rows: Sequence[tuple[keras.Variable, tf.Tensor]] = (),
    ) -> None:
        """Moves `variables` from W to W + mu V.

        Args:
            variables: All that the gradient will be taken for.
            rows: For each of the tables, the distinct rows that the step
                reads, int `[r]`.

        Raises:
            tf.errors.InvalidArgumentError: The variables are at a look-ahead
                point already, because a step failed before its `apply`.
        """
        self.build(variables)
        with tf.control_dependencies(
            [
                tf.debugging.assert_equal(
                    self._ahead.value,
                    0,
                    "NesterovMomentum: the step before failed halfway; load "
                    "the last checkpoint",
                )
            ]
        ):
            self._ahead.assign(1)
        if self._tables:
            # Rows move by a geometric sum while the momentum stays as it is.
            tf.cond(
                tf.not_equal(self._pace.value, self.momentum.value),
                self._settle,
                lambda: None,
            )
            self._pace.assign(self.momentum)
        for table, read in rows:
            self._tables[self._var_key(table)].look_ahead(
                read, self._pace.value, self.iterations.value
            )
        dense = [v.value for v in variables if self._lazy(v) is None]
        self._each(self._move_ahead, [(None, v) for v in dense])

    def settle(self) -> None:
        """Brings all rows of the tables up to date with the last update."""
        self._settle()

    @tf.function
    def _settle(self) -> None:
        for table in self._tables.values():
            table.settle(self._pace.value, self.iterations.value)

    def _lazy(self, variable: Any) -> LazyRows | None:
        return self._tables.get(self._var_key(variable))

    def _move_ahead(self, _: Any, variable: tf.Variable, __: Any) -> None:
        velocity = self.velocity[self._get_variable_index(variable)]
        variable.assign_add(self._mu(variable.dtype) * velocity)

    def update_step(
        self,
        gradient: tf.Tensor,
        variable: tf.Variable,
        learning_rate: tf.Tensor,
    ) -> None:
        """Takes one variable from the look-ahead point to W_k."""
        step = scaled(gradient, -tf.cast(learning_rate, variable.dtype))
        lazy = self._lazy(variable)
        if lazy is not None:
            lazy.update(
                step.values,
                step.indices,
                self._pace.value,
                self.iterations.value,
            )
            return
        # W_k = W_{k-1} + mu V_{k-1} - eps grad: only the touched rows of a
        # table move here, the rest has moved in `look_ahead`.
        velocity = self.velocity[self._get_variable_index(variable)]
        self.assign(velocity, self._mu(variable.dtype) * velocity)
        self.assign_add(velocity, step)
        self.assign_add(variable, step)

    def _mu(self, dtype: tf.DType) -> tf.Tensor:
        return tf.cast(self.momentum, dtype)

    def _backend_update_step(
        self,
        grads: Sequence[tf.Tensor],
        trainable_variables: Sequence[keras.Variable],
        learning_rate: tf.Tensor,
    ) -> None:
        with tf.control_dependencies(
            [
                tf.debugging.assert_equal(
                    self._ahead.value,
                    1,
                    "NesterovMomentum: call look_ahead(variables) before the "
                    "gradient is computed; TwoTower.fit does",
                )
            ]
        ):
            variables = [v.value for v in trainable_variables]
            # Sum over the replicas first: the norm is the whole gradient's.
            pairs = self._all_reduce_sum_gradients(
                list(zip(grads, variables, strict=True))
            )
            gradients = [
                gradient if self._lazy(v) else sum_rows(gradient)
                for gradient, v in pairs
            ]
            if self.threshold is not None:
                gradients = renormalise(
                    gradients, self._towers(variables), self.threshold
                )
            self._each(
                self.update_step,
                list(zip(gradients, variables, strict=True)),
                learning_rate,
            )
            self._ahead.assign(0)

    def _towers(self, variables: Sequence[tf.Variable]) -> list[int]:
        """The group of each variable; without groups all are in one."""
        group = {key: n for n, keys in enumerate(self._groups) for key in keys}
        return [group.get(self._var_key(v), -1) for v in variables]

    def _each(
        self,
        update: Any,
        pairs: list[tuple[Any, tf.Variable]],
        learning_rate: Any = None,
    ) -> None:
        """Runs `update` on each variable, on every replica's copy of it."""

        def on_all_replicas(strategy: tf.distribute.Strategy) -> None:
            for gradient, variable in pairs:
                strategy.extended.update(
                    variable,
                    lambda v, g: update(g, v, learning_rate),
                    args=(gradient,),
                    group=False,
                )

        tf.__internal__.distribute.interim.maybe_merge_call(
            on_all_replicas, self._distribution_strategy
        )

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            "name": self.name,
            "learning_rate": super().get_config()["learning_rate"],
            "momentum": self.initial_momentum,
            "threshold": self.threshold,
            "lazy": self.lazy,
        }


def _constant(value: float) -> Any:
    return lambda shape, dtype: tf.fill(shape, tf.cast(value, dtype))
