"""(6) and the renormalisation of Algorithm 1, against NumPy and Keras."""

from collections.abc import Callable, Sequence
from typing import Any

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
PHASES = [6, 294, STEPS]


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
    wrap: Callable[[Any], Any] = lambda step: step,
    before: Callable[[int], object] = lambda k: None,
    traced: bool = True,
) -> list[list[np.ndarray]]:
    """Variables before the first and after every step."""
    variables = [keras.Variable(value, dtype="float64") for value in START]
    optimizer.build(variables)
    if isinstance(optimizer, NesterovMomentum):
        optimizer.set_groups([[variable] for variable in variables])

    def step(rows: tf.Tensor) -> None:
        dense, table = (variable.value for variable in variables)
        with tf.GradientTape() as tape:
            loss = log_cosh(MATRIX @ dense - TARGET)
            loss += log_cosh(tf.gather(table, rows) - 1) / 2
        gradients = tape.gradient(loss, [dense, table])
        assert isinstance(gradients[1], tf.IndexedSlices)
        optimizer.apply(gradients, variables)

    graph = tf.function(step) if traced else step
    run = wrap(graph)
    path = [[v.numpy() for v in variables]]
    for k, rows in enumerate(ROWS):
        before(k)
        run(tf.constant(rows))
        path.append([v.numpy() for v in variables])
    if traced:
        assert graph.experimental_get_tracing_count() == 1
    optimizer.finalize_variable_values(variables)
    path.append([v.numpy() for v in variables])
    return path


def check_path(found: Any, expected: Any, rtol: float = 1e-12) -> None:
    for step, exact in zip(found, expected, strict=True):
        for value, wanted in zip(step, exact, strict=True):
            np.testing.assert_allclose(
                value, wanted, rtol=rtol, atol=rtol * abs(wanted).max()
            )


@pytest.mark.parametrize("threshold", [None, 0.5])
def test_follows_the_paper_while_the_momentum_changes(float64, threshold):
    """After each of 300 steps it holds Lambda_k, not the look-ahead point."""
    assert sorted(set(MOMENTA)) == [0.9, 0.995]
    optimizer = NesterovMomentum(RATE, threshold=threshold)
    optimizer.set_phases(0.9, 0.995, PHASES)
    found = descend(
        optimizer, lambda step: optimizer.from_weights(step, 1, False)
    )
    wanted = reference.nesterov(
        gradient, START, MOMENTA, RATE, threshold or np.inf
    )
    check_path(found, [*wanted, wanted[-1]])


def test_between_steps_it_holds_the_look_ahead_point(float64):
    """Computed with mu of the coming step; at the end it holds Lambda."""
    optimizer = NesterovMomentum(RATE, threshold=None)
    optimizer.set_phases(0.9, 0.995, PHASES)
    *found, last = descend(optimizer)
    wanted = reference.nesterov(gradient, START, MOMENTA, RATE)
    ahead = [
        [w + mu * (w - b) for w, b in zip(now, before, strict=True)]
        for now, before, mu in zip(
            wanted, [wanted[0], *wanted], [*MOMENTA, 0.9], strict=False
        )
    ]
    check_path(found, ahead, 1e-11)
    check_path([last], wanted[-1:])


def test_a_constant_momentum_is_that_of_keras(float64):
    """SGD(nesterov=True) holds the look-ahead point x: W = x - mu V."""
    mu = 63 / 64  # a float32, to which Keras rounds it
    *found, last = descend(NesterovMomentum(RATE, mu, threshold=None))
    sgd = keras.optimizers.SGD(RATE, mu, nesterov=True)
    *expected, end = descend(sgd)
    check_path(found, expected)
    for w, x, v in zip(last, end, sgd.momentums, strict=True):
        np.testing.assert_allclose(w, x - mu * v.numpy(), rtol=1e-12)
        assert abs(w - x).max() > 1e-4


def test_a_changing_momentum_is_not(float64):
    """SGD(nesterov=True) mixes mu_{k-1} and mu_k."""
    sgd = keras.optimizers.SGD(RATE, 0.9, nesterov=True)
    *_, found = descend(
        sgd, before=lambda k: setattr(sgd, "momentum", MOMENTA[k]),
        traced=False,
    )  # fmt: skip
    wanted = reference.nesterov(gradient, START, MOMENTA, RATE)[-1]
    velocity = [v.numpy() for v in sgd.momentums]
    back = [w - MOMENTA[-1] * v for w, v in zip(found, velocity, strict=True)]
    assert max(
        abs(one - exact).max() for one, exact in zip(back, wanted, strict=True)
    ) > 1e-3  # fmt: skip


@pytest.mark.parametrize("wrapped", [True, False])
def test_a_momentum_that_is_set_holds_from_the_next_look_ahead(
    float64, wrapped
):
    """A step uses the mu with which its look-ahead point was computed."""
    momenta = [0.5, 0.8, *[0.2] * (STEPS - 1)]
    optimizer = NesterovMomentum(RATE, 0.5, None)
    # A step that is not wrapped looks ahead at its end.
    late = not wrapped
    *_, found = descend(
        optimizer,
        lambda step: (
            optimizer.from_weights(step, 1, False) if wrapped else step
        ),
        lambda k: optimizer.momentum.assign(momenta[k + late]),
    )
    wanted = reference.nesterov(gradient, START, momenta[:-1], RATE)
    check_path([found], wanted[-1:])


def applied(
    optimizer: NesterovMomentum,
    gradients: Sequence[tf.Tensor | tf.IndexedSlices],
    groups: Sequence[Sequence[int]],
) -> list[np.ndarray]:
    """What a first step of rate 1 takes from variables of zeros."""
    variables = [keras.Variable(tf.zeros(g.shape)) for g in gradients]
    optimizer.build(variables)
    optimizer.set_groups([[variables[i] for i in group] for group in groups])
    optimizer.apply(gradients, variables)
    optimizer.finalize_variable_values(variables)
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


def test_a_step_that_fails_leaves_the_weights():
    """Weights are W of (6), not the look-ahead point, in the next step, too."""
    optimizer = NesterovMomentum(1.0, momentum=0.5, threshold=None)
    variable = keras.Variable([0.0])
    optimizer.build([variable])
    seen = []

    def step(slope: float) -> None:
        seen.append(float(variable[0]))
        if slope == 0:
            raise ArithmeticError
        optimizer.apply([tf.constant([slope])], [variable])

    run = optimizer.from_weights(step, 1, False)
    run(4.0)
    with pytest.raises(ArithmeticError):
        run(0.0)
    assert float(variable[0]) == -4
    run(1.0)  # V = 0.5 * -4 - 1
    assert float(variable[0]) == -7
    assert seen == [0, -6, -6]


@pytest.mark.parametrize("make", [
    lambda: NesterovMomentum(1.0, 0.5, None),
    lambda: keras.optimizers.SGD(1.0, 0.5, nesterov=True),
], ids=["ours", "Keras"])  # fmt: skip
def test_a_variable_without_a_gradient_stays(make):
    """A frozen variable stays, too. At the end W = x - mu V."""
    optimizer, variables = make(), [keras.Variable([0.0]) for _ in range(3)]
    optimizer.build(variables)
    optimizer.apply([tf.constant([-4.0])] * 3, variables)
    optimizer.finalize_variable_values(variables)
    variables[2].trainable = False
    with pytest.warns(UserWarning, match="Gradients do not exist"):
        optimizer.apply([tf.zeros([1]), None], variables[:2])
    optimizer.finalize_variable_values(variables)
    ahead = np.zeros(3)
    if isinstance(optimizer, keras.optimizers.SGD):
        ahead = 0.5 * np.array([float(v[0]) for v in optimizer.momentums])
    # W = 4 + V, V = 0.5 * 4
    found = [float(v[0]) for v in variables] - ahead
    np.testing.assert_array_equal(found, [6, 4, 4])
