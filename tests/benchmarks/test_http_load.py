"""The HTTP clients of the suite `load` report each request that fails."""

import asyncio
import socketserver
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from keras_lstm_dssm.benchmarks import http_load

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
ERROR = b"HTTP/1.1 500 Error\r\nContent-Length: 4\r\n\r\noops"
ENDLESS = b"HTTP/1.1 200 OK\r\n\r\n"
PATH = "/v1/models/m:predict"


@contextmanager
def serving(replies: Sequence[bytes]) -> Iterator[str]:
    """Serves the same replies on each connection, and closes it then."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            for reply in replies:
                head = self.rfile.readline()
                if not head:
                    return
                assert head == f"POST {PATH} HTTP/1.1\r\n".encode()
                while self.rfile.readline() != b"\r\n":
                    pass
                assert self.rfile.read(4) == b"body"
                self.wfile.write(reply)

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        try:
            host, port = server.server_address[:2]
            yield f"{host}:{port}"
        finally:
            server.shutdown()
            thread.join()


def ask(address: str, seconds: float) -> tuple[int, set[str]]:
    """Returns the number of good replies, and the errors."""
    milliseconds: list[float] = []
    errors: list[str] = []
    end = time.perf_counter() + seconds
    asyncio.run(
        http_load.run_http_client(
            address, PATH, [b"body"], end, milliseconds, errors
        )
    )
    return len(milliseconds), set(errors)


def test_replies_are_counted_by_status() -> None:
    """A connection that is closed is opened again."""
    with serving([OK, ERROR, OK]) as address:
        good, errors = ask(address, 0.2)
    assert good > 2
    assert "status 500" in errors
    assert {error.split(":")[0] for error in errors} <= {
        "status 500", "IncompleteReadError", "ConnectionResetError",
    }  # fmt: skip


def test_a_reply_without_length_is_an_error() -> None:
    with serving([ENDLESS]) as address:
        good, errors = ask(address, 0.2)
    assert good == 0
    assert errors == {"EOFError: a reply without content-length"}


def test_a_server_that_is_not_there_is_an_error() -> None:
    good, errors = ask("127.0.0.1:1", 0.05)
    assert good == 0
    (error,) = errors
    assert "Connect call failed" in error


def test_the_only_client_ends_at_a_failure() -> None:
    with serving([OK, ERROR]) as address:
        with http_load._sender(address, PATH) as send:
            assert send(b"body") == b"ok"
            with pytest.raises(OSError, match="500: oops"):
                send(b"body")
