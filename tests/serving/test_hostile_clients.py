"""Clients that send nothing, half of a request, or read nothing.

Others are answered meanwhile, memory comes back, and the server stops in
time. All limits are small here.
"""

import gc
import os
import resource
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest
from grpc_health.v1.health_pb2_grpc import HealthStub

from keras_lstm_dssm.benchmarks.hostile_clients import (
    CHECK,
    PREDICT,
    WATCH,
    RawChannel,
)
from keras_lstm_dssm.serving import (
    Bounds,
    Client,
    HttpClient,
    PredictionServer,
    Security,
    ServerTLS,
    grpc_services,
    http_server,
    limits,
    prediction_server,
)
from keras_lstm_dssm.serving.grpc_services import Services
from keras_lstm_dssm.serving.rest_api import Reply, RestApi
from keras_lstm_dssm.serving.servable import Servable
from tests.serving.memory import resident_mb
from tests.serving.waiting import wait_until
from tests.serving.wire import predict_request

SECONDS = 0.6


@pytest.fixture(autouse=True)
def small_limits(monkeypatch) -> None:
    for module, name in (
        (grpc_services, "MESSAGE_SECONDS"),
        (grpc_services, "HEALTH_SECONDS"),
        (prediction_server, "MESSAGE_SECONDS"),
        (http_server, "REQUEST_SECONDS"),
        (http_server, "REPLY_SECONDS"),
        (http_server, "HANDSHAKE_SECONDS"),
    ):
        monkeypatch.setattr(module, name, SECONDS)
    monkeypatch.setattr(prediction_server, "TICK_SECONDS", 0.05)


@pytest.fixture
def models(tiny_models: Path, tmp_path) -> Path:
    (tmp_path / "retriever").symlink_to(tiny_models / "retriever")
    return tmp_path


@pytest.fixture
def server(models: Path) -> Iterator[PredictionServer]:
    with PredictionServer(
        models,
        port=0,
        http_port=0,
        grace_seconds=0.5,
        bounds=Bounds(max_requests=32),
    ) as running:
        yield running


def port(server: PredictionServer) -> int:
    assert server.http_address
    return int(server.http_address.rpartition(":")[2])


def answers(server: PredictionServer) -> None:
    """Both protocols and health answer new clients, and soon."""
    with (
        grpc.insecure_channel(server.address) as channel,
        Client(server.address, timeout=20) as client,
        HttpClient(server.http_address or "", timeout=20) as http_client,
    ):
        for ask in (
            lambda: HealthStub(channel).Check(HealthCheckRequest(), timeout=20),
            lambda: client.search(["bolt"], k=1),
            lambda: http_client.search(["bolt"], k=1),
        ):
            start = time.monotonic()
            ask()
            assert time.monotonic() - start < 5


def stops(server: PredictionServer) -> None:
    start = time.monotonic()
    server.__exit__(None, None, None)
    assert time.monotonic() - start < 1.5  # grace and a second


@pytest.mark.parametrize("method", [PREDICT, CHECK, WATCH])
@pytest.mark.parametrize("half", [False, True])
def test_calls_without_a_message(server, method, half):
    """300 calls of one connection and 30 of one each; all end in time."""
    with ExitStack() as stack:

        def call(calls: int) -> RawChannel:
            channel = RawChannel(server.port)
            stack.enter_context(closing(channel))
            for _ in range(calls):
                channel.call(method, *((b"\n" * 99, 9999) if half else ()))
            return channel

        channels = {call(count): count for count in (300, *[1] * 30)}
        answers(server)
        for channel, count in channels.items():
            assert channel.ended(count) == count
        answers(server)


def test_the_oldest_calls_end_first(models, monkeypatch):
    """Of one address, or of all; long before their time."""
    for name in ("MESSAGE_SECONDS", "HEALTH_SECONDS"):
        monkeypatch.setattr(grpc_services, name, 30)
    monkeypatch.setattr(limits, "_ARRIVAL_SECONDS", 0.1)
    for module in (limits, grpc_services):
        monkeypatch.setattr(module, "MAX_WAITING", 60)
    with (
        PredictionServer(models, port=0, http_port=0) as server,
        closing(RawChannel(server.port)) as channel,
    ):
        for _ in range(100):
            channel.call(PREDICT)
        # At most 60 of them wait at once, and after a while 16.
        assert channel.ended(84, seconds=2) == 84
        answers(server)
        with pytest.raises(TimeoutError):
            channel.ended(85, seconds=0.3)


WIDE = b"\0" * 6_000_000


@pytest.fixture
def wide_replies(monkeypatch) -> None:
    """Has requests with the text "wide" answered with 6 MB."""
    by_grpc, by_http = Services.answer, RestApi.answer

    def answer(
        services: Services, method: str, request: Any, *more: Any
    ) -> bytes:
        if request.ByteSize() and b"wide" in request.SerializeToString():
            return WIDE
        return by_grpc(services, method, request, *more)

    def answer_http(api: RestApi, method: str, path: str, body: bytes) -> Reply:
        if b"wide" in body:
            return Reply(200, WIDE)
        return by_http(api, method, path, body)

    monkeypatch.setattr(Services, "answer", answer)
    monkeypatch.setattr(RestApi, "answer", answer_http)


def wide_request() -> bytes:
    request = predict_request("retriever", text=["wide"], k=np.int32([1]))
    return request.SerializeToString()


@pytest.mark.usefixtures("wide_replies")
def test_grpc_replies_that_nobody_reads(server):
    """Of 6 MB each; the streams are reset, and their memory freed."""
    answers(server)
    sizes = []
    with ExitStack() as stack:
        for _ in range(6):
            channel = RawChannel(server.port, window=0)
            stack.enter_context(closing(channel))
            for _ in range(8):
                channel.call(PREDICT, wide_request())
            answers(server)
            # gRPC keeps the last call until the next one comes.
            channel.ended(7)
            answers(server)
            channel.ended(8)
            gc.collect()
            sizes.append(resident_mb())
    # The first rounds fill the buffers that are kept; one more may do so. A
    # round that is not freed is 48 MB, the last three would be 144.
    assert sizes[-1] - sizes[2] < 72, sizes


def test_a_watch_that_nobody_reads(server):
    """Neither health nor a poll nor the end of the server waits for it."""
    with ExitStack() as stack:
        for _ in range(20):
            channel = RawChannel(server.port, window=0)
            stack.enter_context(closing(channel)).call(WATCH, b"")
        time.sleep(0.1)
        start = time.monotonic()
        server.poll()
        assert time.monotonic() - start < 1
        answers(server)
        stops(server)


def test_streams_of_watch_are_bounded(server, monkeypatch):
    monkeypatch.setattr(grpc_services, "MAX_WATCHES", 3)
    with grpc.insecure_channel(server.address) as channel:
        watch = HealthStub(channel).Watch
        watches = [watch(HealthCheckRequest(), timeout=20) for _ in range(3)]
        for each in watches:
            next(each)
        with pytest.raises(grpc.RpcError, match="too many streams") as caught:
            next(watch(HealthCheckRequest(), timeout=20))
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        for each in watches:
            each.cancel()
        stops(server)


GET = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = (
    b"POST /v1/models/retriever:predict HTTP/1.1\r\nHost: localhost\r\n"
    b"Content-Length: %d\r\n\r\n"
)


def connect(
    server: PredictionServer, sent: bytes, buffer: int = 1 << 16
) -> socket.socket:
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    connection.settimeout(10)
    connection.connect(("127.0.0.1", port(server)))
    connection.sendall(sent)
    return connection


def received(connection: socket.socket) -> bytes:
    """Returns what the server sends until it closes."""
    data = b""
    try:
        while part := connection.recv(1 << 16):
            data += part
    except ConnectionResetError:
        pass
    return data


def read_alive(connection: socket.socket) -> None:
    data = b""
    while not data.endswith(b'{"status":"alive"}'):
        data += connection.recv(4096)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"", b""),
        (b"G", b""),
        (GET[:-1], b""),
        (GET + b"G", b"HTTP/1.1 200 OK"),
        (POST % 100 + b'{"inputs"', b"HTTP/1.1 408 Request Timeout"),
        (POST.replace(b"POST", b"PUT") % 9, b"HTTP/1.1 408 Request Timeout"),
    ],
)
def test_http_requests_that_never_end(server, sent, status):
    """188 connections at once."""
    with ExitStack() as stack:
        connections = [
            stack.enter_context(connect(server, sent)) for _ in range(188)
        ]
        answers(server)
        start = time.monotonic()
        for connection in connections:
            assert received(connection).startswith(status)
        assert time.monotonic() - start < 5
        answers(server)


@pytest.mark.parametrize("sent", [b"G", POST % 100])
def test_bytes_that_trickle_in_do_not_extend_the_time(server, sent):
    with connect(server, sent) as connection:
        end = time.monotonic() + 5
        with pytest.raises(OSError):  # the server has closed
            while time.monotonic() < end:
                connection.sendall(b"x")
                time.sleep(0.05)


def test_one_byte_after_a_reply(server):
    with connect(server, GET) as connection:
        read_alive(connection)
        connection.sendall(b"G")
        start = time.monotonic()
        assert received(connection) == b""
        assert time.monotonic() - start < 5


def test_idle_connections_stay_open(server):
    """The time for a request begins with its first byte."""
    with connect(server, GET) as connection:
        for _ in range(2):
            read_alive(connection)
            time.sleep(1.5 * SECONDS)
            connection.sendall(GET)


@pytest.mark.usefixtures("wide_replies")
def test_http_replies_that_nobody_reads(server):
    """Four clients, each with four requests for 6 MB at once."""
    body = b"wide"
    with ExitStack() as stack:
        connections = [
            stack.enter_context(
                connect(server, 4 * (POST % len(body) + body), 4096)
            )
            for _ in range(4)
        ]
        answers(server)
        for connection in connections:
            connection.recv(1, socket.MSG_PEEK)
        # Later, what the sockets' buffers took comes, and then the end.
        time.sleep(2 * SECONDS)
        for connection in connections:
            data = received(connection)
            assert data.count(b"HTTP/1.1 200 OK") == 1
            assert len(data) < 5_000_000


@pytest.mark.usefixtures("wide_replies")
def test_the_end_waits_for_nobody_else(server):
    """All of them at once, when the server stops."""
    body = b"wide"
    with ExitStack() as stack:
        for sent in (b"", b"G", GET + b"G", POST % 9, POST % len(body) + body):
            for _ in range(5):
                stack.enter_context(connect(server, sent))
        for path, message in (
            (PREDICT, None),
            (CHECK, None),
            (WATCH, b""),
            (PREDICT, wide_request()),
        ):
            channel = RawChannel(server.port, window=0)
            stack.enter_context(closing(channel))
            for _ in range(5):
                channel.call(path, message)
        time.sleep(0.1)
        stops(server)


def test_the_end_gives_up_a_request_that_does_not_end(models, monkeypatch):
    release, running = threading.Event(), threading.Event()

    def hold(*_: object) -> object:
        running.set()
        assert release.wait(20)
        raise ValueError

    monkeypatch.setattr(Servable, "predict", hold)
    with (
        PredictionServer(models, port=0, grace_seconds=0.3) as server,
        Client(server.address, timeout=20) as client,
        ThreadPoolExecutor(1) as pool,
    ):
        client.signatures("retriever")
        asked = pool.submit(client.search, ["bolt"])
        assert running.wait(20)
        stops(server)
        assert server.unfinished == 1
        assert asked.exception()
        release.set()


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1")
def test_silent_handshakes(models, certificates):
    tls = ServerTLS(certificates / "server.crt", certificates / "server.key")
    with PredictionServer(
        models, port=0, http_port=0, security=Security(tls)
    ) as server:
        with ExitStack() as stack:
            connections = [
                stack.enter_context(
                    socket.create_connection(("127.0.0.1", number), 10)
                )
                for number in (server.port, port(server))
                for _ in range(20)
            ]
            start = time.monotonic()
            for connection in connections:
                connection.sendall(b"\x16\x03\x01\x02")
            for connection in connections:
                received(connection)
            assert time.monotonic() - start < 5
        # The context is that of the server's certificate.
        context = ssl.create_default_context(
            cafile=str(certificates / "ca.crt")
        )
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        assert offered(context, server) == "TLSv1.2"
        context.minimum_version = ssl.TLSVersion.TLSv1_1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
        context.set_ciphers("ALL:@SECLEVEL=0")
        with pytest.raises(ssl.SSLError):
            offered(context, server)


def offered(context: ssl.SSLContext, server: PredictionServer) -> str | None:
    with (
        socket.create_connection(("127.0.0.1", port(server)), 10) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as encrypted,
    ):
        return encrypted.version()


def test_silent_connections_are_closed_when_files_are_short(
    server, monkeypatch
):
    """The connections without a request hold up nobody who wants something.

    One that has had a reply stays, although it has been silent for longest.
    """
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("only on Linux")
    monkeypatch.setattr(http_server, "REQUEST_SECONDS", 30)
    monkeypatch.setattr(limits, "_ARRIVAL_SECONDS", 0.1)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    with ExitStack() as stack:
        answered = stack.enter_context(
            socket.create_connection(("127.0.0.1", port(server)), 10)
        )
        answered.sendall(
            b"GET /v1/models/retriever HTTP/1.1\r\nHost: localhost\r\n\r\n"
        )
        assert b"200 OK" in answered.recv(1 << 16)
        connections = [
            stack.enter_context(
                socket.create_connection(("127.0.0.1", number), 10)
            )
            for number in (server.port, port(server))
            for _ in range(20)
        ]
        time.sleep(0.2)
        files = len(os.listdir("/proc/self/fd"))
        monkeypatch.setattr(limits, "_FULL_FILES", (files - 10) / most)
        closed: Callable[[], int] = lambda: sum(  # noqa: E731
            is_closed(each) for each in connections
        )
        wait_until(lambda: 9 <= closed() < 40)
        assert not is_closed(answered)
        monkeypatch.undo()
        answers(server)


def is_closed(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        while connection.recv(1 << 16):
            pass
        return True
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True
