"""Hostile clients, which send nothing or half a request, or read nothing.

    python -m keras_lstm_dssm.benchmarks.hostile_clients GRPC HTTP COUNT REQUEST

attacks the two addresses until it is killed; REQUEST is a file with a Predict
request. `RawChannel` writes frames of HTTP/2 itself, because gRPC's clients
cannot send such calls.
"""

import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from pathlib import Path

PREDICT = "/tensorflow.serving.PredictionService/Predict"
CHECK = "/grpc.health.v1.Health/Check"
WATCH = "/grpc.health.v1.Health/Watch"

DATA, HEADERS, RST, SETTINGS = 0, 1, 3, 4
END_STREAM, END_HEADERS = 1, 4
_INITIAL_WINDOW = 4


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Returns a frame of HTTP/2."""
    length = struct.pack(">I", len(payload))[1:]
    return length + struct.pack(">BBI", kind, flags, stream) + payload


def headers(path: str) -> bytes:
    """Returns the headers of a call, without compression."""
    pairs = {
        ":method": "POST",
        ":scheme": "http",
        ":path": path,
        ":authority": "localhost",
        "te": "trailers",
        "content-type": "application/grpc",
    }
    return b"".join(
        b"\0" + bytes([len(name)]) + name.encode()
        + bytes([len(value)]) + value.encode()
        for name, value in pairs.items()
    )  # fmt: skip


class RawChannel:
    """A connection of HTTP/2 that sends only what `call` says.

    The server may send `window` bytes of each reply.
    """

    def __init__(self, port: int, window: int = 65_535) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), 20)
        setting = struct.pack(">HI", _INITIAL_WINDOW, window)
        self.socket.sendall(
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, setting)
        )
        self._next = 1
        self._received = b""
        self._ended: set[int] = set()

    def call(
        self, path: str, message: bytes | None = None, stated: int | None = None
    ) -> None:
        """Begins a call of a method, such as `/package.Service/Method`.

        Sends `message` if there is one; it is said to have `stated` bytes, by
        default its own number.
        """
        sent = frame(HEADERS, END_HEADERS, self._next, headers(path))
        if message is not None:
            size = len(message) if stated is None else stated
            payload = struct.pack(">BI", 0, size) + message
            flags = END_STREAM if stated is None else 0
            sent += frame(DATA, flags, self._next, payload)
        self._next += 2
        self.socket.sendall(sent)

    def ended(self, count: int, seconds: float = 10) -> int:
        """Reads until so many calls have ended; returns how many did."""
        self.socket.settimeout(seconds)
        while len(self._ended) < count:
            while len(self._received) < 9:
                self._receive()
            length = int.from_bytes(self._received[:3], "big")
            while len(self._received) < 9 + length:
                self._receive()
            kind, flags, stream = struct.unpack(">BBI", self._received[3:9])
            self._received = self._received[9 + length :]
            if kind == RST or (kind == HEADERS and flags & END_STREAM):
                self._ended.add(stream)
        return len(self._ended)

    def _receive(self) -> None:
        data = self.socket.recv(1 << 16)
        assert data, "the server closed the connection"
        self._received += data

    def close(self) -> None:
        """Closes the connection."""
        self.socket.close()


_TOGETHER = 16
"""Number of calls, or of connections, of a hostile client at a time."""

_HOLD_SECONDS = 1.0


def _calls(
    target: str, path: str, message: bytes | None, stated: int | None
) -> None:
    """Makes calls that never end, on one connection."""
    channel = RawChannel(int(target.rpartition(":")[2]), window=0)
    with closing(channel):
        for _ in range(_TOGETHER):
            channel.call(path, message, stated)
        time.sleep(_HOLD_SECONDS)


def _connections(target: str, sent: bytes) -> None:
    """Opens connections, sends the same bytes on each, and reads nothing."""
    host, _, port = target.rpartition(":")
    with ExitStack() as stack:
        for _ in range(_TOGETHER):
            connection = socket.create_connection((host, int(port)), 5)
            stack.enter_context(connection).sendall(sent)
        time.sleep(_HOLD_SECONDS)


def attacks(
    grpc_target: str, http_target: str, request: bytes
) -> list[Callable[[], None]]:
    """Returns the attacks, each of which opens calls or connections."""
    livez = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
    metadata = (
        b"GET /v1/models/query_encoder/metadata HTTP/1.1\r\n"
        b"Host: localhost\r\n\r\n"
    )
    post = (
        b"POST /v1/models/query_encoder:predict HTTP/1.1\r\n"
        b"Host: localhost\r\nContent-Length: 9999\r\n\r\n{"
    )
    return [
        lambda: _calls(grpc_target, PREDICT, None, None),
        lambda: _calls(grpc_target, CHECK, None, None),
        lambda: _calls(grpc_target, PREDICT, request[:-1], len(request)),
        lambda: _calls(grpc_target, PREDICT, request, None),
        lambda: _calls(grpc_target, WATCH, b"", None),
        lambda: _connections(http_target, b"GET / HT"),
        lambda: _connections(http_target, livez + b"G"),
        lambda: _connections(http_target, post),
        lambda: _connections(http_target, 9 * metadata),
        lambda: _connections(grpc_target, b""),
        lambda: _connections(grpc_target, os.urandom(99)),
        lambda: _connections(http_target, os.urandom(99)),
    ]


def _repeat(attack: Callable[[], None]) -> None:
    while True:
        with suppress(OSError):  # the server has closed the connection
            attack()
        time.sleep(0.01)


def main(
    grpc_target: str, http_target: str, clients: int, request: Path
) -> None:
    """Sends until killed."""
    kinds = attacks(grpc_target, http_target, request.read_bytes())
    threads = [
        threading.Thread(target=_repeat, args=(kinds[i % len(kinds)],))
        for i in range(clients)
    ]
    for thread in threads:
        thread.start()
    print(f"serving on {grpc_target}", flush=True)  # for `running_server`


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
