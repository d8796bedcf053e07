"""RestEndpoint: in which of its threads a request is answered."""

import asyncio
import threading
import time
from collections.abc import Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from keras_lstm_dssm.serving import http_server
from keras_lstm_dssm.serving.http_server import RestEndpoint
from keras_lstm_dssm.serving.rest_api import Reply

QUICK = "/v1/models/quick:predict"
SLOW = "/v1/models/slow:predict"
WRONG = "/v1/models/wrong:predict"


class Api:
    """Stands for `RestApi`; replies with the name of the thread it runs in."""

    def answer(self, method: str, path: str, body: bytes) -> Reply:
        if path == SLOW:
            time.sleep(0.3)
        name = threading.current_thread().name
        return Reply(400 if path == WRONG else 200, name.encode())


@pytest.fixture(autouse=True)
def sure_of_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raises the time limit of quick requests, as the machine may be busy."""
    monkeypatch.setattr(http_server, "QUICK_SECONDS", 0.25)


@pytest.fixture
def endpoint() -> Iterator[RestEndpoint]:
    with ThreadPoolExecutor(2, "pool") as pool:
        yield RestEndpoint(Api(), pool)  # type: ignore[arg-type]


async def ask(endpoint: RestEndpoint, path: str, body: bytes = b"") -> str:
    """Sends a request; returns `pool` if a thread of the pool answered it.

    Otherwise it was the thread of the event loop: `loop`.
    """
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    scope = {"method": "POST", "path": path, "raw_path": path.encode()}
    await endpoint(scope, receive, send)
    return "pool" if sent[1]["body"].startswith(b"pool") else "loop"


def asked(endpoint: RestEndpoint, *paths: str) -> list[str]:
    async def run() -> list[str]:
        return [await ask(endpoint, path) for path in paths]

    return asyncio.run(run())


def test_a_path_that_was_quick_needs_no_thread(endpoint: RestEndpoint) -> None:
    assert asked(endpoint, QUICK, QUICK, QUICK) == ["pool", "loop", "loop"]


@pytest.mark.parametrize("path", [SLOW, WRONG])
def test_slow_and_wrong_requests_stay_in_threads(
    endpoint: RestEndpoint, path: str
) -> None:
    assert asked(endpoint, path, path, QUICK, path) == ["pool"] * 4


def test_a_path_that_becomes_slow_goes_back_to_threads(
    endpoint: RestEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert asked(endpoint, QUICK, QUICK) == ["pool", "loop"]
    monkeypatch.setattr(http_server, "QUICK_SECONDS", 0.0)
    assert asked(endpoint, QUICK, QUICK) == ["loop", "pool"]


def test_long_bodies_go_to_threads(endpoint: RestEndpoint) -> None:
    asked(endpoint, QUICK)
    assert asyncio.run(ask(endpoint, QUICK, b"x" * 1024)) == "loop"
    assert asyncio.run(ask(endpoint, QUICK, b"x" * 1025)) == "pool"


def test_requests_at_the_same_time_go_to_threads(
    endpoint: RestEndpoint,
) -> None:
    async def together() -> list[str]:
        await ask(endpoint, QUICK)
        return await asyncio.gather(
            ask(endpoint, SLOW), ask(endpoint, QUICK), ask(endpoint, QUICK)
        )

    assert asyncio.run(together()) == ["pool"] * 3
    assert asked(endpoint, QUICK) == ["loop"]


def test_the_paths_that_are_remembered_are_bounded(
    endpoint: RestEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "_MAX_PATHS", 1)
    other = QUICK.replace("quick", "other")
    assert asked(endpoint, QUICK, other, other) == ["pool"] * 3
    assert asked(endpoint, QUICK) == ["loop"]
