"""Runs code in processes that know nothing of the test: saved models load."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]

# Forks a process for each line of its input. It has imported TensorFlow,
# TF.Text and Keras, but run nothing, and nothing of this package.
SERVER = """
import json, os, sys, traceback
import keras, tensorflow, tensorflow_text

assert not [name for name in sys.modules if name.startswith("keras_lstm_dssm")]
for request in map(json.loads, sys.stdin):
    process = os.fork()
    if not process:
        code = 1
        for stream, path in enumerate(request["streams"]):
            os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC), stream)
        try:
            os.chdir(request["folder"])
            sys.argv = ["-c", *request["arguments"]]
            exec(compile(request["code"], "<code>", "exec"), {})
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    status = os.waitpid(process, 0)[1]
    print(os.waitstatus_to_exitcode(status), flush=True)
"""


class FreshProcesses:
    """Starts a new process for every call.

    A process that imports TensorFlow takes four seconds; here this is done
    once, and the processes are its forks.

    Args:
        server: Process that runs `SERVER`.
        folder: Folder for what the processes print.
    """

    def __init__(self, server: "subprocess.Popen[str]", folder: Path) -> None:
        self.server = server
        self.output = folder / "output"
        self.errors = folder / "errors"

    def __call__(
        self,
        code: str,
        *arguments: object,
        folder: Path = ROOT,
        exit_code: int = 0,
    ) -> list[str]:
        """Runs Python code.

        Args:
            code: The code, which imports what it needs.
            *arguments: They become `sys.argv[1:]`.
            folder: Working folder.
            exit_code: Exit code that is expected.

        Returns:
            The lines that the process printed.

        Raises:
            AssertionError: The exit code is another; the message is what the
                process printed as errors.
        """
        request = {
            "code": code,
            "arguments": [*map(str, arguments)],
            "folder": str(folder),
            "streams": [os.devnull, str(self.output), str(self.errors)],
        }
        assert self.server.stdin and self.server.stdout
        print(json.dumps(request), file=self.server.stdin, flush=True)
        found = self.server.stdout.readline()
        assert found == f"{exit_code}\n", self.errors.read_text()
        return self.output.read_text().splitlines()


@contextmanager
def fresh_processes(folder: Path) -> Iterator[FreshProcesses]:
    """Starts the process that forks, and ends it.

    Its strings have other hashes than ours, and sets of strings another order.

    Args:
        folder: Folder for what the processes print.
    """
    environment = {"PYTHONHASHSEED": "12", "PYTHONPATH": str(ROOT)}
    with (
        (folder / "errors").open("w") as errors,
        subprocess.Popen(
            [sys.executable, "-c", SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **environment},
        ) as server,
    ):
        yield FreshProcesses(server, folder)
        assert server.stdin
        server.stdin.close()
