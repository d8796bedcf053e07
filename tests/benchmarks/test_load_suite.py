"""The suite `load` for a few seconds, with the real server as a process."""

import math

import grpc
import pytest

from keras_lstm_dssm.benchmarks.load_suite import (
    ClientLog,
    measure_load,
    send_requests,
)
from tests.serving.wire import predict_request


@pytest.mark.slow
@pytest.mark.usefixtures("small_towers")
def test_measure_load() -> None:
    # A busy machine may not load a new version within four seconds.
    for seconds in (4, 20, 100):
        results = measure_load(
            ["hex bolt", "lamp"], [3], seconds, 0.3, rounds=1, hostile=12
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
    beside = results["3_clients_hostile"]
    assert beside["errors"] == 0 < beside["requests"], beside
    assert beside["ratio_p99"] == pytest.approx(
        beside["p99_ms"] / three_clients["p99_ms"]
    )


def test_failed_requests_are_counted_not_repeated() -> None:
    server = grpc.server(None)  # knows no method
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    request = predict_request("query_encoder", text=["a"])
    log = send_requests(f"127.0.0.1:{port}", [request], clients=2, seconds=0.2)
    server.stop(None).wait()
    results = log.summary()
    assert results["requests"] == results["errors"] == len(log.errors) > 1
    assert "UNIMPLEMENTED" in results["first_error"]
    assert results["requests_per_second"] == 0
    assert math.isnan(results["p50_ms"])


def test_results() -> None:
    log = ClientLog([1.0, 2.0, 3.0, 10.0], [], {1, 2}, seconds=2.0)
    assert log.summary() == {
        "requests": 4,
        "errors": 0,
        "p50_ms": 2.5,
        "p99_ms": pytest.approx(9.79),
        "max_ms": 10.0,
        "requests_per_second": 2.0,
        "versions": 2,
    }
    both = log._replace(http_milliseconds=[4.0, 6.0], errors=["status 500"])
    assert both.summary() == {
        "requests": 7,
        "errors": 1,
        "p50_ms": 2.5,
        "p99_ms": pytest.approx(9.79),
        "max_ms": 10.0,
        "requests_per_second": 3.0,
        "versions": 2,
        "http_requests": 2,
        "http_p50_ms": 5.0,
        "http_p99_ms": pytest.approx(5.98),
        "first_error": "status 500",
    }
