"""Rows that move when they are read end where the dense update takes them."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from tests import reference

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


def lazy_table(
    start: np.ndarray = START, rate: float = RATE, **options: Any
) -> tuple[keras.Variable, dssm.NesterovMomentum]:
    """Makes a table, and an optimizer that updates the rows that are read."""
    table = keras.Variable(start, dtype="float64")
    optimizer = dssm.NesterovMomentum(rate, **{"threshold": 0.7, **options})
    optimizer.build([table])
    optimizer.set_tables([table])
    return table, optimizer


def test_equals_the_papers_update_over_400_steps(float64):
    table, optimizer = lazy_table()

    @tf.function
    def step(rows: tf.Tensor) -> None:
        optimizer.look_ahead([table], [(table, rows)])
        with tf.GradientTape() as tape:
            away = tf.gather(table.value, rows) - TARGET
            loss = tf.reduce_sum(tf.math.log(tf.math.cosh(away)))
        optimizer.apply(tape.gradient(loss, [table.value]), [table])

    wanted = reference.nesterov(gradient, [START], MOMENTA, RATE, 0.7)
    untouched = set()
    for k, (rows, mu) in enumerate(zip(READ, MOMENTA, strict=True)):
        optimizer.momentum.assign(mu)
        step(tf.constant(rows))
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
    assert step.experimental_get_tracing_count() == 1
    assert untouched == {tuple(START[0])}


def test_a_step_in_one_graph_or_two_or_that_failed(float64):
    """What one graph has read for the look-ahead is not used in another."""
    table, optimizer = lazy_table()

    def look_ahead(rows: tf.Tensor) -> None:
        optimizer.look_ahead([table], [(table, rows)])

    def apply(rows: tf.Tensor) -> None:
        values = tf.tanh(tf.gather(table.value, rows) - TARGET)
        optimizer.apply([tf.IndexedSlices(values, rows)], [table])

    def step(rows: tf.Tensor, fails: tf.Tensor) -> None:
        look_ahead(rows)
        with tf.control_dependencies([tf.debugging.Assert(~fails, [fails])]):
            apply(rows)

    one_graph = tf.function(step)
    two_graphs = tf.function(look_ahead), tf.function(apply)
    wanted = reference.nesterov(gradient, [START], MOMENTA, RATE, 0.7)
    for k, mu in enumerate(MOMENTA[:24]):
        rows = tf.constant(READ[k])
        optimizer.momentum.assign(mu)
        if k % 4 == 0:
            one_graph(rows, tf.constant(False))
        elif k % 4 == 1:
            for part in two_graphs:
                part(rows)
        elif k % 4 == 2:
            step(rows, tf.constant(False))
        else:
            with pytest.raises(tf.errors.InvalidArgumentError):
                one_graph(rows, tf.constant(True))
            optimizer.sync()
            one_graph(rows, tf.constant(False))
        np.testing.assert_allclose(
            table.numpy()[rows], wanted[k + 1][0][rows], rtol=1e-12, atol=1e-12
        )
