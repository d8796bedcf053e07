"""The HTTP server on its port, and its guard without one."""

import asyncio
import gzip
import socket
import sys
import tracemalloc
import urllib.request
import zlib
from collections.abc import Coroutine
from typing import Any

import pytest
from starlette.exceptions import HTTPException

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.serving import Client, PredictionServer, http_server
from keras_lstm_dssm.serving.http_server import Guard
from keras_lstm_dssm.serving.security import Security


def metrics(server: PredictionServer) -> dict[str, float]:
    url = f"{server.http_address}/monitoring/prometheus/metrics"
    with urllib.request.urlopen(url) as reply:
        assert reply.headers["content-type"].startswith("text/plain")
        lines = reply.read().decode().splitlines()
    pairs = [line.rsplit(" ", 1) for line in lines if line[0] != "#"]
    return {name: float(value) for name, value in pairs}


def count(protocol: str, model: str, signature: str, code: str) -> str:
    return (
        f'lstm_dssm_requests_total{{code="{code}",method="Predict",'
        f'model="{model}",protocol="{protocol}",signature="{signature}"}}'
    )


def test_metrics_count_both_protocols(server, send):
    before = metrics(server)
    body = '{"instances": [1]}'
    for _ in range(3):
        send("POST", "/v1/models/numbers:predict", body)
    send("POST", "/v1/models/numbers:predict", "[]")
    for name in ("x", "y"):  # unknown names add no series
        send("POST", f"/v1/models/{name}:predict", body)
    embed = '{"model": "query_encoder", "input": "a"}'
    send("POST", "/v1/embeddings", embed)
    send("GET", "/v1/models/numbers")  # runs no model
    with Client(server.address) as client:
        client.search(["bolt"])
    after = metrics(server)

    def more(name: str) -> float:
        return after[name] - before.get(name, 0)

    assert more(count("http", "numbers", "serving_default", "OK")) == 3
    wrong = count("http", "numbers", "serving_default", "INVALID_ARGUMENT")
    assert more(wrong) == 1
    assert more(count("http", "", "", "NOT_FOUND")) == 2
    assert more(count("grpc", "retriever", "serving_default", "OK")) == 1
    assert not any('model="x"' in name for name in after)
    assert after['lstm_dssm_model_versions{model="query_encoder"}'] == 2
    seconds = (
        'lstm_dssm_request_seconds_bucket{le="+Inf",method="Predict",'
        'model="numbers",protocol="http",signature="serving_default"}'
    )
    assert more(seconds) == 4
    # Under TF Serving's names: all that ran or failed, and what succeeded.
    tf_serving = ":tensorflow:serving:request_"
    for model, status, number in (
        ("numbers", "OK", 3), ("numbers", "INVALID_ARGUMENT", 1),
        ("", "NOT_FOUND", 2), ("retriever", "OK", 1),
        ("query_encoder", "OK", 1),
    ):  # fmt: skip
        labels = f'{{model_name="{model}",status="{status}"}}'
        assert more(f"{tf_serving}count{labels}") == number
    for api, entrypoint, model, number in (
        ("predict", "REST", "numbers", 3), ("Predict", "GRPC", "retriever", 1),
        ("embeddings", "REST", "query_encoder", 1),
    ):  # fmt: skip
        start = f'API="{api}",entrypoint="{entrypoint}"'
        labels = f'{{{start},model_name="{model}"}}'
        assert more(f"{tf_serving}latency_count{labels}") == number
        assert more(f"{tf_serving}latency_sum{labels}") > 100 * number
        above = f'{{{start},le="18.0",model_name="{model}"}}'
        assert more(f"{tf_serving}latency_bucket{above}") == 0


def test_health(server, send, monkeypatch):
    assert send("GET", "/livez") == (200, {"status": "alive"})
    assert send("GET", "/readyz") == (200, {"status": "ready"})
    monkeypatch.setattr(server.models, "versions", lambda _: [])
    code, reply = send("GET", "/readyz")
    assert code == 503
    assert "query_encoder" in reply["error"]
    assert send("GET", "/livez")[0] == 200


@pytest.mark.parametrize("size", [(16 << 20) + 1, 1 << 26])
def test_a_huge_body(server, send, size):
    """The server refuses it at once, yet reads on until the client listens."""
    code, reply = send("POST", "/v1/models/x:predict", b" " * size)
    assert code == 413
    assert "16,777,216 bytes" in reply["error"]


PREDICT = "/v1/models/query_encoder:predict"
BODY = b'{"instances": ["bolt"]}'


@pytest.mark.parametrize(("coding", "pack"), [
    ("gzip", gzip.compress), ("GZIP", gzip.compress),
    ("deflate", zlib.compress), ("identity", bytes),
])  # fmt: skip
def test_a_packed_body(send, coding, pack):
    plain = send("POST", PREDICT, BODY)
    assert plain[0] == 200
    packed = send("POST", PREDICT, pack(BODY), Content_Encoding=coding)
    assert packed == plain


@pytest.mark.parametrize(("coding", "body", "status", "message"), [
    ("br", BODY, 415, "the Content-Encoding is br: expected gzip, deflate"),
    ("gzip", BODY, 400, "cannot be unpacked: Error -3"),
    ("gzip", gzip.compress(BODY, mtime=0)[:-9], 400,
     "the compressed data is incomplete, or other data follows it"),
    ("gzip", gzip.compress(BODY, mtime=0) * 2, 400,
     "the compressed data is incomplete, or other data follows it"),
    ("gzip", gzip.compress(bytes((16 << 20) + 1), mtime=0), 413,
     "16,777,216 bytes"),
])  # fmt: skip
def test_a_packed_body_that_is_wrong(send, coding, body, status, message):
    code, reply = send("POST", PREDICT, body, Content_Encoding=coding)
    assert code == status
    assert message in reply["error"]


def test_no_more_is_unpacked_than_allowed():
    """A gigabyte of zeros is a megabyte of gzip."""
    part = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(part.compress(bytes(1 << 24)) for _ in range(64))
    tracemalloc.start()
    try:
        with pytest.raises(HTTPException, match="larger than 1,000 bytes"):
            http_server.unpacked(bomb, b"gzip", 1000)
        assert tracemalloc.get_traced_memory()[1] < 2 * len(bomb)
    finally:
        tracemalloc.stop()


def raw(server: PredictionServer, sent: bytes) -> bytes:
    """Sends bytes, and returns all that the server answers until it closes."""
    host, _, port = server.http_address.split("/")[2].partition(":")
    with socket.create_connection((host, int(port)), 10) as connection:
        connection.sendall(sent)
        received = b""
        while part := connection.recv(4096):
            received += part
        return received


def test_no_http(server):
    assert raw(server, b"\x16\x03\x01\x02\r\n\r\n").startswith(
        b"HTTP/1.1 400 Bad Request"
    )


def test_the_extra_is_missing(numbers, monkeypatch):
    monkeypatch.setitem(sys.modules, "starlette", None)
    with pytest.raises(InputError, match=r'pip install "keras-lstm-dssm\[http'):
        PredictionServer(numbers, port=0, http_port=0)


class Asked:
    """Sends the parts of a body, after which nothing comes, and gets answers.

    It is also the application behind the guard, and reads all of the body;
    and its own connection.
    """

    def __init__(self, *parts: bytes, ends: bool = True) -> None:
        self.messages = [
            {"type": "http.request", "body": part, "more_body": True}
            for part in parts
        ]
        if ends and parts:
            self.messages[-1]["more_body"] = False
        self.sent: list[Any] = []
        self.read = b""
        self.is_busy = False

    def begin(self) -> None:
        self.is_busy = True

    async def receive(self) -> Any:
        if not self.messages:
            await asyncio.Event().wait()
        return self.messages.pop(0)

    async def send(self, message: Any) -> None:
        self.sent.append(message)

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        more = True
        while more:
            message = await receive()
            self.read += message["body"]
            more = message["more_body"]
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body"})

    def guard(
        self, security: Security = Security(), host: str = "127.0.0.1"
    ) -> Any:
        return Guard(None, None, self.app, security, host, 4)  # type: ignore[arg-type]

    def ask(self, *headers: Any, path: str = "/", guard: Any = None) -> Any:
        """Sends the request through a guard, by default its own."""
        scope = {"type": "http", "path": path, "headers": headers,
                 "state": {"connection": self}}  # fmt: skip
        return (guard or self.guard())(scope, self.receive, self.send)

    def status(self, *headers: Any, path: str = "/", **guarded: Any) -> int:
        """Returns the status of the answer, which must be complete."""
        guard = self.guard(**guarded)
        run(self.ask(*headers, path=path, guard=guard))
        assert not self.sent[-1].get("more_body", False)
        return self.sent[0]["status"]


def run(call: Coroutine[Any, Any, Any]) -> None:
    asyncio.run(asyncio.wait_for(call, 20))


def test_a_body_in_parts():
    asked = Asked(b"ab", b"cd")
    assert asked.status() == 200
    assert asked.read == b"abcd"


@pytest.mark.parametrize("stated", [[], [(b"content-length", b"8")]])
def test_a_body_that_is_too_large(stated):
    """The error is sent before the rest is read."""
    asked = Asked(b"abc", b"de", b"fg", b"h")
    assert asked.status(*stated) == 413
    assert asked.read == b""


def test_a_client_that_goes_gets_no_answer():
    gone = Asked(b"a", ends=False)
    gone.messages.append({"type": "http.disconnect"})
    run(gone.ask())
    assert gone.sent == [] and gone.read == b""


def test_incomplete_bodies_together_are_bounded(monkeypatch):
    """The oldest request is refused; here for more than eight bytes."""
    monkeypatch.setattr(http_server, "INCOMPLETE_BODIES", 2)
    clients = [Asked(b"abc", ends=False) for _ in range(4)]
    guard = clients[0].guard()

    async def ask() -> None:
        tasks = [asyncio.create_task(c.ask(guard=guard)) for c in clients]
        await asyncio.sleep(0.01)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    run(ask())
    refused = [[m.get("status") for m in c.sent[:1]] for c in clients]
    assert refused == [[429], [429], [503], [503]]


@pytest.mark.parametrize(("name", "status"), [
    (b"127.0.0.1:8501", 200), (b"localhost", 200), (b"[::1]:1", 200),
    (b"LOCALHOST:8501", 200), (b"evil.example", 400), (b"", 400),
    (b"127.0.0.1.evil.example:8501", 400), (b"localhost.evil", 400),
    (b"192.168.1.2", 400), (b"\xff", 400),
])  # fmt: skip
def test_hosts_on_loopback(name, status):
    """A page of another site whose name points to 127.0.0.1 has its name."""
    header = (b"host", name)
    for host in ("127.0.0.1", "::1", "localhost"):
        asked = Asked(b"a")
        assert asked.status(header, host=host) == status
        sent = asked.sent[-1].get("body", b"")
        advice = b"let the proxy send Host: localhost"
        assert (advice in sent) == (status == 400)
    for host in ("127.0.0.1", "0.0.0.0"):
        options = {"security": Security(insecure=True), "host": host}
        assert Asked(b"a").status(header, **options) == 200


def test_two_ends_of_a_body():
    """Behind a proxy that believes the other one, a second request hides."""
    asked = Asked(b"a")
    ends = (b"content-length", b"1"), (b"transfer-encoding", b"chunked")
    assert asked.status(*ends) == 400
    assert (b"connection", b"close") in asked.sent[0]["headers"]
