"""Console scripts `lstm-dssm-NAME`, which parse flags without TensorFlow.

`import keras_lstm_dssm` imports TensorFlow, which takes seconds. If a program
imports this module before `keras_lstm_dssm`, the package does not import
TensorFlow yet, and the program parses its flags at once. Later the program's
`main` calls `load_package`, which imports TensorFlow and the whole package.

Example:
    lstm-dssm-train --data=api --output=run
    python tools/train.py --data=api --output=run
    python -m lstm_dssm_programs train --data=api --output=run
"""

import faulthandler
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_NOTES = (b"I0000 ", b"WARNING: All log messages before absl::Initialize")

PROGRAMS = {
    name: f"keras_lstm_dssm.tools.{name}"
    for name in (
        "analyze",
        "demo",
        "encode",
        "evaluate",
        "export",
        "prepare",
        "search",
        "serve",
        "table",
        "teach",
        "train",
    )  # fmt: skip
} | {"mcp": "keras_lstm_dssm.tools.mcp_server"}
"""Name of a program -> name of its module. The module of `mcp` is `mcp_server`,
because a script `tools/mcp.py` would hide the package `mcp`."""


def start(name: str) -> None:
    """Parses the flags of a program and runs the program."""
    from absl import app

    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    module = import_module(PROGRAMS[name])
    app.run(module.main, flags_parser=module.program.parse)


analyze = partial(start, "analyze")
demo = partial(start, "demo")
encode = partial(start, "encode")
evaluate = partial(start, "evaluate")
export = partial(start, "export")
mcp = partial(start, "mcp")
prepare = partial(start, "prepare")
search = partial(start, "search")
serve = partial(start, "serve")
table = partial(start, "table")
teach = partial(start, "teach")
train = partial(start, "train")


def load_package() -> None:
    """Imports TensorFlow and the package; raises `InputError` if this fails."""
    if "keras_lstm_dssm.public" in sys.modules:
        return
    # With level 3, TensorFlow logs only fatal errors. All errors that are not
    # fatal are raised as exceptions.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # Garbage collections would take a fifth of the time of the imports. After
    # `gc.freeze`, later collections do not scan the imported objects.
    gc.disable()
    try:
        with without_notes():
            import_module("keras_lstm_dssm.public")
        gc.freeze()
    except ImportError as error:
        from keras_lstm_dssm.errors import InputError

        raise InputError(str(error)) from error
    finally:
        gc.enable()


@contextmanager
def without_notes() -> Iterator[None]:
    """Hides three log lines of TensorFlow from standard error."""
    # No environment variable silences these lines of TensorFlow 2.21. What the
    # `with` block writes to standard error is therefore kept in memory, and
    # written at the end without these lines.
    shows_all = os.environ.get("TF_CPP_MIN_LOG_LEVEL") == "0"
    if shows_all or not hasattr(os, "memfd_create"):  # only Linux has it
        yield
        return
    try:
        stderr = os.dup(2)
    except OSError:  # this process has no standard error
        yield
        return
    was_enabled = faulthandler.is_enabled()
    with open(os.memfd_create("stderr"), "w+b") as written:
        os.dup2(written.fileno(), 2)
        faulthandler.enable(stderr)  # shows where TensorFlow has crashed
        try:
            yield
        finally:
            os.dup2(stderr, 2)
            faulthandler.disable()
            if was_enabled:
                faulthandler.enable(2)
            os.close(stderr)
            written.seek(0)
            for line in written:
                if not line.startswith(_NOTES):
                    os.write(2, line)


def call_received(connection: "Connection") -> None:
    """Receives a function from the parent process, and calls it."""
    load_package()
    function = connection.recv()
    function(connection)


if __name__ == "__main__":
    # `keras_lstm_dssm` looks for `lstm_dssm_programs` in `sys.modules`. Without
    # this import, the module is there only as `__main__`.
    import lstm_dssm_programs

    if sys.argv[1:2] not in [[name] for name in PROGRAMS]:
        sys.exit(f"error: expected the name of a program: {[*PROGRAMS]}")
    sys.argv[:2] = [f"lstm-dssm-{sys.argv[1]}"]
    lstm_dssm_programs.start(sys.argv[0].removeprefix("lstm-dssm-"))
