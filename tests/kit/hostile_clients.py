"""A client of HTTP/2 that begins calls and ends none.

gRPC's clients cannot send such calls: `RawChannel` writes the frames itself.
"""

import socket
import struct

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
