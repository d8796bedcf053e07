"""Start the programs of `keras_lstm_dssm.tools`, `lstm-dssm-NAME`.

A program parses its flags before the package is loaded, and with it
TensorFlow, which takes seconds: help and wrong flags are answered at once.
While TensorFlow is imported, it writes notes about the machine to standard
error. A program leaves them out, so that its own messages are seen. This
module is not in the package because importing any part of the package
imports TensorFlow, and a library must not change its process's streams.

Example:
    python -m lstm_dssm_programs train --data=api --output=run
"""

import functools
import gc
import importlib.util
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_NOTES = (
    b"I0000 ",
    b"To enable the following instructions",  # second line of a note
    b"WARNING: All log messages before absl::Initialize",
)

_PACKAGE = "keras_lstm_dssm"

_MODULES = {"mcp": "mcp_server"}
"""Program -> its module, if it has another name: as `mcp.py` it would be taken
for the package `mcp` where a program is started as a file in its folder."""

_PROBED = ("jax", "matplotlib", "pandas", "sklearn")
"""Packages that Keras and TensorFlow import where they are installed, for
functions that no program calls. Their import takes as long as TensorFlow's."""


def start(name: str) -> int:
    """Parses the flags of a program, imports it, and runs it.

    Sets `TF_CPP_MIN_LOG_LEVEL` to 3 unless it is set already. TensorFlow then
    logs fatal errors only; other errors it also raises in Python. With 0,
    everything is shown.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        package = _unloaded_package()
        names = program_names()
        if name not in names:
            print(
                f"error: found no program {name!r}, expected one of "
                f"{', '.join(names)}",
                file=sys.stderr,
            )
            return 1
        module = find(name)
        code = module.program.check()
        if code is not None:
            return code
        if module.program.tensorflow:
            with _without_notes():
                _load(package)
    except ImportError as error:
        if "--debug" in sys.argv:
            raise
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return module.run()


def program_names() -> list[str]:
    """Returns the names of the modules in `tools` that are programs."""
    _unloaded_package()
    tools = importlib.import_module(f"{_PACKAGE}.tools")
    names = {module: name for name, module in _MODULES.items()}
    return sorted(
        names.get(path.stem, path.stem)
        for folder in tools.__path__
        for path in Path(folder).glob("*.py")
        if "\nrun = " in path.read_text(encoding="utf-8")
    )


def find(name: str) -> ModuleType:
    """Returns the module of a program, which loads no TensorFlow."""
    _unloaded_package()
    module = _MODULES.get(name, name)
    return importlib.import_module(f"{_PACKAGE}.tools.{module}")


def _unloaded_package() -> ModuleType:
    """Makes modules of the package importable, before its `__init__` is run.

    The `__init__` imports TensorFlow, and all of the package, so that
    `import keras_lstm_dssm` registers the Keras classes. The flags of programs
    are in modules that need neither.
    """
    if _PACKAGE in sys.modules:
        return sys.modules[_PACKAGE]
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None:
        raise ModuleNotFoundError(f"{_PACKAGE} is not installed")
    return sys.modules.setdefault(
        _PACKAGE, importlib.util.module_from_spec(spec)
    )


def _load(package: ModuleType) -> None:
    """Imports the whole package, unless it has been imported."""
    if hasattr(package, "__all__"):
        return
    # Garbage collections while modules are imported, and the examination of
    # what they hold in later ones, take a fourth of the time.
    gc.disable()
    try:
        with _without_probes():
            start = importlib.import_module(f"{_PACKAGE}.tensorflow_start")
            start.start_tensorflow()
        assert package.__spec__ and package.__spec__.loader
        package.__spec__.loader.exec_module(package)
        gc.freeze()
    finally:
        gc.enable()


@contextmanager
def _without_probes() -> Iterator[None]:
    """Hides the packages that Keras and TensorFlow try to import at start."""
    hidden = [name for name in _PROBED if name not in sys.modules]
    for name in hidden:  # `None` makes an import raise ModuleNotFoundError
        sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


def call_received(connection: "Connection") -> None:
    """Receive a function of the package, and call it.

    TensorFlow is imported before, as by `start`.
    """
    with _without_notes():
        _load(_unloaded_package())
        function = connection.recv()
    function(connection)


def __getattr__(name: str) -> Callable[[], int]:
    """Returns the console script of a program, such as `train`."""
    if name.startswith("_"):
        raise AttributeError(name)
    return functools.partial(start, name)


@contextmanager
def _without_notes() -> Iterator[None]:
    """Leaves TensorFlow's notes out of standard error.

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
