"""DataFunction: a Python function that `tf.data` calls."""

import atexit
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf


class DataFunction:
    """Runs a Python function in `tf.data` without blocking process exit.

    `tf.data` calls functions in threads of its own. When the interpreter
    exits, it stops each of these threads that runs Python code, and the call
    never returns; but the process waits for all calls of a parallel `map`
    and would hang. Therefore an `atexit` handler first waits for the running
    calls; a call that starts later raises `StopIteration`, which `tf.data`
    takes for the end of the dataset.

    Args:
        function: Function of arrays that returns one or more arrays.
        types: Their dtypes; a list if the function returns a sequence.

    Example:
    >>> double = DataFunction(lambda values: 2 * values, tf.int32)
    >>> double(tf.constant([1, 2])).numpy().tolist()
    [2, 4]
    """

    def __init__(
        self,
        function: Callable[..., Any],
        types: tf.DType | Sequence[tf.DType],
    ) -> None:
        self._function = function
        self._types = types

    def __call__(self, *inputs: tf.Tensor) -> Any:
        """Applies the function to tensors, eagerly or in the traced graph.

        Returns:
            What the function returns, as tensors of unknown static shape.
        """
        return tf.numpy_function(
            self._call, inputs, self._types, stateful=False
        )

    def _call(self, *arrays: Any) -> Any:
        with _CALLS:
            return self._function(*arrays)


class _Calls:
    """Counts the running calls of all functions, and waits for them at exit."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running = 0
        self._begun = False
        self._at_end = False
        atexit.register(self._wait)

    def __enter__(self) -> None:
        with self._changed:
            if self._at_end:
                raise StopIteration  # any other error would be logged
            self._begun = True
            self._running += 1

    def __exit__(self, *_: Any) -> None:
        with self._changed:
            self._running -= 1
            self._changed.notify_all()

    def _wait(self) -> None:
        with self._changed:
            self._at_end = True
            self._changed.wait_for(lambda: not self._running)
        if self._begun:
            time.sleep(0.1)  # for threads that are about to call


_CALLS = _Calls()
