"""Passes REST requests to threads, or answers them at once where that is quick.

A change of threads there and back takes as long as the model itself for one
short text, so a request that waits for no other one can do without.
"""

import asyncio
import time
from concurrent.futures import Executor

from keras_lstm_dssm.serving.doors.asgi_guards import Receive, Scope, Send
from keras_lstm_dssm.serving.http.rest_api import Reply, RestApi

QUICK_SECONDS = 0.002
"""Largest time of a path's last request with which the next one is quick."""

_QUICK_BYTES = 1024
_MAX_PATHS = 256


class RestEndpoint:
    """Answers requests below `/v1/`; an ASGI application.

    Models run in threads, so that a slow one keeps no other request waiting.
    A request runs in the thread of the event loop if no other one runs, its
    body is short, and the last one of its path was quick.

    It does without Starlette's request and response objects, which would take
    a fifth of the time of a small request.

    Args:
        api: What answers the requests.
        threads: The threads in which models run.
    """

    def __init__(self, api: RestApi, threads: Executor) -> None:
        self._api, self._threads = api, threads
        self._running = 0
        self._quick_paths: set[str] = set()

    async def __call__(
        self, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Answers one request, unless the client has gone."""
        parts = []
        more = True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                return
            parts.append(message.get("body", b""))
            more = message.get("more_body", False)
        path = scope.get("raw_path") or scope["path"].encode()
        reply = await self._answer(
            scope["method"],
            path.decode("ascii", errors="replace"),
            b"".join(parts),
        )
        await send(
            {
                "type": "http.response.start",
                "status": reply.status,
                "headers": [
                    (b"content-type", b"application/json"),
                    (b"content-length", str(len(reply.body)).encode()),
                ],
            }
        )
        await send({"type": "http.response.body", "body": reply.body})

    async def _answer(self, method: str, path: str, body: bytes) -> Reply:
        if (
            self._running == 0
            and path in self._quick_paths
            and len(body) <= _QUICK_BYTES
        ):
            return self._timed(method, path, body)
        self._running += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._threads, self._timed, method, path, body
            )
        finally:
            self._running -= 1

    def _timed(self, method: str, path: str, body: bytes) -> Reply:
        start = time.perf_counter()
        reply = self._api.answer(method, path, body)
        quick = time.perf_counter() - start <= QUICK_SECONDS
        if quick and reply.status == 200:
            # A path has many spellings; the set must not grow with them.
            if len(self._quick_paths) < _MAX_PATHS:
                self._quick_paths.add(path)
        else:
            self._quick_paths.discard(path)
        return reply
