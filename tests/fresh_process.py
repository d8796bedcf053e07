"""Runs code and programs in processes that know nothing of the test."""

import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

ROOT = Path(__file__).parents[1]
SERVER = Path(__file__).with_name("kit") / "fork_server.py"
PROGRAM = (
    "import sys, lstm_dssm_programs; lstm_dssm_programs.start(sys.argv.pop(1))"
)


class ForkedProcess:
    """A forked process, as a `subprocess.Popen`; the server has its code."""

    def __init__(
        self, connection: socket.socket, streams: tuple[TextIO, TextIO]
    ) -> None:
        self._connection = connection
        self.stdout, self.stderr = streams
        self.pid = int(connection.recv(64))
        self.returncode: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        """Waits for the end; returns the exit code."""
        if self.returncode is None:
            self._connection.settimeout(timeout)
            try:
                self.returncode = int(self._connection.recv(64))
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired("fork", timeout or 0) from None
        return self.returncode

    def poll(self) -> int | None:
        """Returns the exit code, or None while the process runs."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def send_signal(self, number: int) -> None:
        """Sends a signal, unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Ends the process at once."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Asks the process to end."""
        self.send_signal(signal.SIGTERM)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Waits for the end; returns all that was not read yet."""
        read: dict[str, str] = {}

        def read_all(name: str) -> None:
            read[name] = getattr(self, name).read()

        readers = [
            threading.Thread(target=read_all, args=[name], daemon=True)
            for name in ("stdout", "stderr")
        ]
        for reader in readers:
            reader.start()
        self.wait(timeout)
        for reader in readers:
            reader.join()
        return read["stdout"], read["stderr"]

    def __enter__(self) -> "ForkedProcess":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        if kind:  # a test has failed: do not wait for what it would have sent
            self.kill()
        self.wait()
        self.stdout.close()
        self.stderr.close()
        self._connection.close()


class FreshProcesses:
    """Starts a new process for every call, a fork of `fork_server.py`.

    That has imported TensorFlow, in four seconds. Requests are files."""

    def __init__(self, socket_path: Path, folder: Path) -> None:
        self._socket_path = socket_path
        self._folder = folder
        self._numbers = itertools.count()

    def __call__(
        self, code: str, *arguments: object, folder: Path = ROOT,
        exit_code: int = 0,
    ) -> list[str]:  # fmt: skip
        """Runs Python code in a folder; returns the lines that it prints.

        The arguments become `sys.argv[1:]`; the exit code must be right."""
        with self.start(code, *arguments, folder=folder) as process:
            printed, errors = process.communicate()
        assert process.returncode == exit_code, errors
        return printed.splitlines()

    def program(self, *arguments: object, **options: Any) -> ForkedProcess:
        """Starts a program by its name; for options see `start`."""
        return self.start(PROGRAM, *arguments, **options)

    def start(
        self, code: str, *arguments: object, folder: Path = ROOT,
        environment: Mapping[str, str] | None = None,
    ) -> ForkedProcess:  # fmt: skip
        """Starts Python code, and does not wait for its end.

        TensorFlow, imported before, does not see what the environment adds."""
        request = self._folder / f"{next(self._numbers)}.json"
        given = {
            "code": code, "arguments": [*map(str, arguments)],
            "folder": str(folder), "environment": dict(environment or {}),
        }  # fmt: skip
        request.write_text(json.dumps(given), encoding="utf-8")
        pipes = os.pipe(), os.pipe()
        connection = connect(self._socket_path)
        with open(os.devnull) as nothing:
            numbers = [nothing.fileno(), *(write for _, write in pipes)]
            socket.send_fds(connection, [os.fsencode(request)], numbers)
        for _, write in pipes:
            os.close(write)
        # The text of errors is read as it comes, whatever its bytes.
        streams = (os.fdopen(read, errors="replace") for read, _ in pipes)
        return ForkedProcess(connection, (next(streams), next(streams)))


def connect(path: Path) -> socket.socket:
    """Connects to a server."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(str(path))
    return connection


@contextmanager
def fork_server(folder: Path) -> Iterator[None]:
    """Starts the process that forks; it ends when nobody is connected.

    Its strings have other hashes than ours, and sets another order."""
    folder.mkdir()
    environment = {
        "PYTHONHASHSEED": "12",
        "PYTHONPATH": str(ROOT),
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    with (
        (folder / "errors").open("w") as errors,
        subprocess.Popen(
            [sys.executable, SERVER, folder / "socket"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, **environment},
        ) as server,
    ):
        assert server.stdout
        ready = server.stdout.readline()
        assert ready == "ready\n", (folder / "errors").read_text()
        yield
