"""DataFunction: a Python function that `tf.data` calls."""

import atexit
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf


class DataFunction:
    """Calls a Python function in a graph, and lets the process end.

    `tf.data` runs functions in threads of its own, and the process waits for
    them when it ends. When Python ends, it stops every other thread that
    needs it; a call that is stopped never returns, and the process would wait
    for ever. Therefore, before Python ends, all calls are waited for, and
    those that follow end the data.

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
        """Returns the tensors of the function, without their shapes."""
        return tf.numpy_function(
            self._call, inputs, self._types, stateful=False
        )

    def _call(self, *arrays: Any) -> Any:
        with _CALLS:
            return self._function(*arrays)


class _Calls:
    """Counts the calls that run, of all functions."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running = 0
        self._begun = False
        self._at_end = False
        atexit.register(self._wait)

    def __enter__(self) -> None:
        with self._changed:
            if self._at_end:
                raise StopIteration  # `tf.data` ends, and logs no error
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
            time.sleep(0.1)  # threads that are about to call end the data


_CALLS = _Calls()
