"""The momentum of every training step, and what `NesterovSchedule` needs."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from tests import reference
from tests.optimizers.small_regression import (
    BATCHES,
    RATE,
    START,
    X,
    Y,
    fit,
    gradient,
    regression,
)

FIFTHS: dict[str, Any] = {"ends": 0.5, "middle": 0.75, "fraction": 0.2}
OF_TEN = [0.5] * 2 + [0.75] * 6 + [0.5] * 2


def new_model(**options: Any) -> keras.Sequential:
    return regression(dssm.NesterovMomentum(RATE, threshold=None), **options)


def path_of(momenta: list[float]) -> list[np.ndarray]:
    """Returns W before the first and after each step, by NumPy."""
    path = reference.nesterov(gradient, [START], momenta, RATE)
    return [weights for (weights,) in path]


def check(model: keras.Model, expected: np.ndarray) -> None:
    np.testing.assert_allclose(
        model.get_weights()[0], expected, rtol=1e-12, atol=1e-13
    )


@pytest.mark.parametrize(("schedule", "fits", "momenta"), [
    # 50 training steps: 2 % is 1, so 0.9, then 48 times 0.995, then 0.9.
    ({}, [{"epochs": 10}], [0.9] + [0.995] * 48 + [0.9]),
    # A second fit goes on.
    ({"total_steps": 10, **FIFTHS}, [{}, {}], OF_TEN),
    # A fit that begins at a later epoch: its own steps are the whole.
    (FIFTHS, [{"initial_epoch": 2, "epochs": 4}], OF_TEN),
    # Without `total_steps`, training a model on starts anew.
    (FIFTHS, [{}, {}], ([0.5] + [0.75] * 3 + [0.5]) * 2),
    # Also after half of the epochs.
    (FIFTHS, [{"epochs": 2}, {"epochs": 1}],
     [*OF_TEN, 0.5, 0.75, 0.75, 0.75, 0.5]),
], ids=[
    "ten epochs", "a second fit", "later epochs", "two fits", "a shorter fit",
])  # fmt: skip
def test_every_step_has_its_momentum(float64, schedule, fits, momenta):
    model = new_model()
    logged: list[float] = []
    for options in fits:
        history = fit(
            model, callbacks=[dssm.NesterovSchedule(**schedule)], **options
        ).history
        logged += history["momentum"]
    check(model, path_of(momenta)[-1])
    assert logged == momenta[BATCHES - 1 :: BATCHES]


def test_parts_are_2_96_and_2_percent():
    schedule = dssm.NesterovSchedule()
    momenta = [schedule.momentum(k, 1000) for k in range(1000)]
    assert momenta == [0.9] * 20 + [0.995] * 960 + [0.9] * 20


def test_needs_to_know_how_many_steps_there_will_be(float64):
    unknown = tf.data.Dataset.from_tensor_slices((X, Y)).batch(4)
    unknown = unknown.filter(lambda x, y: True)
    model = new_model()
    with pytest.raises(
        dssm.InputError, match="cardinality is unknown; give total"
    ):
        model.fit(
            unknown, verbose=0, shuffle=False,
            callbacks=[dssm.NesterovSchedule()],
        )  # fmt: skip
    schedule = dssm.NesterovSchedule(5, **FIFTHS)
    with pytest.warns(UserWarning, match="ran out of data"):  # Keras's own
        model.fit(unknown, verbose=0, shuffle=False, callbacks=[schedule])
    check(model, path_of([0.5, 0.75, 0.75, 0.75, 0.5])[-1])
    # Reading the batch after the last has run no part of a step.
    assert int(model.optimizer.iterations) == 5


def test_a_model_that_is_built_by_its_first_batch(float64):
    """The callback meets an optimizer without variables."""
    layer = keras.layers.Dense(
        2, use_bias=False, kernel_initializer=lambda shape, dtype: START
    )
    model = keras.Sequential([layer])
    model.compile(dssm.NesterovMomentum(RATE, threshold=None), "mse")
    fit(model, 2, callbacks=[dssm.NesterovSchedule(**FIFTHS)])
    check(model, path_of(OF_TEN)[-1])


SGD = keras.optimizers.SGD
EAGER = {"run_eagerly": True}


@pytest.mark.parametrize(("optimizer", "options"), [
    (lambda: SGD(0.1, 0.9), {}),
    (lambda: SGD(0.1, 0.9), {**EAGER, "steps_per_execution": 2}),
    (lambda: SGD(0.1), EAGER),
    (lambda: keras.optimizers.Adam(0.1), EAGER),
], ids=["traced", "steps", "no momentum", "Adam"])  # fmt: skip
def test_optimizers_whose_momentum_is_fixed(optimizer, options):
    model = regression(optimizer(), **options)
    message = (
        f"^NesterovSchedule cannot change the momentum of "
        f"{type(model.optimizer).__name__} .*: compile with NesterovMomentum, "
    )
    with pytest.raises(dssm.InputError, match=message) as caught:
        fit(model, callbacks=[dssm.NesterovSchedule()])
    assert "\n" not in str(caught.value)


def test_sgd_of_keras_in_eager_steps(float64):
    """As far as its formula goes: x holds mu of the step, not of the next."""
    model = regression(SGD(RATE, 0.875, nesterov=True), **EAGER)
    history = fit(model, 2, callbacks=[dssm.NesterovSchedule(**FIFTHS)])
    x, v = START, np.zeros_like(START)
    for k, mu in enumerate(OF_TEN):
        change = -RATE * gradient(k, [x])[0]
        v = mu * v + change
        x = x + mu * v + change
    check(model, x)
    assert history.history["momentum"] == [0.75, 0.5]
