"""The HTTP server on its port: limits, slow clients, metrics, health."""

import socket
import sys
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest
from tensorflow_serving.apis.model_pb2 import ModelSpec

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.serving import Client, PredictionServer, http_server
from tests.serving.conftest import Served


def metrics(served: Served) -> dict[str, float]:
    url = f"{served.url}/monitoring/prometheus/metrics"
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


def test_metrics_count_both_protocols(served, send):
    before = metrics(served)
    body = '{"instances": [1]}'
    for _ in range(3):
        send("POST", "/v1/models/numbers:predict", body)
    send("POST", "/v1/models/numbers:predict", "[]")
    for name in ("x", "y"):  # unknown names add no series
        send("POST", f"/v1/models/{name}:predict", body)
    with Client(served.server.address) as client:
        client.search(["bolt"])
    after = metrics(served)

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


def test_health(served, send, monkeypatch):
    assert send("GET", "/livez") == (200, {"status": "alive"})
    assert send("GET", "/readyz") == (200, {"status": "ready"})
    monkeypatch.setattr(served.server.models, "versions", lambda _: [])
    code, reply = send("GET", "/readyz")
    assert code == 503
    assert "query_encoder" in reply["error"]
    assert send("GET", "/livez")[0] == 200


@pytest.mark.parametrize("size", [(1 << 20) + 1, 1 << 26])
def test_a_huge_body(served, send, size):
    """The server refuses it at once, yet reads on until the client listens."""
    code, reply = send("POST", "/v1/models/x:predict", b" " * size)
    assert code == 413
    assert "1,048,576 bytes" in reply["error"]


def test_the_rest_of_a_huge_body_does_not_come(served, monkeypatch):
    monkeypatch.setattr(http_server, "DRAIN_SECONDS", 0.1)
    head = b"POST /v1/models/x:predict HTTP/1.1\r\nHost: localhost\r\n"
    reply = raw(served, head + b"Content-Length: 2000000\r\n\r\n   ")
    assert reply.startswith(b"HTTP/1.1 413 ")
    assert reply.endswith(b'"}')


def raw(served: Served, sent: bytes, seconds: float = 10) -> bytes:
    """Sends bytes, and returns all that the server answers until it closes."""
    host, _, port = served.url.split("/")[2].partition(":")
    with socket.create_connection((host, int(port)), seconds) as connection:
        connection.sendall(sent)
        received = b""
        while part := connection.recv(4096):
            received += part
        return received


def test_slow_clients(served, monkeypatch):
    monkeypatch.setattr(http_server, "REQUEST_SECONDS", 0.1)
    start = time.monotonic()
    assert raw(served, b"") == b""
    assert raw(served, b"POST /v1/models/x:predict HTTP/1.1\r\nHost") == b""
    assert time.monotonic() - start < 5


def test_no_http(served):
    assert raw(served, b"\x16\x03\x01\x02\r\n\r\n").startswith(
        b"HTTP/1.1 400 Bad Request"
    )


def test_a_port_that_is_taken(served, numbers):
    port = int(served.url.rsplit(":", 1)[1])
    with (
        pytest.raises(InputError, match="Address already in use; give another"),
        PredictionServer(numbers, port=0, http_port=port),
    ):
        pass


def test_the_end_waits_for_running_requests(numbers, monkeypatch):
    """A request that runs when the server stops is still answered."""
    with (
        ThreadPoolExecutor(1) as pool,
        PredictionServer(numbers, port=0, http_port=0) as server,
    ):
        find, running = server.models.find, threading.Event()

        def slow(spec: ModelSpec) -> object:
            running.set()
            time.sleep(0.3)
            return find(spec)

        monkeypatch.setattr(server.models, "find", slow)
        request = urllib.request.Request(
            f"{server.http_address}/v1/models/numbers:predict",
            b'{"instances": [1]}',
        )
        answer = pool.submit(lambda: urllib.request.urlopen(request).status)
        assert running.wait(20)
        server.__exit__(None, None, None)
        assert answer.result() == 200


def test_the_extra_is_missing(numbers, monkeypatch):
    monkeypatch.setitem(sys.modules, "starlette", None)
    with pytest.raises(InputError, match=r'pip install "keras-lstm-dssm\[http'):
        PredictionServer(numbers, port=0, http_port=0)
