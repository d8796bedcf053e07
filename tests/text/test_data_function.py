"""Tests `DataFunction`: values, errors, and process exit during a call."""

import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.text.caches import DataFunction

PROGRAM = """
import tensorflow as tf
from keras_lstm_dssm.text.caches import HashedTextCache

texts = tf.data.Dataset.range(10_000).map(
    lambda i: tf.strings.as_string(tf.range(i * 500, i * 500 + 500))
)
hashed = texts.map(HashedTextCache().distinct, num_parallel_calls=2)
iterator = iter(hashed.prefetch(2))
print(next(iterator).text_index.shape[0])
1 / 0
"""


def test_the_process_ends_while_texts_are_hashed():
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert process.returncode == 1, process.stderr
    assert "ZeroDivisionError" in process.stderr
    assert process.stdout == "500\n"
    # Calls that come too late are no errors that TensorFlow logs.
    assert "StopIteration" not in process.stderr


def test_values_and_errors_of_the_function():
    def halves(values: np.ndarray) -> list[np.ndarray]:
        return [values // 2, values % 2]

    function = DataFunction(halves, [tf.int64] * 2)
    data = tf.data.Dataset.range(5).map(function, num_parallel_calls=2)
    assert [*data.as_numpy_iterator()] == [
        (0, 0),
        (0, 1),
        (1, 0),
        (1, 1),
        (2, 0),
    ]
    wrong = DataFunction(lambda value: 1 // value.item(), tf.int64)
    with pytest.raises(ZeroDivisionError):
        wrong(tf.constant(0, tf.int64))
    assert wrong(tf.constant(1, tf.int64)).numpy() == 1
