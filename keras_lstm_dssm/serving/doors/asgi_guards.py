"""Guards around an ASGI application: tokens, number and size of requests.

They are plain ASGI: each takes an application and is one. `guarded` puts them
around an application in the order in which a request meets them.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import Any

from keras_lstm_dssm.serving.doors.grpc_tokens import NO_TOKEN
from keras_lstm_dssm.serving.doors.tokens import TokenFile

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

BODY_SECONDS = 30.0
"""Seconds in which a request has to arrive."""

DRAIN_SECONDS = 5.0
"""Seconds in which the rest of a refused request is read and thrown away."""


async def refuse(
    receive: Receive,
    send: Send,
    status: int,
    message: str,
    headers: Collection[tuple[bytes, bytes]] = (),
) -> None:
    """Sends an error in TF Serving's form, `{"error": message}`.

    A connection that is closed while its client still sends is reset, and
    many clients then never read the answer. So the rest of the request's body
    is read and thrown away, for `DRAIN_SECONDS` at most, before the connection
    is closed.

    Args:
        receive: The function that gives the parts of the request's body.
        send: The function that takes the answer.
        status: The status code of HTTP.
        message: One line.
        headers: Further headers.
    """
    body = json.dumps({"error": message}).encode()
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [
                (b"content-type", b"application/json"),
                (b"content-length", str(len(body)).encode()),
                (b"connection", b"close"),
                *headers,
            ],
        }
    )
    await send({"type": "http.response.body", "body": body, "more_body": True})
    try:
        await asyncio.wait_for(_drain(receive), DRAIN_SECONDS)
    except asyncio.TimeoutError:  # noqa: UP041 (not the same in 3.10)
        pass
    await send({"type": "http.response.body"})


async def _drain(receive: Receive) -> None:
    while (await receive()).get("more_body", False):
        pass


class TokenCheck:
    """Answers 401 to requests without a token.

    Args:
        app: The application.
        tokens: The tokens that are allowed.
        open_paths: Paths that need no token, such as those of health checks.

    Example:
        >>> TokenCheck(app, TokenFile("tokens.txt"), {"/healthz"})
    """

    def __init__(
        self, app: App, tokens: TokenFile, open_paths: Collection[str] = ()
    ) -> None:
        self._app, self._tokens = app, tokens
        self._open_paths = frozenset(open_paths)

    async def __call__(
        self, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Passes a request on, or refuses it before its body is read."""
        if scope["type"] != "lifespan" and not self._allows(scope):
            await refuse(
                receive,
                send,
                401,
                NO_TOKEN,
                [
                    (b"www-authenticate", b"Bearer"),
                    # A browser asks for a name and a password.
                    (b"www-authenticate", b'Basic realm="token"'),
                ],
            )
            return
        await self._app(scope, receive, send)

    def _allows(self, scope: Scope) -> bool:
        if scope["type"] != "http":
            return False
        if scope["path"] in self._open_paths:
            return True
        values = [v for k, v in scope["headers"] if k == b"authorization"]
        return len(values) == 1 and self._tokens.allows(values[0])


class RequestLimit:
    """Answers 429 to a request while as many as are allowed are running.

    Args:
        app: The application.
        max_requests: Maximum number of requests at the same time.
        open_paths: Paths that are always answered.

    Example:
        >>> RequestLimit(app, max_requests=128)
    """

    def __init__(
        self, app: App, max_requests: int, open_paths: Collection[str] = ()
    ) -> None:
        self._app, self._max_requests = app, max_requests
        self._open_paths = frozenset(open_paths)
        self._running = 0

    async def __call__(
        self, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Passes a request on, or refuses it at once."""
        if scope["type"] != "http" or scope["path"] in self._open_paths:
            await self._app(scope, receive, send)
            return
        if self._running >= self._max_requests:
            await refuse(
                receive,
                send,
                429,
                f"more than {self._max_requests} requests at the same time:"
                " try again later",
                [(b"retry-after", b"1")],
            )
            return
        self._running += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._running -= 1


class BodyLimit:
    """Reads the body of each request, of a bounded size, before the app does.

    It answers 413 to a larger body, and 408 to one that does not arrive in
    time, so that a slow client holds no thread.

    Args:
        app: The application.
        max_bytes: Maximum size of a body.
        seconds: Seconds in which the body has to arrive.

    Example:
        >>> BodyLimit(app, 16 << 20)
    """

    def __init__(
        self, app: App, max_bytes: int, seconds: float = BODY_SECONDS
    ) -> None:
        self._app, self._max_bytes = app, max_bytes
        self._seconds = seconds

    async def __call__(
        self, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Passes a request on with its body, or refuses it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            body = await self._body_in_time(scope, receive)
        except _TooLateError:
            await refuse(
                receive,
                send,
                408,
                f"the request did not arrive within {self._seconds:g} seconds",
            )
            return
        except _TooLargeError:
            await refuse(
                receive,
                send,
                413,
                f"the request is larger than {self._max_bytes:,} bytes",
            )
            return
        if body is None:  # the client has gone
            return
        whole: list[MutableMapping[str, Any]] = [
            {"type": "http.request", "body": body, "more_body": False}
        ]

        async def replay() -> MutableMapping[str, Any]:
            return whole.pop() if whole else await receive()

        await self._app(scope, replay, send)

    async def _body_in_time(
        self, scope: Scope, receive: Receive
    ) -> bytes | None:
        # `asyncio.wait_for` would start a task, which takes as long as all
        # guards together.
        task, late = asyncio.current_task(), []

        def cancel() -> None:
            late.append(True)
            if task is not None:
                task.cancel()

        timer = asyncio.get_running_loop().call_later(self._seconds, cancel)
        try:
            return await self._body(scope, receive)
        except asyncio.CancelledError:
            if not late:
                raise
            if task is not None and hasattr(task, "uncancel"):  # from 3.11 on
                task.uncancel()
            raise _TooLateError from None
        finally:
            timer.cancel()

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        for key, value in scope["headers"]:
            if key == b"content-length" and value.isdigit():
                if int(value) > self._max_bytes:
                    raise _TooLargeError
        parts, size = [], 0
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return None
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self._max_bytes:
                raise _TooLargeError
            if not message.get("more_body", False):
                return b"".join(parts)


class _TooLateError(Exception):
    """Raised inside when a body does not arrive in time."""


class _TooLargeError(Exception):
    """Raised inside when a body is above the limit."""


def guarded(
    app: App,
    tokens: TokenFile | None,
    max_requests: int,
    max_bytes: int,
    open_paths: Collection[str] = (),
) -> App:
    """Returns an application with all guards around it.

    Args:
        app: The application.
        tokens: The tokens that are allowed; None where none is needed.
        max_requests: See `RequestLimit`.
        max_bytes: See `BodyLimit`.
        open_paths: Paths that are always answered and need no token.
    """
    inner = RequestLimit(BodyLimit(app, max_bytes), max_requests, open_paths)
    return TokenCheck(inner, tokens, open_paths) if tokens else inner
