"""The suites `load` and `retriever`, and their clients over HTTP."""

import asyncio
import math
import socketserver
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import grpc
import pytest

from benchmarks import retriever, serving
from keras_lstm_dssm.data import open_log
from keras_lstm_dssm.errors import InputError
from tests.serving.wire import predict_request


@pytest.mark.slow
@pytest.mark.usefixtures("small_towers")
def test_measure_load():
    # A busy machine may not load a new version within four seconds.
    for seconds in (4, 20, 100):
        results = serving.measure_load(
            ["hex bolt", "lamp"], [3], seconds, 0.3, rounds=1
        )
        three_clients = results["3_clients"]
        if three_clients["versions"] > 1:
            break
    for one_client in (results["one_client"], results["one_http_client"]):
        assert one_client["ratio_echo"] == pytest.approx(
            one_client["p50_ms"] / one_client["echo_p50_ms"]
        )
        # Which is faster depends on what else the machine does.
        assert 0 < one_client["echo_p50_ms"] <= one_client["echo_p99_ms"]
        assert 0 < one_client["p50_ms"] <= one_client["p99_ms"]
    assert three_clients["errors"] == 0
    assert three_clients["requests"] == pytest.approx(
        three_clients["requests_per_second"] * seconds
    )
    assert 0 < three_clients["http_requests"] < three_clients["requests"]
    assert 0 < three_clients["http_p50_ms"] <= three_clients["http_p99_ms"]
    assert 0 < three_clients["megabytes_before"]
    assert 0 < three_clients["megabytes_after"]
    assert 0 < three_clients["p50_ms"] <= three_clients["p99_ms"]
    assert three_clients["p99_ms"] <= three_clients["max_ms"]
    assert three_clients["versions"] > 1  # swapped meanwhile


def test_failed_requests_are_counted_not_repeated():
    server = grpc.server(None)  # knows no method
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    request = predict_request("query_encoder", text=["a"])
    log = serving.send_requests(
        f"127.0.0.1:{port}", [request], clients=2, seconds=0.2
    )
    server.stop(None).wait()
    results = log.summary()
    assert results["requests"] == results["errors"] == len(log.errors) > 1
    assert "UNIMPLEMENTED" in results["first_error"]
    assert results["requests_per_second"] == 0
    assert math.isnan(results["p50_ms"])


def test_results():
    log = serving.LoadResult([1.0, 2.0, 3.0, 10.0], [], {1, 2}, seconds=2.0)
    of_grpc = {
        "requests": 4, "errors": 0, "p50_ms": 2.5,
        "p99_ms": pytest.approx(9.79), "max_ms": 10.0,
        "requests_per_second": 2.0, "versions": 2,
    }  # fmt: skip
    assert log.summary() == of_grpc
    both = log._replace(http_milliseconds=[4.0, 6.0], errors=["status 500"])
    assert both.summary() == of_grpc | {
        "requests": 7, "errors": 1, "requests_per_second": 3.0,
        "http_requests": 2, "http_p50_ms": 5.0,
        "http_p99_ms": pytest.approx(5.98), "first_error": "status 500",
    }  # fmt: skip


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
ERROR = b"HTTP/1.1 500 Error\r\nContent-Length: 4\r\n\r\noops"
ENDLESS = b"HTTP/1.1 200 OK\r\n\r\n"
PATH = "/v1/models/m:predict"


@contextmanager
def answering(replies: Sequence[bytes]) -> Iterator[str]:
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


def ask(address: str) -> tuple[int, set[str]]:
    """Returns the number of good replies, and the errors."""
    milliseconds: list[float] = []
    errors: list[str] = []
    end = time.perf_counter() + 0.2
    asyncio.run(
        serving.run_http_client(
            address, PATH, [b"body"], end, milliseconds, errors
        )
    )
    return len(milliseconds), set(errors)


def test_replies_are_counted_by_status():
    """A connection that is closed is opened again."""
    with answering([OK, ERROR, OK]) as address:
        good, errors = ask(address)
    assert good > 2
    assert "status 500" in errors
    assert {error.split(":")[0] for error in errors} <= {
        "status 500", "IncompleteReadError", "ConnectionResetError",
    }  # fmt: skip
    with answering([ENDLESS]) as address:
        unmeasured = {"EOFError: a reply without content-length"}
        assert ask(address) == (0, unmeasured)
    good, (error,) = ask("127.0.0.1:1")  # nobody is there
    assert good == 0 and "Connect call failed" in error


def test_the_only_client_ends_at_a_failure():
    with answering([OK, ERROR]) as address:
        with serving._http_sender(address, PATH) as send:
            assert send(b"body") == b"ok"
            with pytest.raises(OSError, match="500: oops"):
                send(b"body")


def test_titles_are_filled_up_with_the_words_of_the_log(collection_folder):
    texts = ["hex bolt", "wood glue"]
    made = retriever.fill_up_titles(texts, 5)
    assert made[:2] == texts
    assert [len(text.split()) for text in made[2:]] == [8, 8, 8]
    words = {word for text in made[2:] for word in text.split()}
    assert words <= {"hex", "bolt", "wood", "glue"}
    assert made == retriever.fill_up_titles(texts, 5)
    log = open_log(str(collection_folder))
    with pytest.raises(InputError, match="--titles_in_index=99: expected 100"):
        retriever.measure_retriever(log, 99, 6, 1)
