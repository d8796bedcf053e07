"""How several workers are stopped together: by a signal or by a file."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import keras

from keras_lstm_dssm.workers import JointStep

STOP_FILE = ".stop"
"""A file in the run folder that stops the training, with a checkpoint."""

_LOOK_SECONDS = 1.0


class Stopped(KeyboardInterrupt):
    """Raised on all workers after the step in which one was to stop."""


class StopTogether(keras.callbacks.Callback):
    """Ends the training of all workers after one step, like ctrl-c.

    A worker that is to stop says so in the exchange of the next step, at the
    end of which all workers have equal weights, to be saved.

    Args:
        joint_step: What the workers exchange in a training step.
        wanted: Event that is set when this worker is to stop.
        stop_file: A file whose existence is a wish to stop, too; the worker
            looks for it every second. Default `None`.
    """

    def __init__(
        self,
        joint_step: JointStep,
        wanted: threading.Event,
        stop_file: Path | None = None,
    ) -> None:
        super().__init__()
        self.joint_step = joint_step
        self.stop_file = stop_file
        self.wanted = wanted
        self._looked = 0.0

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Lets the exchange of this step say whether this worker is to stop."""
        now = time.monotonic()
        if self.stop_file and now - self._looked > _LOOK_SECONDS:
            self._looked = now
            if self.stop_file.exists():
                self.wanted.set()
        self.joint_step.stop_wanted.assign(int(self.wanted.is_set()))

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Raises `Stopped` if any worker is to stop."""
        if int(self.joint_step.stops):
            raise Stopped


@contextmanager
def stop_by_signal(
    is_wanted: Callable[[], bool], want: Callable[[], object]
) -> Iterator[None]:
    """Lets SIGTERM and SIGINT ask for a stop; a second one interrupts.

    In a worker, call this function when the workers are connected: TensorFlow
    sets a handler of SIGTERM then, which ignores it. Outside of the main
    thread, where Python sets no handlers, the function does nothing: Ray's
    workers are stopped by the file.

    Args:
        is_wanted: Returns whether a stop has been asked for already.
        want: Asks for it.

    Example:
    >>> wanted = threading.Event()
    >>> with stop_by_signal(wanted.is_set, wanted.set):
    ...     signal.raise_signal(signal.SIGTERM)
    >>> wanted.is_set()
    True
    """

    def handle(number: int, frame: Any) -> None:
        if is_wanted():
            raise KeyboardInterrupt
        want()

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, handle) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler or signal.SIG_DFL)
