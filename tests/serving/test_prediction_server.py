"""Folders, addresses, health and deadlines of the server, and its end."""

import re
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub
from tensorflow_serving.apis.predict_pb2 import PredictResponse
from tensorflow_serving.apis.prediction_service_pb2_grpc import (
    PredictionServiceStub,
)

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.serving import Client, PredictionServer
from keras_lstm_dssm.serving.grpc_services import Health
from keras_lstm_dssm.serving.servable import Servable
from tests.serving.waiting import wait_until
from tests.serving.wire import predict_request

Status = HealthCheckResponse.ServingStatus.Name


@pytest.mark.parametrize(("option", "value"), [
    ("poll_seconds", float("nan")), ("poll_seconds", float("inf")),
    ("poll_seconds", -1), ("grace_seconds", 1e30),
])  # fmt: skip
def test_seconds_out_of_range(tiny_models, option, value):
    message = f"{option} is {value}; expected 0 to 86,400"
    with pytest.raises(InputError, match=re.escape(message)):
        PredictionServer(tiny_models, port=0, **{option: value})


def test_an_address_of_ipv6(numbers):
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 on this machine")
    for host in ("::1", "[::1]"):
        with PredictionServer(numbers, port=0, host=host) as server:
            assert server.address == f"[::1]:{server.port}"
            with Client(server.address, timeout=20) as client:
                assert list(client.status("numbers")) == [1]


@pytest.mark.parametrize("content", [None, b"", b"\xff\xff no protocol buffer"])
def test_a_folder_that_is_no_model(tmp_path, content):
    version = tmp_path / "encoder" / "1"
    version.mkdir(parents=True)
    if content is not None:
        (version / "saved_model.pb").write_bytes(content)
    with pytest.raises(InputError, match="1/saved_model.pb: not a SavedModel"):
        PredictionServer(tmp_path, port=0)


def health(channel: grpc.Channel, service: str) -> str:
    request = HealthCheckRequest(service=service)
    return Status(HealthStub(channel).Check(request, timeout=20).status)


def test_health(channel):
    services = ("PredictionService", "ModelService")
    for service in (
        *("", "query_encoder", "retriever"),
        *(f"tensorflow.serving.{name}" for name in services),
    ):
        assert health(channel, service) == "SERVING"
    with pytest.raises(grpc.RpcError) as caught:
        health(channel, "absent")
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


def test_health_of_models_that_come_and_go(tiny_models, tmp_path):
    for name in ("numbers", "retriever"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1").symlink_to(tiny_models / name / "1")

    def list_models(*names: str) -> None:
        entries = "".join(f'config {{ name: "{name}" }}' for name in names)
        text = f"model_config_list {{ {entries} }}"
        (tmp_path / "models.config").write_text(text)

    with (
        PredictionServer(tmp_path, port=0, poll_seconds=0) as server,
        grpc.insecure_channel(server.address) as channel,
    ):
        watched = HealthStub(channel).Watch(
            HealthCheckRequest(service="numbers"), timeout=20
        )
        assert Status(next(watched).status) == "SERVING"
        (tmp_path / "numbers" / "1").unlink()
        server.poll()
        assert Status(next(watched).status) == "NOT_SERVING"
        assert health(channel, "numbers") == "NOT_SERVING"
        assert health(channel, "retriever") == health(channel, "") == "SERVING"
        watched.cancel()
        (tmp_path / "query_encoder").symlink_to(tiny_models / "query_encoder")
        list_models("retriever", "query_encoder", "absent")
        with pytest.raises(InputError, match="lists absent, which is not in"):
            server.poll()
        assert health(channel, "query_encoder") == "SERVING"
        assert health(channel, "") == "NOT_SERVING"  # absent should be served
        list_models("retriever")
        server.poll()
        assert health(channel, "query_encoder") == "NOT_SERVING"
        assert health(channel, "") == "SERVING"


def ask(server: PredictionServer, rows: int, timeout: float) -> PredictResponse:
    with grpc.insecure_channel(server.address) as channel:
        return PredictionServiceStub(channel).Predict(
            predict_request("query_encoder", text=["a"] * rows), timeout=timeout
        )


def post(server: PredictionServer) -> bytes:
    url = f"{server.http_address}/v1/models/query_encoder:predict"
    request = urllib.request.Request(url, b'{"instances": ["a"]}')
    return urllib.request.urlopen(request).read()


def refuses_connections(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """An event that lets a server go on, at the end of a test too."""
    event = threading.Event()
    yield event
    event.set()


def test_a_request_past_its_deadline_is_not_computed(
    tiny_models, monkeypatch, release
):
    """Of a server of one thread."""
    rows: list[int] = []
    predict = Servable.predict

    def hold(servable: Servable, request: Any, *more: Any) -> PredictResponse:
        rows.append(request.inputs["text"].tensor_shape.dim[0].size)
        assert release.wait(20)
        return predict(servable, request, *more)

    monkeypatch.setattr(Servable, "predict", hold)
    with (
        PredictionServer(tiny_models, port=0, threads=1) as server,
        ThreadPoolExecutor(1) as pool,
    ):
        first = pool.submit(ask, server, 1, 20)
        wait_until(lambda: rows)
        with pytest.raises(grpc.RpcError) as caught:
            ask(server, 2, 0.1)
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        release.set()
        assert first.result().model_spec.version.value == 2
        ask(server, 3, 20)
    assert rows == [1, 3]


@pytest.mark.parametrize("send", [lambda server: ask(server, 1, 20), post])
def test_the_end_waits_for_what_is_in_flight(
    tiny_models, monkeypatch, release, send
):
    running = threading.Event()
    with (
        PredictionServer(
            tiny_models, port=0, http_port=0, grace_seconds=20
        ) as server,
        ThreadPoolExecutor(2) as pool,
    ):
        find = server.models.find

        def hold(spec: Any) -> Servable:
            running.set()
            assert release.wait(20)
            return find(spec)

        monkeypatch.setattr(server.models, "find", hold)
        first = pool.submit(send, server)
        assert running.wait(20)
        ended = pool.submit(server.__exit__, None, None, None)
        wait_until(lambda: refuses_connections(server.port))
        assert not first.done() and not ended.done()
        release.set()
        assert first.result()
        ended.result()


def test_nothing_is_loaded_at_the_end(tiny_models, monkeypatch):
    looked: list[float] = []
    stopped: list[int] = []
    server = PredictionServer(tiny_models, port=0, poll_seconds=0.01)
    monkeypatch.setattr(server, "poll", lambda: looked.append(0))

    def slow_stop(_: Health) -> None:
        time.sleep(0.1)  # a poll that had begun ends
        stopped.append(len(looked))
        time.sleep(0.1)

    monkeypatch.setattr(Health, "stop", slow_stop)
    with server:
        wait_until(lambda: looked)
    assert stopped == [len(looked)]
