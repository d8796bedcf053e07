"""Options of Keras with `NesterovMomentum`, in a model of Keras.

Expected weights are those of Algorithm 1, in NumPy, with the option applied
to W; and of Keras's `SGD`, where that holds the look-ahead point.
"""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

from keras_lstm_dssm import NesterovMomentum, NesterovSchedule
from tests.optimizers.small_regression import (
    BATCHES,
    RATE,
    START,
    fit,
    gradient,
    regression,
)

EPOCHS = 4
STEPS = EPOCHS * BATCHES
SCHEDULE = {"ends": 0.5, "middle": 0.875, "fraction": 0.2}

Array = np.ndarray


def same(value: Any) -> Any:
    return value


def by_numpy(
    *,
    clip: Callable[[Array], Array] = same,
    rate: Callable[[int], float] = lambda k: RATE,
    decay: float = 0.0,
    accumulated: int = 1,
    constraint: Callable[[Array], Array] = same,
    ema_momentum: float | None = None,
    overwrite: int | None = None,
) -> Array:
    """Returns W after all steps, or its moving average."""
    w, v, average = START, np.zeros_like(START), START
    total, slopes = STEPS // accumulated, []
    for batch in range(STEPS):
        k = batch // accumulated
        mu = NesterovSchedule(**SCHEDULE).momentum(k, total)
        slopes += gradient(batch, [w + mu * v])
        if len(slopes) == accumulated:
            v = mu * v - rate(batch) * clip(np.mean(slopes, axis=0))
            w = constraint(w * (1 - decay * rate(batch)) + v)
            slopes = []
        if ema_momentum is not None:
            m = ema_momentum if k else 0.0
            average = m * average + (1 - m) * w
            if overwrite and (k + 1) % overwrite == 0:
                w = average
    return w if ema_momentum is None else average


def norm_of(limit: float) -> Callable[[Array], Array]:
    return lambda g: g * min(1, limit / np.linalg.norm(g))


DECAYED = keras.optimizers.schedules.ExponentialDecay(
    RATE, 5, 0.5, staircase=True
)

OPTIONS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "none": ({}, {}),
    "threshold": ({"threshold": 0.3}, {"clip": norm_of(0.3)}),
    "clipnorm": ({"clipnorm": 0.3}, {"clip": norm_of(0.3)}),
    "global_clipnorm": ({"global_clipnorm": 0.3}, {"clip": norm_of(0.3)}),
    "clipvalue": (
        {"clipvalue": 0.1},
        {"clip": lambda g: np.clip(g, -0.1, 0.1)},
    ),
    "learning rate schedule": (
        {"learning_rate": DECAYED},
        {"rate": lambda k: RATE * 0.5 ** (k // 5)},
    ),
    "weight_decay": ({"weight_decay": 0.25}, {"decay": 0.25}),
    "loss_scale_factor": ({"loss_scale_factor": 128.0}, {}),
    "gradient_accumulation_steps": (
        {"gradient_accumulation_steps": 2},
        {"accumulated": 2},
    ),
    "use_ema": (
        {"use_ema": True, "ema_momentum": 0.75},
        {"ema_momentum": 0.75},
    ),
    "ema_overwrite_frequency": (
        {"use_ema": True, "ema_momentum": 0.75, "ema_overwrite_frequency": 3},
        {"ema_momentum": 0.75, "overwrite": 3},
    ),
    "average of accumulated gradients": (
        {"gradient_accumulation_steps": 2, "use_ema": True},
        {"accumulated": 2, "ema_momentum": 0.99},
    ),
    "decay of accumulated gradients": (
        {"gradient_accumulation_steps": 2, "weight_decay": 0.25},
        {"accumulated": 2, "decay": 0.25},
    ),
}


def nesterov(**options: Any) -> NesterovMomentum:
    return NesterovMomentum(
        **{"learning_rate": RATE, "threshold": None, **options}
    )


def check(model: keras.Model, expected: Array) -> None:
    np.testing.assert_allclose(
        model.get_weights()[0], expected, rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("name", OPTIONS)
def test_options_of_the_optimizer(float64, name):
    options, by_hand = OPTIONS[name]
    model = regression(nesterov(**options))
    fit(model, EPOCHS, callbacks=[NesterovSchedule(**SCHEDULE)])
    expected = by_numpy(**by_hand)
    check(model, expected)
    plain = by_numpy()
    scale = name in ("none", "loss_scale_factor")
    assert (abs(expected - plain).max() > 1e-3) != scale


@pytest.mark.parametrize("options", [
    {"steps_per_execution": 3}, {"run_eagerly": True}, {"jit_compile": True},
    {"steps_per_execution": 2, "run_eagerly": True},
], ids=str)  # fmt: skip
def test_options_of_compile(float64, options):
    model = regression(nesterov(), **options)
    fit(model, EPOCHS, callbacks=[NesterovSchedule(**SCHEDULE)])
    check(model, by_numpy())


def test_a_constraint_is_one_of_the_weights(float64):
    model = regression(nesterov())
    model.layers[0].kernel.constraint = keras.constraints.NonNeg()
    fit(model, EPOCHS, callbacks=[NesterovSchedule(**SCHEDULE)])
    check(model, by_numpy(constraint=lambda w: np.maximum(w, 0)))


def test_loss_scaling_skips_what_is_not_finite(float64):
    """A step that is skipped changes neither W nor mu."""
    scaled = keras.optimizers.LossScaleOptimizer(nesterov())
    model = regression(scaled)
    fit(model, EPOCHS, callbacks=[NesterovSchedule(**SCHEDULE)])
    check(model, by_numpy())
    before = model.get_weights()
    model.fit(np.full((4, 3), np.inf), np.zeros((4, 2)), verbose=0)
    np.testing.assert_array_equal(model.get_weights(), before)
    assert int(scaled.iterations) == STEPS


@pytest.mark.parametrize("name", [
    "none", "clipnorm", "global_clipnorm", "clipvalue",
    "learning rate schedule", "gradient_accumulation_steps",
])  # fmt: skip
def test_sgd_of_keras_ends_at_the_look_ahead_point(float64, name):
    """With a constant mu: W = x - mu V."""
    options = {"learning_rate": RATE, **OPTIONS[name][0]}
    model = regression(NesterovMomentum(threshold=None, **options))
    model.optimizer.momentum.assign(0.75)
    stock = regression(
        keras.optimizers.SGD(momentum=0.75, nesterov=True, **options)
    )
    for each in (model, stock):
        fit(each, EPOCHS)
    ahead = 0.75 * stock.optimizer.momentums[0].numpy()
    assert abs(ahead).max() > 1e-3
    check(model, stock.get_weights()[0] - ahead)


def test_several_variables_have_one_global_norm(float64):
    """Also an embedding, whose gradient has rows."""
    numbers, targets = np.array([[1, 3, 5], [0, 4, 2]] * 4), np.ones((8, 1))
    results = []
    for optimizer in (
        NesterovMomentum(RATE, 0.75, None, global_clipnorm=0.1),
        NesterovMomentum(RATE, 0.75, threshold=0.1),
        keras.optimizers.SGD(RATE, 0.75, True, global_clipnorm=0.1),
    ):
        keras.utils.set_random_seed(0)
        model = keras.Sequential([
            keras.Input((3,)), keras.layers.Embedding(6, 2),
            keras.layers.Flatten(), keras.layers.Dense(1),
        ])  # fmt: skip
        model.compile(optimizer, "mse")
        model.fit(
            numbers, targets, batch_size=2, epochs=3, shuffle=False, verbose=0
        )
        results.append(model.get_weights())
    velocities = [0.75 * v.numpy() for v in model.optimizer.momentums]
    stock = [x - v for x, v in zip(results.pop(), velocities, strict=True)]
    for found in results:
        for value, expected in zip(found, stock, strict=True):
            np.testing.assert_allclose(value, expected, rtol=1e-9, atol=1e-12)
