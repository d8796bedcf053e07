"""The load suite, short, with the real server in a process of its own."""

import math

import grpc
import pytest

from keras_lstm_dssm.benchmarks.load_suite import (
    ClientLog,
    measure_load,
    send_requests,
)
from tests.serving.wire import predict_request


@pytest.mark.usefixtures("small_towers")
def test_measure_load() -> None:
    found = measure_load(["hex bolt", "lamp"], [3], 10.0, 0.5, rounds=1)
    one, three = found["one_client"], found["3_clients"]
    assert one["ratio_echo"] == pytest.approx(
        one["p50_ms"] / one["echo_p50_ms"]
    )
    # Which is faster is not asked here: it depends on what else runs.
    assert 0 < one["echo_p50_ms"] <= one["echo_p99_ms"]
    assert 0 < one["p50_ms"] <= one["p99_ms"]
    assert three["errors"] == 0
    assert three["requests"] == three["requests_per_second"] * 10
    assert 0 < three["p50_ms"] <= three["p99_ms"] <= three["max_ms"]
    assert three["versions"] > 1  # swapped meanwhile


def test_failed_requests_are_counted_not_repeated() -> None:
    server = grpc.server(None)  # knows no method
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    request = predict_request("query_encoder", text=["a"])
    log = send_requests(f"127.0.0.1:{port}", [request], clients=2, seconds=0.2)
    server.stop(None).wait()
    figures = log.figures()
    assert figures["requests"] == figures["errors"] == len(log.errors) > 1
    assert "UNIMPLEMENTED" in figures["first_error"]
    assert figures["requests_per_second"] == 0
    assert math.isnan(figures["p50_ms"])


def test_figures() -> None:
    log = ClientLog([1.0, 2.0, 3.0, 10.0], [], {1, 2}, seconds=2.0)
    assert log.figures() == {
        "requests": 4,
        "errors": 0,
        "p50_ms": 2.5,
        "p99_ms": pytest.approx(9.79),
        "max_ms": 10.0,
        "requests_per_second": 2.0,
        "versions": 2,
    }
