"""Which thread answers a REST request."""

import asyncio
import threading
import time
from collections.abc import MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from keras_lstm_dssm.serving.http import application
from keras_lstm_dssm.serving.http.application import RestEndpoint
from keras_lstm_dssm.serving.http.rest_api import Reply


class Api:
    """Answers with the name of the thread, after a number of seconds."""

    seconds = 0.0

    def answer(self, method: str, path: str, body: bytes) -> Reply:
        time.sleep(self.seconds)
        return Reply(200, threading.current_thread().name.encode())


async def ask(endpoint: RestEndpoint, port: int, body: bytes = b"{}") -> str:
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    scope = {
        "method": "POST", "path": "/v1/x", "client": ("127.0.0.1", port),
    }  # fmt: skip
    await endpoint(scope, receive, send)
    name: str = sent[1]["body"].decode()
    return name.split("_")[0]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may have the processor for some milliseconds."""
    monkeypatch.setattr(application, "_AT_ONCE_SECONDS", 0.3)


@pytest.mark.parametrize("clients", [1, 2])
def test_a_client_that_is_alone_needs_no_other_thread(clients: int) -> None:
    async def run() -> list[str]:
        return [
            await ask(endpoint, port)
            for _ in range(3)
            for port in range(clients)
        ]

    with ThreadPoolExecutor(2, "pool") as pool:
        endpoint = RestEndpoint(Api(), pool)
        names = asyncio.run(run())
    alone = ["pool", "MainThread", "MainThread"]
    assert names == (alone if clients == 1 else ["pool"] * 6)


def test_what_may_hold_up_others_is_answered_in_another_thread() -> None:
    api = Api()

    async def run() -> None:
        await ask(endpoint, 1)
        assert await ask(endpoint, 1) == "MainThread"
        assert await ask(endpoint, 1, b"x" * 1000) == "pool"
        assert await ask(endpoint, 1) == "MainThread"
        api.seconds = 0.4
        await ask(endpoint, 1)
        both = await asyncio.gather(ask(endpoint, 1), ask(endpoint, 1))
        assert both == ["pool", "pool"]
        api.seconds = 0
        assert await ask(endpoint, 1) == "pool"
        assert await ask(endpoint, 1) == "MainThread"

    with ThreadPoolExecutor(2, "pool") as pool:
        endpoint = RestEndpoint(api, pool)
        asyncio.run(run())
