"""Clients that send nothing, half of a request, or read nothing.

Others are answered meanwhile, memory comes back, and the server stops in
time. All limits are small here.
"""

import gc
import resource
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest
from grpc_health.v1.health_pb2_grpc import HealthStub
from tensorflow.core.framework.tensor_pb2 import TensorProto
from tensorflow_serving.apis.predict_pb2 import PredictRequest, PredictResponse

from keras_lstm_dssm import serving
from keras_lstm_dssm.serving import http_server, prediction_server
from keras_lstm_dssm.serving.grpc_services import Predictions
from keras_lstm_dssm.serving.rest_api import Reply, RestApi
from keras_lstm_dssm.serving.servable import Servable
from tests.kit.hostile_clients import CHECK, PREDICT, WATCH, RawChannel
from tests.memory import resident_mb
from tests.serving.waiting import wait_until
from tests.serving.wire import predict_request

SECONDS = 0.6


@pytest.fixture(autouse=True)
def small_limits(monkeypatch) -> None:
    for module, names in (
        (prediction_server, ("MESSAGE", "CONNECTION")),
        (http_server, ("REQUEST", "REPLY")),
    ):
        for name in names:
            monkeypatch.setattr(module, f"{name}_SECONDS", SECONDS)
    monkeypatch.setattr(http_server, "KEEP_ALIVE_SECONDS", 2 * SECONDS)


@pytest.fixture
def models(tiny_models: Path, tmp_path) -> Path:
    (tmp_path / "retriever").symlink_to(tiny_models / "retriever")
    return tmp_path


@pytest.fixture
def server(models: Path) -> Iterator[serving.PredictionServer]:
    bounds = serving.Bounds(max_requests=32)
    with serving.PredictionServer(
        models, port=0, http_port=0, grace_seconds=0.5, bounds=bounds
    ) as running:
        yield running


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Closes connections at the end of a test."""
    with ExitStack() as opened:
        yield opened


@contextmanager
def within(seconds: float) -> Iterator[None]:
    start = time.monotonic()
    yield
    assert time.monotonic() - start < seconds


def http_port(server: serving.PredictionServer) -> int:
    return int((server.http_address).rpartition(":")[2])


def answers(server: serving.PredictionServer) -> None:
    """Both protocols and health answer new clients, and soon."""
    with (
        grpc.insecure_channel(server.address) as channel,
        serving.Client(server.address, timeout=20) as client,
        serving.HttpClient(server.http_address, timeout=20) as http_client,
    ):
        with within(5):
            HealthStub(channel).Check(HealthCheckRequest(), timeout=20)
        for each in (client, http_client):
            with within(5):
                each.search(["bolt"], k=1)


def stops(server: serving.PredictionServer) -> None:
    with within(1.5):  # grace and a second
        server.__exit__(None, None, None)


def calls(
    stack: ExitStack, server: serving.PredictionServer, count: int, method: str,
    *message: Any, **options: Any,
) -> RawChannel:  # fmt: skip
    """Opens a connection, and begins calls on it."""
    channel = RawChannel(server.port, **options)
    stack.enter_context(closing(channel))
    for _ in range(count):
        channel.call(method, *message)
    return channel


@pytest.mark.parametrize("method", [PREDICT, CHECK, WATCH])
@pytest.mark.parametrize("message", [(), (b"\n" * 99, 9999)])
def test_calls_without_a_message(server, stack, method, message):
    """300 calls of one connection and 30 of one each; all end in time."""
    channels = {
        calls(stack, server, count, method, *message): count
        for count in (300, *[1] * 30)
    }
    answers(server)
    for channel, count in channels.items():
        assert channel.ended(count) == count
    answers(server)


def test_the_oldest_calls_end_first(models, stack, monkeypatch):
    """Long before their time, if too many wait."""
    for name in ("MESSAGE_SECONDS", "CONNECTION_SECONDS"):
        monkeypatch.setattr(prediction_server, name, 30)
    monkeypatch.setattr(prediction_server, "MAX_MESSAGES", 60)
    with serving.PredictionServer(models, port=0, http_port=0) as server:
        channel = calls(stack, server, 100, PREDICT)
        assert channel.ended(40, seconds=2) == 40
        answers(server)  # three calls of gRPC
        with pytest.raises(TimeoutError):
            channel.ended(44, seconds=0.3)
        stack.close()


WIDE = b"\0" * 6_000_000


@pytest.fixture
def wide_replies(monkeypatch) -> None:
    """Has requests with the text "wide" answered with 6 MB."""
    by_grpc, by_http = Predictions.Predict, RestApi.answer

    def predict(
        predictions: Predictions, request: PredictRequest, context: Any
    ) -> PredictResponse:
        if b"wide" in request.SerializeToString():
            wide = TensorProto(tensor_content=WIDE)
            return PredictResponse(outputs={"wide": wide})
        return by_grpc(predictions, request, context)

    def answer_http(api: RestApi, method: str, path: str, body: bytes) -> Reply:
        if b"wide" in body:
            return Reply(200, WIDE)
        return by_http(api, method, path, body)

    monkeypatch.setattr(Predictions, "Predict", predict)
    monkeypatch.setattr(RestApi, "answer", answer_http)


def wide_request() -> bytes:
    request = predict_request("retriever", text=["wide"], k=np.int32([1]))
    return request.SerializeToString()


@pytest.mark.usefixtures("wide_replies")
def test_grpc_replies_that_nobody_reads(server, stack, caplog):
    """Of 6 MB each; their connections end, and their memory is freed."""
    answers(server)
    sizes = []
    for _ in range(6):
        channel = calls(stack, server, 8, PREDICT, wide_request(), window=0)
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
    # Clients that go are not logged.
    channel = calls(stack, server, 8, PREDICT, wide_request(), window=0)
    answers(server)
    channel.close()
    answers(server)
    assert not caplog.records


def test_a_watch_that_nobody_reads(server, stack):
    """Neither health nor a poll nor the end of the server waits for it."""
    for _ in range(20):
        calls(stack, server, 1, WATCH, b"", window=0)
    time.sleep(0.1)
    with within(1):
        server.poll()
    answers(server)
    stops(server)


def test_streams_of_watch_are_bounded(server, monkeypatch):
    monkeypatch.setattr(serving.grpc_services, "MAX_WATCHES", 3)
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
WIDE_POST = POST % 4 + b"wide"
EMBED, RERANK = (
    POST.replace(b"v1/models/retriever:predict", path)
    for path in (b"v1/embeddings", b"v2/rerank")
)


def connect(
    stack: ExitStack, number: int, sent: bytes = b"", buffer: int = 1 << 16
) -> socket.socket:
    """Connects to a port, and sends bytes."""
    connection = stack.enter_context(socket.socket())
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    connection.settimeout(10)
    connection.connect(("127.0.0.1", number))
    connection.sendall(sent)
    return connection


def received(connection: socket.socket) -> bytes:
    """Returns what the server sends until it closes."""
    data = b""
    with suppress(ConnectionResetError):
        while part := connection.recv(1 << 16):
            data += part
    return data


def read_alive(connection: socket.socket) -> None:
    data = b""
    while not data.endswith(b'{"status":"alive"}'):
        data += connection.recv(4096)


@pytest.mark.parametrize(("sent", "status"), [
    (b"", b""),
    (b"G", b""),
    (GET[:-1], b""),
    (GET + b"G", b"HTTP/1.1 200 OK"),
    (POST % 100 + b'{"inputs"', b"HTTP/1.1 408 Request Timeout"),
    (POST.replace(b"POST", b"PUT") % 9, b"HTTP/1.1 408 Request Timeout"),
    (EMBED % 9 + b'{"input"', b"HTTP/1.1 408 Request Timeout"),
])  # fmt: skip
def test_http_requests_that_never_end(server, stack, sent, status):
    """188 connections at once."""
    number = http_port(server)
    connections = [connect(stack, number, sent) for _ in range(188)]
    answers(server)
    with within(5):
        for connection in connections:
            found = received(connection)
            assert found.startswith(status) and bool(found) == bool(status)
    answers(server)


def test_no_http_after_a_refusal(server, stack, caplog):
    """h11 refuses to begin a second reply; the connection just ends."""
    head = (
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nHost: evil\r\n\r\n"
    )
    connection = connect(stack, http_port(server), head)
    assert connection.recv(1 << 16).startswith(b"HTTP/1.1 400 Bad Request")
    connection.sendall(b"no size of a chunk\r\n")
    with within(5):
        received(connection)
    assert not caplog.records


@pytest.mark.parametrize("sent", [b"G", POST % 100])
def test_bytes_that_trickle_in_do_not_extend_the_time(server, stack, sent):
    connection = connect(stack, http_port(server), sent)
    end = time.monotonic() + 5
    with pytest.raises(OSError):  # the server has closed
        while time.monotonic() < end:
            connection.sendall(b"x")
            time.sleep(0.05)


def test_the_time_for_a_request_begins_with_its_first_byte(server, stack):
    """Idle connections stay open; one byte after a reply is a request."""
    connection = connect(stack, http_port(server), GET)
    for sent in (GET, b"G"):
        read_alive(connection)
        time.sleep(1.5 * SECONDS)
        connection.sendall(sent)
    with within(5):
        assert received(connection) == b""


@pytest.mark.usefixtures("wide_replies")
def test_http_replies_that_nobody_reads(server, stack):
    """Six clients, each with four requests for 6 MB at once."""
    posts = [WIDE_POST] * 4 + [each % 4 + b"wide" for each in (EMBED, RERANK)]
    connections = [
        connect(stack, http_port(server), 4 * post, 4096) for post in posts
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
def test_a_reply_over_tls_that_nobody_reads(
    models, certificates, stack, monkeypatch
):
    monkeypatch.setattr(http_server, "KEEP_ALIVE_SECONDS", 75)
    tls = serving.ServerTLS(
        certificates / "server.crt", certificates / "server.key"
    )
    with serving.PredictionServer(
        models, port=0, http_port=0, security=serving.Security(tls)
    ) as server:
        plain = connect(stack, http_port(server), buffer=4096)
        context = serving.tls_context(certificates / "ca.crt")
        with context.wrap_socket(plain, server_hostname="localhost") as client:
            client.sendall(WIDE_POST)
            time.sleep(6 * SECONDS)
            size = 0
            with suppress(ConnectionResetError, ssl.SSLError):
                while part := client.recv(1 << 16):
                    size += len(part)
        assert size < 5_000_000


@pytest.mark.usefixtures("wide_replies")
def test_the_end_waits_for_nobody_else(server, stack):
    """All of them at once, when the server stops."""
    for sent in (b"", b"G", GET + b"G", POST % 9, WIDE_POST):
        for _ in range(5):
            connect(stack, http_port(server), sent)
    for path, message in (
        *[(PREDICT, None), (CHECK, None), (WATCH, b"")],
        (PREDICT, wide_request()),
    ):
        calls(stack, server, 5, path, message, window=0)
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
        serving.PredictionServer(models, port=0, grace_seconds=0.3) as server,
        serving.Client(server.address, timeout=20) as client,
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
def test_silent_handshakes(models, certificates, stack):
    tls = serving.ServerTLS(
        certificates / "server.crt", certificates / "server.key"
    )
    with serving.PredictionServer(
        models, port=0, http_port=0, security=serving.Security(tls)
    ) as server:
        connections = [
            connect(stack, server.port, b"\x16\x03\x01\x02") for _ in range(20)
        ]
        with within(5):
            for connection in connections:
                received(connection)
        # The context is that of the server's certificate.
        context = serving.tls_context(certificates / "ca.crt")

        def offered(version: ssl.TLSVersion) -> str | None:
            context.minimum_version = context.maximum_version = version
            plain = connect(stack, http_port(server))
            with context.wrap_socket(plain, server_hostname="localhost") as tls:
                return tls.version()

        assert offered(ssl.TLSVersion.TLSv1_2) == "TLSv1.2"
        context.set_ciphers("ALL:@SECLEVEL=0")
        with pytest.raises(ssl.SSLError):
            offered(ssl.TLSVersion.TLSv1_1)


def test_more_connections_than_files(server, stack, monkeypatch, caplog):
    """They end in time, and meanwhile the log has one line."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    connections = [stack.enter_context(socket.socket()) for _ in range(60)]
    few = max(each.fileno() for each in connections) + 20
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (few, hard))
        for number, each in enumerate(connections):
            port = (server.port, http_port(server))[number % 2]
            each.settimeout(10)
            each.connect(("127.0.0.1", port))
        wait_until(lambda: "ulimit -n" in caplog.text)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    for each in connections:
        received(each)
    answers(server)
    assert caplog.text.count("ulimit -n") == 1
