"""Retries, against a server that fails on purpose."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from tensorflow_serving.apis.get_model_status_pb2 import (
    GetModelStatusRequest,
    GetModelStatusResponse,
    ModelVersionStatus,
)
from tensorflow_serving.apis.model_service_pb2_grpc import (
    ModelServiceServicer,
    add_ModelServiceServicer_to_server,
)

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.serving import AsyncClient, Client, ServingError

Code = grpc.StatusCode


class Failing(ModelServiceServicer):
    """Fails `failures` times with `code`, then answers."""

    def __init__(self) -> None:
        self.code, self.failures, self.calls = Code.OK, 0, 0

    def GetModelStatus(
        self, request: GetModelStatusRequest, context: grpc.ServicerContext
    ) -> GetModelStatusResponse:
        self.calls += 1
        if self.calls <= self.failures:
            context.abort(self.code, "on purpose")
        reply = GetModelStatusResponse()
        reply.model_version_status.add(
            version=3, state=ModelVersionStatus.AVAILABLE
        )
        return reply


def serve(service: Failing, port: int = 0) -> tuple[grpc.Server, int]:
    server = grpc.server(
        ThreadPoolExecutor(2), options=[("grpc.so_reuseport", 0)]
    )
    add_ModelServiceServicer_to_server(service, server)
    port = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    return server, port


@pytest.fixture
def failing() -> Iterator[tuple[Failing, str]]:
    service = Failing()
    server, port = serve(service)
    yield service, f"127.0.0.1:{port}"
    server.stop(None).wait()


def test_a_server_that_is_not_available_is_tried_again(
    failing: tuple[Failing, str],
) -> None:
    service, target = failing
    service.code, service.failures = Code.UNAVAILABLE, 2
    start = time.monotonic()
    with Client(target) as client:
        assert list(client.status("x")) == [3]
    assert service.calls == 3
    # 0.1 and 0.2 seconds, less a fifth.
    assert time.monotonic() - start > 0.24


def test_the_asyncio_client_tries_again(failing: tuple[Failing, str]) -> None:
    service, target = failing
    service.code, service.failures = Code.UNAVAILABLE, 2

    async def main() -> None:
        async with AsyncClient(target) as client:
            assert list(await client.status("x")) == [3]
            service.code, service.calls = Code.NOT_FOUND, 0
            with pytest.raises(ServingError, match="NOT_FOUND: on purpose"):
                await client.status("x")

    asyncio.run(main())
    assert service.calls == 1


@pytest.mark.parametrize(
    ("code", "calls"),
    [
        (Code.UNAVAILABLE, 5),
        (Code.INVALID_ARGUMENT, 1),
        (Code.NOT_FOUND, 1),
        (Code.FAILED_PRECONDITION, 1),
        (Code.INTERNAL, 1),
        (Code.DEADLINE_EXCEEDED, 1),
        (Code.UNKNOWN, 1),
        (Code.RESOURCE_EXHAUSTED, 1),
    ],
)
def test_five_calls_and_of_other_codes_one(
    failing: tuple[Failing, str], code: grpc.StatusCode, calls: int
) -> None:
    service, target = failing
    service.code, service.failures = code, 9
    with Client(target) as client, pytest.raises(ServingError) as caught:
        client.status("x")
    assert service.calls == calls
    assert caught.value.code is code
    assert caught.value.details == "on purpose"


def test_the_deadline_holds_for_all_attempts(
    failing: tuple[Failing, str],
) -> None:
    service, target = failing
    service.code, service.failures = Code.UNAVAILABLE, 9
    start = time.monotonic()
    with Client(target, timeout=0.25) as client, pytest.raises(ServingError):
        client.status("x")
    assert time.monotonic() - start < 1
    assert 1 < service.calls < 5


def test_a_server_that_is_started_anew() -> None:
    first, second = Failing(), Failing()
    server, port = serve(first)
    with Client(f"127.0.0.1:{port}") as client:
        client.status("x")
        server.stop(None).wait()
        running = []
        later = threading.Timer(
            0.3, lambda: running.append(serve(second, port)[0])
        )
        later.start()
        assert list(client.status("x")) == [3]
        later.join()
        assert (first.calls, second.calls) == (1, 1)
        running[0].stop(None).wait()


def test_a_server_that_never_answers() -> None:
    async def ask(target: str) -> None:
        async with AsyncClient(target, timeout=0.2) as client:
            await client.status("query_encoder")

    with socket.create_server(("127.0.0.1", 0)) as silent:
        target = f"127.0.0.1:{silent.getsockname()[1]}"
        with (
            Client(target, timeout=0.2) as client,
            pytest.raises(ServingError, match="; raise timeout, or") as caught,
        ):
            client.status("query_encoder")
        assert caught.value.code is Code.DEADLINE_EXCEEDED
        with pytest.raises(ServingError, match="DEADLINE_EXCEEDED"):
            asyncio.run(ask(target))


@pytest.mark.parametrize(
    ("option", "values", "message"),
    [
        ("timeout", [0, -1.0, 1e30, float("inf"), float("nan")],
         "expected seconds above 0, 86,400 at"),
        ("max_message_mb", [0, 2048], "expected 1 to 2047"),
    ],
)  # fmt: skip
def test_numbers_out_of_range(
    option: str, values: list[float], message: str
) -> None:
    for value in values:
        with pytest.raises(InputError, match=message):
            Client("127.0.0.1:1", **{option: value})
