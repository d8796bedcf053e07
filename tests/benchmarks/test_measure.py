"""Measurements take turns, and the clock of `fit` leaves out its start."""

import itertools
import sys
import time
from collections.abc import Callable

import keras
import numpy as np
import pytest
import tensorflow as tf

from benchmarks import clocks, measure
from keras_lstm_dssm.errors import InputError


def test_interleaved_medians_take_turns_and_leave_out_the_first_round():
    order: list[str] = []

    def counting(name: str, values: list[float]) -> Callable[[], float]:
        left = iter(values)

        def measure() -> float:
            order.append(name)
            return next(left)

        return measure

    medians = clocks.interleaved_medians(
        {"a": counting("a", [99, 3, 1, 2]), "b": counting("b", [0, 5, 5, 8])},
        rounds=3,
    )
    assert medians == {"a": 2, "b": 5}
    assert order == ["a", "b"] * 4


def test_percentiles_are_in_milliseconds():
    p50, p99 = clocks.percentiles(
        lambda text: time.sleep(len(text) / 1000), "a" * 9
    )
    assert 1 <= p50 <= p99
    naps = itertools.chain([0.02], itertools.repeat(0))
    p50, p99 = clocks.percentiles(lambda _: time.sleep(next(naps)), ["x"] * 5)
    assert p50 < 20 and p99 > p50


def test_the_clock_starts_after_the_warm_steps():
    class Slow(keras.Model):
        """Sleeps in its warm steps only."""

        def train_step(self, data: tf.Tensor) -> dict[str, tf.Tensor]:
            tf.py_function(lambda x: time.sleep(float(x)), [data], [])
            return {"seen": data}

    model = Slow()
    model.compile()
    naps = np.array([0.1] * clocks.WARM_STEPS + [0.001] * 5, np.float32)
    taken = measure.fit_seconds(
        model, tf.data.Dataset.from_tensor_slices(naps), 5
    )
    assert 0.001 <= taken < 0.1


def test_a_server_that_ends_at_once():
    command = [sys.executable, "-c", "raise SystemExit('a\\nno room')"]
    with (
        pytest.raises(InputError, match="ended before it served: no room$"),
        measure.running_server(command),
    ):
        pass


def test_a_measurement_that_fails_in_its_process(tmp_path):
    path = tmp_path / "figures.json"
    path.write_text('{"pairs": 3}')
    assert measure.results_of_process("json.tool", str(path)) == {"pairs": 3}
    with pytest.raises(InputError, match="none.json: .*No such file"):
        measure.results_of_process("json.tool", str(tmp_path / "none.json"))


PEER = """
import os, sys
print("ready", flush=True)
fast = os.environ["OMP_NUM_THREADS"] == "1"
fast = fast and "MALLOC_TRIM_THRESHOLD_" in os.environ
for line in sys.stdin:
    assert line == "train\\n"
    print([1.0 if fast else 2.0, 3.0], flush=True)
"""


def test_each_process_has_its_best_threads_and_allocator():
    peer = measure.Contender([sys.executable, "-c", PEER])
    tied = peer._replace(threads=["all threads"])
    taken, chosen = measure.compare({"a": peer, "b": tied}, "train", 2)
    assert taken == {"a": [1, 3], "b": [2, 3]}
    assert chosen == {
        "a": "one thread, malloc that keeps memory",
        "b": "all threads, malloc",  # the first of equal ones
    }


def test_a_peer_that_fails_is_an_error():
    failing = measure.Contender([sys.executable, "-c", "print('ready')"])
    with pytest.raises(InputError, match="a process of .* has ended"):
        measure.compare({"a": failing}, "train", 1)
