"""Start the programs of `keras_lstm_dssm.tools`, `lstm-dssm-NAME`.

While TensorFlow is imported, it writes notes about the machine to standard
error. A program leaves them out, so that its own messages are seen. This
module is not in the package because importing any part of the package
imports TensorFlow, and a library must not change its process's streams.

Example:
    python -m lstm_dssm_programs train --data=api --output=run
"""

import functools
import importlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection

_NOTES = (b"I0000 ", b"WARNING: All log messages before absl::Initialize")


def start(name: str) -> int:
    """Import a program and run it with the arguments of this process.

    Sets `TF_CPP_MIN_LOG_LEVEL` to 3 unless it is set already. TensorFlow then
    logs fatal errors only; other errors it also raises in Python. With 0,
    everything is shown.

    Args:
        name: Name of a module in `keras_lstm_dssm.tools`.

    Returns:
        The exit code: 0, or 1 after one line on standard error.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        with _without_notes():
            program = importlib.import_module(f"keras_lstm_dssm.tools.{name}")
    except ImportError as error:
        if "--debug" in sys.argv:
            raise
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return program.run()


def call_received(connection: Connection) -> None:
    """Receive a function, which imports TensorFlow, and call it.

    Args:
        connection: End of a pipe, the argument of a process that a program
            starts. The function is received here and not with the process's
            arguments, and is called with the connection.
    """
    with _without_notes():
        function = connection.recv()
    function(connection)


def __getattr__(name: str) -> Callable[[], int]:
    """Return the console script of a program, such as `train`."""
    if name.startswith("_"):
        raise AttributeError(name)
    return functools.partial(start, name)


@contextmanager
def _without_notes() -> Iterator[None]:
    """Leave TensorFlow's notes out of standard error.

    Another process filters the lines, so that TensorFlow's last message is
    shown even if it ends this process, as on an unsupported processor.
    """
    if os.environ.get("TF_CPP_MIN_LOG_LEVEL") == "0":
        yield
        return
    try:
        stderr = os.dup(2)
    except OSError:  # this process has no standard error
        yield
        return
    source, sink = os.pipe()
    child = os.fork()
    if not child:
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            os.close(sink)
            with open(source, "rb") as lines:
                for line in lines:
                    if not line.startswith(_NOTES):
                        os.write(stderr, line)
        finally:
            os._exit(0)
    os.close(source)
    os.dup2(sink, 2)
    os.close(sink)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.waitpid(child, 0)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(f"error: expected the name of a program\n{__doc__}")
    sys.argv[:2] = [f"lstm-dssm-{sys.argv[1]}"]
    sys.exit(start(sys.argv[0].removeprefix("lstm-dssm-")))
