"""Limits of requests over HTTP, without a server: slow, large, too many."""

import asyncio
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any

import pytest

from keras_lstm_dssm.serving import http_server
from keras_lstm_dssm.serving.http_server import (
    BodyLimit,
    RequestLimit,
    TokenCheck,
)

SCOPE = {"type": "http", "path": "/v1/", "headers": []}


@pytest.fixture(autouse=True)
def short_drain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "DRAIN_SECONDS", 0.05)


class Client:
    """Sends the parts of a body, after which nothing comes, and gets answers.

    It is also the application behind a limit, and reads all of the body.
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

    def status(self) -> int:
        """Returns the status of an answer, which must be complete."""
        assert not self.sent[-1].get("more_body", False)
        return self.sent[0]["status"]


def run(call: Coroutine[Any, Any, Any]) -> None:
    asyncio.run(asyncio.wait_for(call, 20))


def limited(client: Client, seconds: float = 20) -> Coroutine[Any, Any, Any]:
    limit = BodyLimit(client.app, 4, seconds)
    return limit(SCOPE, client.receive, client.send)


def test_a_body_in_parts() -> None:
    client = Client(b"ab", b"cd")
    run(limited(client))
    assert client.status() == 200
    assert client.read == b"abcd"


@pytest.mark.parametrize("parts", [[], [b"a", b"b"]])
def test_a_body_that_does_not_arrive(parts: list[bytes]) -> None:
    client = Client(*parts, ends=False)

    async def ask() -> None:
        await limited(client, seconds=0.05)
        await asyncio.sleep(0)  # the task was not cancelled

    run(ask())
    assert client.status() == 408
    assert b"did not arrive within 0.05 seconds" in client.sent[1]["body"]
    assert client.read == b""


def test_a_body_of_unknown_size_that_is_too_large() -> None:
    """The error is sent before the rest is read, and the rest is read."""
    client = Client(b"abc", b"de", b"fg", b"h")
    run(limited(client))
    assert client.status() == 413
    assert client.messages == []
    assert client.read == b""


def test_a_request_that_is_cancelled_is_not_late() -> None:
    """A request that is cancelled, as when the server stops, gets no answer."""
    client = Client(b"a", ends=False)

    async def ask() -> None:
        task = asyncio.create_task(limited(client))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(ask())
    assert client.sent == []


def test_a_client_that_has_gone() -> None:
    client = Client(b"a", ends=False)
    client.messages.append({"type": "http.disconnect"})
    run(limited(client))
    assert client.sent == [] and client.read == b""


def test_too_many_requests() -> None:
    """A refused request does not count, and a place is free after an end."""
    slow, refused, late = Client(), Client(b"a"), Client(b"b")

    async def ask() -> None:
        client = slow
        limit = RequestLimit(lambda *a: client.app(*a), max_requests=1)
        task = asyncio.create_task(limit(SCOPE, slow.receive, slow.send))
        await asyncio.sleep(0)
        client = refused
        await limit(SCOPE, refused.receive, refused.send)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        client = late
        await limit(SCOPE, late.receive, late.send)

    run(ask())
    assert [refused.status(), late.status()] == [429, 200]


def test_what_is_no_request_has_no_body_to_read() -> None:
    """A server's start and end pass through both limits as they are."""
    scopes, client = [], Client(b"larger than allowed")

    async def app(scope: Any, receive: Any, send: Any) -> None:
        scopes.append(scope)
        assert await receive() is message

    message = client.messages[0]
    start = {"type": "lifespan"}
    limits = RequestLimit(BodyLimit(app, 4, 20), max_requests=0)
    run(limits(start, client.receive, client.send))
    assert scopes == [start] and client.sent == []


def test_a_web_socket_has_no_token() -> None:
    """It is refused: tokens are read from the headers of HTTP requests only."""
    client, tokens = Client(b""), SimpleNamespace(allows=lambda value: True)
    check = TokenCheck(client.app, tokens, {"/v1/"})
    socket = {**SCOPE, "type": "websocket"}
    run(check(socket, client.receive, client.send))
    assert client.status() == 401
