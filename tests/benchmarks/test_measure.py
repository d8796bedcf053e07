"""Turns, medians, and the clock around `fit`."""

import itertools
import time
from collections.abc import Callable

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.benchmarks.measure import (
    WARM_STEPS,
    fit_seconds,
    interleaved,
    percentiles,
)


def test_interleaved_takes_turns_and_leaves_out_the_first_round() -> None:
    order: list[str] = []

    def counting(name: str, values: list[float]) -> Callable[[], float]:
        left = iter(values)

        def measure() -> float:
            order.append(name)
            return next(left)

        return measure

    found = interleaved(
        {"a": counting("a", [99, 3, 1, 2]), "b": counting("b", [0, 5, 5, 8])},
        rounds=3,
    )
    assert found == {"a": 2, "b": 5}
    assert order == ["a", "b"] * 4


def test_percentiles_are_in_milliseconds() -> None:
    p50, p99 = percentiles(lambda text: time.sleep(len(text) / 1000), "a" * 9)
    assert 1 <= p50 <= p99
    naps = itertools.chain([0.02], itertools.repeat(0))
    p50, p99 = percentiles(lambda _: time.sleep(next(naps)), ["x"] * 5)
    assert p50 < 20 and p99 > p50


def test_the_clock_starts_after_the_warm_steps() -> None:
    class Slow(keras.Model):
        """Sleeps in its warm steps only."""

        def train_step(self, data: tf.Tensor) -> dict[str, tf.Tensor]:
            tf.py_function(lambda x: time.sleep(float(x)), [data], [])
            return {"seen": data}

    model = Slow()
    model.compile()
    naps = np.array([0.1] * WARM_STEPS + [0.001] * 5, np.float32)
    taken = fit_seconds(model, tf.data.Dataset.from_tensor_slices(naps), 5)
    assert 0.001 <= taken < 0.1
