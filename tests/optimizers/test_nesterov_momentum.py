"""(6) and the renormalisation of Algorithm 1, against NumPy."""

from collections.abc import Callable, Sequence

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm import NesterovMomentum, NesterovSchedule
from tests import reference

STEPS, RATE = 300, 0.02
RANDOM = np.random.default_rng(4)
START = [RANDOM.normal(size=(3, 2)), RANDOM.normal(size=(20, 2))]
MATRIX, TARGET = RANDOM.normal(size=(4, 3)), RANDOM.normal(size=(4, 2))
ROWS = RANDOM.integers(0, 20, (STEPS, 8))  # with rows more than once
MOMENTA = [NesterovSchedule().momentum(k, STEPS) for k in range(STEPS)]


def gradient(k: int, parameters: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Of sum log cosh(A w - B) + sum log cosh(table[rows] - 1) / 2."""
    dense, table = parameters
    by_table = np.zeros_like(table)
    np.add.at(by_table, ROWS[k], np.tanh(table[ROWS[k]] - 1) / 2)
    return [MATRIX.T @ np.tanh(MATRIX @ dense - TARGET), by_table]


def log_cosh(x: tf.Tensor) -> tf.Tensor:
    return tf.reduce_sum(tf.math.log(tf.math.cosh(x)))


def descend(
    optimizer: keras.optimizers.Optimizer,
    set_momentum: Callable[[float], None],
    traced: bool,
) -> list[list[np.ndarray]]:
    """Parameters before the first and after every step."""
    variables = [keras.Variable(value, dtype="float64") for value in START]
    optimizer.build(variables)
    if hasattr(optimizer, "set_groups"):
        optimizer.set_groups([[variable] for variable in variables])

    def step(rows: tf.Tensor) -> None:
        if hasattr(optimizer, "look_ahead"):
            optimizer.look_ahead(variables)
        dense, table = (variable.value for variable in variables)
        with tf.GradientTape() as tape:
            loss = log_cosh(MATRIX @ dense - TARGET)
            loss += log_cosh(tf.gather(table, rows) - 1) / 2
        gradients = tape.gradient(loss, [dense, table])
        assert isinstance(gradients[1], tf.IndexedSlices)
        optimizer.apply(gradients, variables)

    run = tf.function(step) if traced else step
    path = [[v.numpy() for v in variables]]
    for rows, mu in zip(ROWS, MOMENTA, strict=True):
        set_momentum(mu)
        run(tf.constant(rows))
        path.append([v.numpy() for v in variables])
    if traced:
        assert run.experimental_get_tracing_count() == 1
    return path


@pytest.mark.parametrize("threshold", [None, 0.5])
def test_follows_the_paper_while_the_momentum_changes(float64, threshold):
    """After each of 300 steps it holds Lambda_k, not the look-ahead point."""
    assert sorted(set(MOMENTA)) == [0.9, 0.995]
    optimizer = NesterovMomentum(RATE, threshold=threshold)
    found = descend(optimizer, optimizer.momentum.assign, traced=True)
    wanted = reference.nesterov(
        gradient, START, MOMENTA, RATE, threshold or np.inf
    )
    for step, paper in zip(found, wanted, strict=True):
        for value, exact in zip(step, paper, strict=True):
            scale = abs(exact).max()
            np.testing.assert_allclose(
                value, exact, rtol=1e-12, atol=1e-12 * scale
            )


def test_keras_sgd_does_not(float64):
    """SGD(nesterov=True) has the look-ahead point and mixes mu_{k-1}, mu_k."""
    sgd = keras.optimizers.SGD(RATE, 0.9, nesterov=True)
    found = descend(sgd, lambda mu: setattr(sgd, "momentum", mu), traced=False)[
        -1
    ]
    wanted = reference.nesterov(gradient, START, MOMENTA, RATE)[-1]
    velocity = [v.numpy() for v in sgd.momentums]
    back = [w - MOMENTA[-1] * v for w, v in zip(found, velocity, strict=True)]
    assert max(
        abs(one - exact).max() for one, exact in zip(back, wanted, strict=True)
    ) > 1e-3  # fmt: skip


def applied(
    optimizer: NesterovMomentum,
    gradients: Sequence[tf.Tensor | tf.IndexedSlices],
    groups: Sequence[Sequence[int]],
) -> list[np.ndarray]:
    """What a first step of rate 1 takes from variables of zeros."""
    variables = [keras.Variable(tf.zeros(g.shape)) for g in gradients]
    optimizer.build(variables)
    optimizer.set_groups([[variables[i] for i in group] for group in groups])
    optimizer.look_ahead(variables)
    optimizer.apply(gradients, variables)
    return [-variable.numpy() for variable in variables]


@pytest.mark.parametrize(("threshold", "gradients", "groups", "expected"), [
    (2.0, [[3.0], [0.0, 4.0], [0.6], [0.8]], [[0, 1], [2, 3]],
     [1.2, 0, 1.6, 0.6, 0.8]),
    (1.0, [[3.0], [4.0]], [], [0.6, 0.8]),
    (None, [[3.0], [4.0]], [], [3, 4]),
], ids=[
    "each group on its own", "all variables are one", "not at all",
])  # fmt: skip
def test_gradients_are_renormalised(threshold, gradients, groups, expected):
    optimizer = NesterovMomentum(1.0, threshold=threshold)
    found = applied(optimizer, [tf.constant(g) for g in gradients], groups)
    np.testing.assert_allclose(np.concatenate(found), expected, 1e-6)


def test_rows_of_one_index_are_summed_before_the_norm():
    """Rows 3, 1, 3 of 3, 4, 1: the gradient is (4, 4), not (3, 4, 1)."""
    values = tf.constant([[3.0], [4.0], [1.0]])
    gradient = tf.IndexedSlices(
        values, tf.constant([3, 1, 3]), tf.constant([5, 1])
    )
    (found,) = applied(NesterovMomentum(1.0, threshold=1.0), [gradient], [[0]])
    np.testing.assert_allclose(
        found[:, 0], [0, 0.5**0.5, 0, 0.5**0.5, 0], rtol=1e-6
    )


def test_apply_needs_a_look_ahead():
    optimizer = NesterovMomentum()
    variable = keras.Variable([1.0])
    gradient = [tf.constant([1.0])]
    with pytest.raises(tf.errors.InvalidArgumentError, match="look_ahead"):
        optimizer.apply(gradient, [variable])
    optimizer.look_ahead([variable])
    optimizer.apply(gradient, [variable])
    with pytest.raises(tf.errors.InvalidArgumentError, match="look_ahead"):
        optimizer.apply(gradient, [variable])
    np.testing.assert_allclose(variable, [0.9])


def test_no_step_follows_one_that_failed_halfway():
    """Twice looked ahead would be a wrong point; `sync` goes back to W."""
    optimizer = NesterovMomentum(1.0, momentum=0.5, threshold=None)
    variable = keras.Variable([0.0])
    optimizer.look_ahead([variable])
    optimizer.apply([tf.constant([4.0])], [variable])
    optimizer.look_ahead([variable])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"call sync\(\)"):
        optimizer.look_ahead([variable])
    np.testing.assert_allclose(variable, [-6.0])
    optimizer.sync()
    np.testing.assert_allclose(variable, [-4.0])
    optimizer.look_ahead([variable])
    optimizer.apply([tf.constant([0.0])], [variable])
    np.testing.assert_allclose(variable, [-6.0])
    optimizer.sync()
    np.testing.assert_allclose(variable, [-6.0])


def test_what_it_does_not_support():
    with pytest.raises(ValueError, match="gradient_accumulation_steps"):
        NesterovMomentum(gradient_accumulation_steps=2)
    with pytest.raises(ValueError, match="use_ema"):
        NesterovMomentum(use_ema=True)
