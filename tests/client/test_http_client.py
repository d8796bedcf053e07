"""HttpClient returns what Client does; its retries, deadlines, connections."""

import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lstm_dssm_client import HttpClient, InputError, ServingError, tls_context
from lstm_dssm_client.text_client import Predict


def test_an_output_without_json_and_a_name_with_a_slash(clients):
    message = "input 'y' is complex128; expected an array of numbers, or of"
    with pytest.raises(InputError, match=message):
        clients[1].predict("numbers", {"y": np.array([1 + 2j])})
    with pytest.raises(ServingError, match="model a/b c: ") as caught:
        clients[1].encode(["x"], model="a/b c")
    assert caught.value.code is HTTPStatus.NOT_FOUND


@pytest.mark.parametrize("target", [
    "", "ftp://x", "http://", "http://x:y", "http://a:b@c", "http://x/?q",
    "http://[::1",
])  # fmt: skip
def test_wrong_addresses(target):
    with pytest.raises(InputError, match="expected the address of a server"):
        HttpClient(target)


STATUS = {"model_version_status": [{
    "version": "3", "state": "AVAILABLE",
    "status": {"error_code": "OK", "error_message": ""},
}]}  # fmt: skip

Answer = Callable[[Any], Any]


class Server(ThreadingHTTPServer):
    """Answers each request by the next function of a list, then well."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: list[Answer] = []
        self.requests: list[tuple[int, str, str]] = []
        self.headers: list[dict[str, str]] = []


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, Server)
        size = int(self.headers.get("content-length", 0))
        body = self.rfile.read(size).decode()
        port = self.client_address[1]
        server.requests.append((port, self.path, body))
        server.headers.append(dict(self.headers))
        answer = server.answers.pop(0) if server.answers else reply(STATUS)
        answer(self)

    do_POST = do_GET

    def log_message(self, *_: object) -> None:
        pass


def reply(value: Any, status: int = 200) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        body = json.dumps(value).encode() if value is not None else b"<html>"
        begin(handler, status, len(body))
        handler.wfile.write(body)

    return answer


def hang_up(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)


def begin(handler: BaseHTTPRequestHandler, status: int, size: int) -> None:
    handler.send_response(status)
    handler.send_header("content-length", str(size))
    handler.end_headers()


def half(handler: BaseHTTPRequestHandler) -> None:
    begin(handler, 200, 100)
    handler.wfile.write(b'{"outputs"')
    handler.close_connection = True


@pytest.fixture
def fake() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def connected(server: Server, **options: Any) -> HttpClient:
    return HttpClient(f"http://127.0.0.1:{server.server_port}", **options)


def test_one_connection_for_many_requests(fake):
    with connected(fake, token="t" * 16) as client:
        for _ in range(3):
            assert client.status("a/b ü")[3] == ("AVAILABLE", "OK", "")
    assert len({port for port, *_ in fake.requests}) == 1
    assert {path for _, path, _ in fake.requests} == {
        "/v1/models/a%2Fb%20%C3%BC"
    }
    assert fake.headers[0]["authorization"] == "Bearer " + "t" * 16


def test_a_connection_that_was_closed_while_idle(fake):
    """It is sent on a new one at once, and does not count as an attempt."""
    with connected(fake) as client:
        client.status("x")
        (connection,) = client._transport._idle
        connection.sock._sock.shutdown(socket.SHUT_RDWR)
        start = time.monotonic()
        assert list(client.status("x")) == [3]
        assert time.monotonic() - start < 0.08
    assert len({port for port, *_ in fake.requests}) == 2


@pytest.mark.parametrize(
    "answer",
    [hang_up, half, reply({"error": "busy"}, 503), reply({"error": "x"}, 429)],
)
def test_what_is_tried_again(fake, answer):
    fake.answers = [answer] * 2
    start = time.monotonic()
    with connected(fake) as client:
        assert list(client.status("x")) == [3]
    assert len(fake.requests) == 3
    assert time.monotonic() - start > 0.24  # 0.1 and 0.2, less a fifth


@pytest.mark.parametrize(("status", "calls"), [
    (503, 5), (429, 5), (400, 1), (401, 1), (404, 1), (413, 1), (500, 1),
    (599, 1),
])  # fmt: skip
def test_how_often(fake, status, calls):
    fake.answers = [reply({"error": "on\npurpose"}, status)] * 9
    with connected(fake) as client, pytest.raises(ServingError) as caught:
        client.status("x")
    assert len(fake.requests) == calls
    assert caught.value.code == (status if status < 599 else 500)
    assert caught.value.details == "on\npurpose"
    assert "on purpose" in str(caught.value)


def test_the_deadline_holds_for_all_attempts(fake):
    fake.answers = [reply({"error": "busy"}, 503)] * 9
    start = time.monotonic()
    with connected(fake, timeout=0.25) as client:
        with pytest.raises(ServingError, match="no answer from"):
            client.status("x")
    assert time.monotonic() - start < 1
    assert 1 < len(fake.requests) < 5


class Slow(threading.Thread):
    """Accepts one connection, and does something on it each 0.03 seconds."""

    def __init__(self, act: Answer, start: bytes = b"", tls: Any = None):
        super().__init__()
        self._listener = socket.socket()
        # Small, so that the kernel does not take all at once.
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen()
        self.port = self._listener.getsockname()[1]
        self._act, self._begin, self._tls = act, start, tls
        self.start()

    def run(self) -> None:
        connection, _ = self._listener.accept()
        with self._listener, suppress(OSError):
            if self._tls:
                connection = self._tls.wrap_socket(connection, server_side=True)
            with connection:
                connection.recv(4096)
                connection.sendall(self._begin)
                for _ in range(50):
                    time.sleep(0.03)
                    self._act(connection)


@contextmanager
def out_of_time(slow: Slow | None = None) -> Iterator[None]:
    """Checks that a request ends after its 0.3 seconds."""
    began = time.monotonic()
    message = "within 0.3 s.*; raise timeout, or send"
    with pytest.raises(ServingError, match=message) as error:
        yield
    assert time.monotonic() - began < 0.8
    assert error.value.code is HTTPStatus.GATEWAY_TIMEOUT
    if slow:
        slow.join()


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize("encrypted", [False, True])
@pytest.mark.parametrize(("start", "piece"), [
    (b"", b"H"),  # the status line
    (OK, b"x"),  # a header
    (OK + b"transfer-encoding: chunked\r\n\r\n", b"0"),  # its size
    (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    (OK + b"content-length: 99\r\n\r\n", b" "),
], ids=["status", "header", "chunk", "continue", "body"])  # fmt: skip
def test_the_deadline_holds_for_a_reply_byte_by_byte(
    request, start, piece, encrypted
):
    ours = theirs = None
    if encrypted:
        folder: Path = request.getfixturevalue("certificates")
        ours = tls_context(folder / "ca.crt")
        theirs = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        theirs.load_cert_chain(folder / "server.crt", folder / "server.key")
    slow = Slow(lambda connection: connection.sendall(piece), start, theirs)
    address = f"http{'s' if ours else ''}://127.0.0.1:{slow.port}"
    with HttpClient(address, timeout=0.3, credentials=ours) as client:
        with out_of_time(slow):
            client.status("x")


def test_the_deadline_holds_for_a_request_that_is_received_slowly():
    slow = Slow(lambda connection: connection.recv(4096))
    transport = HttpClient(f"127.0.0.1:{slow.port}", timeout=0.3)._transport
    text = np.array([b"x" * (8 << 20)], object)
    request = Predict("m", None, "serving_default", {"text": text}, [])
    with out_of_time(slow):
        transport.send(request)


def test_the_deadline_holds_for_all_addresses_of_a_name(monkeypatch):
    """A host whose addresses all are silent costs one deadline."""
    with (
        socket.create_server(("127.0.0.1", 0), backlog=0) as full,
        socket.create_connection(full.getsockname()),
    ):
        name = full.getsockname()
        found = socket.getaddrinfo(*name, type=socket.SOCK_STREAM) * 4
        assert len(found) == 4
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        with HttpClient(f"x:{name[1]}", timeout=0.3) as client:
            with out_of_time():
                client.status("x")


def test_a_reply_above_the_limit(fake):
    fake.answers = [reply({"x": "y" * (1 << 20)})]
    with connected(fake, max_message_mb=1) as client:
        with pytest.raises(ServingError, match="larger than 1,048,576 bytes"):
            client.status("x")
        assert list(client.status("x")) == [3]


METADATA = {
    "model_spec": {"name": "m", "version": "7"},
    "metadata": {"signature_def": {"signature_def": {
        "serving_default": {
            "inputs": {"text": {"dtype": "DT_STRING", "tensor_shape": {
                "dim": [{"size": "-1"}], "unknown_rank": False}}},
            "outputs": {"embedding": {"dtype": "DT_FLOAT", "tensor_shape": {
                "dim": [{"size": "-1"}, {"size": "2"}]}}},
            "method_name": "tensorflow/serving/predict",
        },
        "__saved_model_init_op": {"inputs": {}, "method_name": "", "outputs": {
            "x": {"dtype": "DT_INVALID",
                  "tensor_shape": {"unknown_rank": True}}}},
    }}},
}  # fmt: skip


def test_what_is_sent(fake):
    fake.answers = [reply(METADATA), reply({"outputs": [[1, 2], [3, 4]]})]
    with connected(fake) as client:
        found = client.encode(["é", b"\xff"], model="m", version="canary")
    assert found.tolist() == [[1, 2], [3, 4]]
    (_, first, _), (_, second, body) = fake.requests
    assert first == "/v1/models/m/labels/canary/metadata"
    assert second == "/v1/models/m/labels/canary:predict"
    assert json.loads(body) == {
        "signature_name": "serving_default",
        "inputs": {"text": ["é", {"b64": "/w=="}]},
    }
    assert fake.headers[1]["content-type"] == "application/json"


@pytest.mark.parametrize("wrong", [
    None, [], {}, {"outputs": "x"}, {"outputs": [["a", "b"]]},
    {"outputs": [[1], [2, 3]]}, {"outputs": None},
])  # fmt: skip
def test_replies_of_other_servers(fake, wrong):
    with connected(fake) as client:
        fake.answers = [reply(METADATA), reply(wrong)]
        with pytest.raises(InputError, match="not in TF Serving's form|expec"):
            client.encode(["x"], model="m")
        fake.answers = [reply(wrong)]
        with pytest.raises(InputError, match="the status is not in TF Serving"):
            client.status("m")
        fake.answers = [reply(wrong)]
        with pytest.raises(InputError, match="the metadata is not in TF Servi"):
            client.signatures("m")
