"""Forks a process for each request: a script, started by `fresh_process.py`.

It has imported TensorFlow, TF.Text and Keras, which takes four seconds, but
run nothing, and nothing of this package. A request is the path of a JSON file,
sent with the three standard streams of the new process; the replies are its
number and, at its end, its exit code. The server ends when nobody is
connected any more.
"""

import json
import os
import selectors
import socket
import sys
import traceback
from typing import Any

import keras  # noqa: F401
import tensorflow  # noqa: F401
import tensorflow_text  # noqa: F401

assert not [name for name in sys.modules if name.startswith("keras_lstm_dssm")]


def main(path: str) -> None:
    """Serves requests at a socket of this path."""
    selector = selectors.DefaultSelector()
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server.bind(path)
    server.listen()
    selector.register(server, selectors.EVENT_READ)
    print("ready", flush=True)
    clients = 0
    while True:
        for key, _ in selector.select():
            if key.fileobj is server:
                selector.register(server.accept()[0], selectors.EVENT_READ)
                clients += 1
            elif isinstance(key.fileobj, int):
                selector.unregister(key.fileobj)
                os.close(key.fileobj)
                process, connection = key.data
                status = os.waitpid(process, 0)[1]
                reply(connection, os.waitstatus_to_exitcode(status))
            elif not serve(selector, key.fileobj):
                selector.unregister(key.fileobj)
                key.fileobj.close()
                clients -= 1
                if not clients:
                    return


def serve(selector: selectors.BaseSelector, connection: Any) -> bool:
    """Forks what is asked for; returns False when the connection has ended."""
    request, streams, _, _ = socket.recv_fds(connection, 1 << 16, 3)
    if not request:
        return False
    process = os.fork()
    if not process:
        for key in [*selector.get_map().values()]:
            if isinstance(key.fileobj, int):
                os.close(key.fileobj)
            else:
                key.fileobj.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        with open(request, encoding="utf-8") as file:
            run(**json.load(file))
    for stream in streams:
        os.close(stream)
    reply(connection, process)
    ended = os.pidfd_open(process)
    selector.register(ended, selectors.EVENT_READ, (process, connection))
    return True


def reply(connection: socket.socket, number: int) -> None:
    """Sends a number to a client, if it is still there."""
    try:
        connection.sendall(str(number).encode())
    except OSError:
        pass  # it was not waiting


def run(
    code: str, arguments: list[str], folder: str, environment: dict[str, str]
) -> None:
    """Runs Python code as `python -c` does, and ends the process."""
    exit_code: Any = 1
    try:
        os.environ.update(environment)
        os.chdir(folder)
        sys.argv = ["-c", *arguments]
        exec(compile(code, "<code>", "exec"), {"__name__": "__main__"})
        exit_code = 0
    except SystemExit as end:
        exit_code = end.code or 0
        if isinstance(exit_code, str):
            print(exit_code, file=sys.stderr)
            exit_code = 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(exit_code)


if __name__ == "__main__":
    sys.path[0] = ""  # as for `python -c`, not the folder of this file
    main(sys.argv[1])
