"""The guard of HTTP without a server: hosts, framing, tokens, large bodies."""

import asyncio
from collections.abc import Coroutine, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from keras_lstm_dssm.serving import http_server
from keras_lstm_dssm.serving.http_server import Guard
from keras_lstm_dssm.serving.security import Security


@pytest.fixture(autouse=True)
def short_drain(monkeypatch) -> None:
    monkeypatch.setattr(http_server, "DRAIN_SECONDS", 0.05)


class Client:
    """Sends the parts of a body, after which nothing comes, and gets answers.

    It is also the application behind the guard, and reads all of the body;
    and its own connection.
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
        self.is_aborted = False
        self.transport = self

    def abort(self) -> None:
        self.is_aborted = True

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


def guarded(
    client: Client,
    headers: Sequence[tuple[bytes, bytes]] = (),
    security: Security = Security(),
    host: str = "127.0.0.1",
    path: str = "/",
    guard: Guard | None = None,
) -> Coroutine[Any, Any, Any]:
    guard = guard or Guard(None, None, client.app, security, host, 4)  # type: ignore[arg-type]
    scope = {
        "type": "http",
        "path": path,
        "headers": list(headers),
        "state": {"connection": client},
    }
    return guard(scope, client.receive, client.send)


def test_a_body_in_parts():
    client = Client(b"ab", b"cd")
    run(guarded(client))
    assert client.status() == 200
    assert client.read == b"abcd"


@pytest.mark.parametrize("stated", [False, True])
def test_a_body_that_is_too_large(stated):
    """The error is sent before the rest is read, and the rest is read."""
    client = Client(b"abc", b"de", b"fg", b"h")
    run(guarded(client, [(b"content-length", b"8")] if stated else []))
    assert client.status() == 413
    assert client.messages == []
    assert client.read == b""


def test_a_request_that_is_cancelled_gets_no_answer():
    client = Client(b"a", ends=False)

    async def ask() -> None:
        task = asyncio.create_task(guarded(client))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(ask())
    assert client.sent == []


def test_a_client_that_has_gone():
    client = Client(b"a", ends=False)
    client.messages.append({"type": "http.disconnect"})
    run(guarded(client))
    assert client.sent == [] and client.read == b""


def test_incomplete_bodies_together_are_bounded(monkeypatch):
    """The oldest connection is closed; here for more than eight bytes."""
    monkeypatch.setattr(http_server, "INCOMPLETE_BODIES", 2)
    clients = [Client(b"abc", ends=False) for _ in range(4)]
    guard = Guard(None, None, clients[0].app, Security(), "::1", 4)  # type: ignore[arg-type]

    async def ask() -> None:
        tasks = [asyncio.create_task(guarded(c, guard=guard)) for c in clients]
        await asyncio.sleep(0.01)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    run(ask())
    assert [c.is_aborted for c in clients] == [True, True, False, False]


@pytest.mark.parametrize(
    ("name", "status"),
    [
        (b"127.0.0.1:8501", 200), (b"localhost", 200), (b"[::1]:1", 200),
        (b"LOCALHOST:8501", 200), (b"evil.example", 400), (b"", 400),
        (b"127.0.0.1.evil.example:8501", 400), (b"localhost.evil", 400),
        (b"192.168.1.2", 400), (b"\xff", 400),
    ],
)  # fmt: skip
def test_hosts_on_loopback(name, status):
    """A page of another site whose name points to 127.0.0.1 has its name."""
    headers = [(b"host", name)]
    for host in ("127.0.0.1", "::1", "localhost"):
        client = Client(b"a")
        run(guarded(client, headers, host=host))
        assert client.status() == status
    for security, host in (
        (Security(insecure=True), "127.0.0.1"),
        (Security(insecure=True), "0.0.0.0"),
    ):
        client = Client(b"a")
        run(guarded(client, headers, security, host))
        assert client.status() == 200


def test_two_ends_of_a_body():
    """Behind a proxy that believes the other one, a second request hides."""
    client = Client(b"a")
    headers = [(b"content-length", b"1"), (b"transfer-encoding", b"chunked")]
    run(guarded(client, headers))
    assert client.status() == 400
    assert (b"connection", b"close") in client.sent[0]["headers"]


def test_tokens():
    tokens: Any = SimpleNamespace(allows=lambda value: value == b"right")
    right, wrong = (b"authorization", b"right"), (b"authorization", b"wrong")
    for headers, path, status in (
        ([right], "/v1", 200),
        ([wrong], "/v1", 401),
        ([right, right], "/v1", 401),
        ([], "/", 401),
        ([], "/livez", 200),
        ([], "/readyz", 200),
        ([], "/livez/", 401),
    ):
        client = Client(b"a")
        run(guarded(client, headers, Security(tokens=tokens), path=path))
        assert client.status() == status, (headers, path)
