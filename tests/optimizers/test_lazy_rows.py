"""Rows that move when they are read end where the dense update takes them."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from tests import reference
from tests.models.small_towers import two_tower

STEPS, ROWS, RATE = 400, 30, 0.05
RANDOM = np.random.default_rng(7)
START = RANDOM.normal(size=(ROWS, 3))
TARGET = RANDOM.normal(size=3)
# Row 0 is never read, row 29 only once: geometric sums over hundreds of steps.
READ = [RANDOM.choice(np.arange(1, 29), 4, replace=False) for _ in range(STEPS)]
READ[200][0] = 29
MOMENTA = [dssm.NesterovSchedule().momentum(k, STEPS) for k in range(STEPS)]


def gradient(k: int, parameters: list[np.ndarray]) -> list[np.ndarray]:
    result = np.zeros_like(START)
    result[READ[k]] = np.tanh(parameters[0][READ[k]] - TARGET)
    return [result]


def lazy_table() -> tuple[keras.Variable, dssm.NesterovMomentum]:
    """Makes a table, and an optimizer that updates the rows that are read."""
    table = keras.Variable(START, dtype="float64")
    optimizer = dssm.NesterovMomentum(RATE, threshold=0.7)
    optimizer.set_phases(0.9, 0.995, [8, 392, STEPS])
    optimizer.build([table])
    optimizer.set_tables([table])
    return table, optimizer


def test_equals_the_papers_update_over_400_steps(float64):
    """Rows are right after a failed step, too, which only read rows."""
    table, optimizer = lazy_table()
    read: Any = optimizer.row_reader(table)

    @tf.function
    def step(rows: tf.Tensor, fails: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            away = read(rows) - TARGET
            loss = tf.reduce_sum(tf.math.log(tf.math.cosh(away)))
        gradients = tape.gradient(loss, [table.value])
        with tf.control_dependencies([tf.debugging.Assert(~fails, [fails])]):
            optimizer.apply(gradients, [table])

    wanted = reference.nesterov(gradient, [START], MOMENTA, RATE, 0.7)
    untouched = set()
    for k, rows in enumerate(READ):
        if k % 40 == 3:
            before = table.numpy()
            with pytest.raises(tf.errors.InvalidArgumentError):
                step(tf.constant(rows), tf.constant(True))
            np.testing.assert_array_equal(table, before)
        step(tf.constant(rows), tf.constant(False))
        # What was read is up to date at once.
        np.testing.assert_allclose(
            table.numpy()[rows], wanted[k + 1][0][rows], rtol=1e-12, atol=1e-12
        )
        if k in (0, 7, 150, STEPS - 1):
            optimizer.sync()
            np.testing.assert_allclose(
                table.numpy(), wanted[k + 1][0], rtol=1e-12, atol=1e-12
            )
            untouched.add(tuple(table.numpy()[0]))
    assert untouched == {tuple(START[0])}
    traced = step.get_concrete_function(tf.constant(READ[0]), tf.constant(True))
    assert step.experimental_get_tracing_count() == 1
    # The update takes what the step has read: of W, of V, of their steps.
    types = [operation.type for operation in traced.graph.get_operations()]
    assert types.count("ResourceGather") == 3


@pytest.mark.parametrize(("option", "value"), [
    ("weight_decay", 0.1), ("use_ema", True), ("global_clipnorm", 1.0),
    ("loss_scale_factor", 2.0), ("gradient_accumulation_steps", 2),
])  # fmt: skip
def test_options_that_need_all_rows(option, value):
    """One line says so; without lazy rows they train."""
    options = {"run_eagerly": True, option: value}
    message = f"^{option} needs all rows .* NesterovMomentum lazy=False$"
    with pytest.raises(dssm.InputError, match=message) as caught:
        compiled(**options)
    assert "\n" not in str(caught.value)
    model = compiled(lazy=False, **options)
    before = model.get_weights()
    for _ in range(2):
        model.train_on_batch(["hex bolt", "glue"], ["bolt", "wood glue"])
    for old, new in zip(before, model.get_weights(), strict=True):
        assert np.isfinite(new).all() and abs(new - old).max() > 1e-4


def compiled(run_eagerly: bool = True, **options: Any) -> dssm.TwoTower:
    model = two_tower()
    model.compile(
        dssm.NesterovMomentum(0.1, **options), dssm.CosineSoftmax(),
        run_eagerly=run_eagerly,
    )  # fmt: skip
    return model


@pytest.mark.parametrize(("option", "value"), [
    ("clipnorm", 1e-3), ("clipvalue", 1e-4),
])  # fmt: skip
def test_clipping_of_lazy_rows(option, value):
    """Equals the dense update."""
    queries, titles = ["hex bolt", "glue", "lamp"], ["bolt", "wood glue", "led"]
    models = [compiled(lazy=lazy, **{option: value}) for lazy in (True, False)]
    before = models[0].get_weights()
    for model in models:
        for start in (0, 1, 0):
            rows = slice(start, start + 2)
            model.train_on_batch(queries[rows], titles[rows])
    lazy, dense = (model.get_weights() for model in models)
    for one, other, old in zip(lazy, dense, before, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-8)
        assert 1e-6 < abs(one - old).max() < 1e-3
