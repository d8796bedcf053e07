"""Clients over HTTP for the benchmark suite `load`, and their echo server.

    python -m keras_lstm_dssm.benchmarks.http_load REPLY   # the echo server

The echo server is a Starlette application on uvicorn, which reads each request
and answers with the same reply, so that its latency is that of HTTP alone.
"""

import asyncio
import http.client
import json
import re
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from keras_lstm_dssm.benchmarks.measurement import (
    beside_echo,
    running_server,
)

TIMEOUT_SECONDS = 30.0
_METRICS = "/monitoring/prometheus/metrics"


def http_bodies(queries: Sequence[bytes]) -> list[bytes]:
    """Returns a Predict request in JSON for each query."""
    return [
        json.dumps({"instances": [query.decode(errors="replace")]}).encode()
        for query in queries
    ]


def compare_http_echo(
    address: str, path: str, bodies: Sequence[bytes], rounds: int, folder: str
) -> dict[str, float]:
    """Measures one HTTP client of our server and of the echo server in turn.

    Args:
        address: Host and port of our HTTP server.
        path: The path of the requests.
        bodies: The bodies of the requests.
        rounds: Passes over the requests, for medians.
        folder: An existing folder, for the echo server's reply.

    Returns:
        `p50_ms` and `p99_ms`, `echo_p50_ms` and `echo_p99_ms`, and
        `ratio_echo`, the p50 divided by the echo server's.
    """
    with _sender(address, path) as ours:
        reply = Path(folder, "http_reply")
        reply.write_bytes(ours(bodies[0]))
        command = [sys.executable, "-m", __name__, str(reply)]
        with (
            running_server(command) as echo_address,
            _sender(echo_address, path) as echo,
        ):
            return beside_echo(ours, echo, bodies, rounds)


@contextmanager
def _sender(address: str, path: str) -> Iterator[Callable[[bytes], bytes]]:
    """Opens a connection, and yields a function that sends a body on it."""
    connection = http.client.HTTPConnection(address, timeout=TIMEOUT_SECONDS)

    def send(body: bytes) -> bytes:
        connection.request("POST", path, body)
        reply = connection.getresponse()
        content = reply.read()
        if reply.status != 200:
            raise OSError(f"{reply.status}: {content.decode()}")
        return content

    try:
        yield send
    finally:
        connection.close()


async def run_http_client(
    address: str,
    path: str,
    bodies: Sequence[bytes],
    end: float,
    milliseconds: list[float],
    errors: list[str],
) -> None:
    """Sends requests on one connection until a time, without retries.

    Args:
        address: Host and port.
        path: The path of the requests.
        bodies: The bodies, sent in turn.
        end: When to stop, a time of `time.perf_counter`.
        milliseconds: The list to which the latency of each reply is appended.
        errors: The list to which errors are appended.
    """
    host, _, port = address.rpartition(":")
    requests = [
        f"POST {path} HTTP/1.1\r\nHost: {address}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n".encode()
        + body
        for body in bodies
    ]
    while time.perf_counter() < end:
        try:
            reader, writer = await asyncio.open_connection(host, int(port))
        except OSError as error:
            errors.append(str(error))
            continue
        try:
            while True:
                for request in requests:
                    start = time.perf_counter()
                    if start >= end:
                        return
                    writer.write(request)
                    status = await asyncio.wait_for(
                        _read_reply(reader), TIMEOUT_SECONDS
                    )
                    taken = 1000 * (time.perf_counter() - start)
                    if status == 200:
                        milliseconds.append(taken)
                    else:
                        errors.append(f"status {status}")
        except (OSError, EOFError, asyncio.TimeoutError) as error:  # noqa: UP041
            errors.append(f"{type(error).__name__}: {error}")
        finally:
            writer.close()


async def _read_reply(reader: asyncio.StreamReader) -> int:
    """Reads a reply, and returns its status code."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
    if length is None:
        raise EOFError("a reply without content-length")
    await reader.readexactly(int(length[1]))
    return int(head.split(b" ", 2)[1])


def resident_megabytes(address: str) -> float:
    """Returns the memory of a server, from its metrics."""
    url = f"http://{address}{_METRICS}"
    with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as reply:
        text = reply.read().decode()
    match = re.search(r"(?m)^process_resident_memory_bytes (\S+)$", text)
    return float(match[1]) / 1e6 if match else float("nan")


def run_echo_server(reply: bytes) -> None:
    """Serves a reply on a free port until killed."""
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from keras_lstm_dssm.serving.http_server import listening_socket

    async def echo(request: Request) -> Response:
        await request.body()
        return Response(reply, media_type="application/json")

    # Clients may connect before uvicorn accepts.
    socket = listening_socket("127.0.0.1", 0)
    print(f"serving on 127.0.0.1:{socket.getsockname()[1]}", flush=True)
    application = Starlette(
        routes=[Route("/{path:path}", echo, methods=["POST"])]
    )
    config = uvicorn.Config(
        application, log_config=None, access_log=False, lifespan="off"
    )
    uvicorn.Server(config).run([socket])


if __name__ == "__main__":
    run_echo_server(Path(sys.argv[1]).read_bytes())
