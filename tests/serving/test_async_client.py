"""The asyncio client gives what the other one gives."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import numpy as np
import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.serving.client.channel import ServingError
from keras_lstm_dssm.serving.client.grpc_clients import AsyncClient, Client


def run(client: Client, work: Callable[[AsyncClient], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        async with AsyncClient(client.target, timeout=20) as connected:
            return await work(connected)

    return asyncio.run(main())


def test_encode(client: Client) -> None:
    texts = ["x" * (1 + number % 9) for number in range(1300)]
    got = run(client, lambda c: c.encode(texts, version=1))
    np.testing.assert_array_equal(got, client.encode(texts, version=1))


@pytest.mark.parametrize(
    "work",
    [
        lambda c: c.search(["bolt", "angle bracket"], k=2),
        lambda c: c.status("query_encoder"),
        lambda c: c.signatures("retriever"),
    ],
)
def test_the_other_methods(client: Client, work: Callable[[Any], Any]) -> None:
    assert run(client, work) == work(client)


def test_predict(client: Client) -> None:
    x = np.float32([1, 2])
    found = run(client, lambda c: c.predict("numbers", {"x": x}, ["int32"]))
    assert found[:3] == ("numbers", 1, "serving_default")
    assert {n: v.tolist() for n, v in found.outputs.items()} == {
        "int32": [1, 2]
    }


def test_many_at_once(client: Client) -> None:
    texts = [["x" * size] for size in range(1, 65)]

    async def work(connected: AsyncClient) -> list[np.ndarray]:
        return await asyncio.gather(*map(connected.encode, texts))

    for text, vector in zip(texts, run(client, work), strict=True):
        np.testing.assert_array_equal(vector, client.encode(text))


def test_refusals(client: Client) -> None:
    with pytest.raises(ServingError, match="model absent: NOT_FOUND") as caught:
        run(client, lambda c: c.encode(["x"], model="absent"))
    assert caught.value.code is grpc.StatusCode.NOT_FOUND
    with pytest.raises(InputError, match="k is 0"):
        run(client, lambda c: c.search(["x"], k=0))


def test_a_deadline() -> None:
    async def main(target: str) -> None:
        async with AsyncClient(target, timeout=0.2) as client:
            await client.encode(["x"])

    with socket.create_server(("127.0.0.1", 0)) as silent:
        target = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(ServingError, match="DEADLINE_EXCEEDED"):
            asyncio.run(main(target))
