"""Runs an ASGI application on a port, in a thread of this process."""

import asyncio
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from keras_lstm_dssm.errors import InputError

HEADER_SECONDS = 30.0
"""Seconds in which the first request of a connection must begin."""

KEEP_ALIVE_SECONDS = 75
"""Seconds after which a connection without a request is closed."""

_START_SECONDS = 30.0


class _Connection(H11Protocol):
    """Closes connections on which no request arrives in time."""

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._waiting = self.loop.call_later(HEADER_SECONDS, self._close)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
        super().connection_lost(exc)

    def _close(self) -> None:
        if self.cycle is None:
            self.transport.close()


class HttpServer:
    """Serves an ASGI application over HTTP; a context manager.

    Args:
        application: The application, with guards around it if there are any.
        port: The port; 0 takes a free one.
        host: The address to listen on.
        grace_seconds: Seconds that running requests may take after the server
            stops; then they are cancelled.
        options: Further arguments of `uvicorn.Config`, such as `ssl_certfile`
            and `ssl_keyfile`.

    Attributes:
        port: The port that the server listens on.
        address: The URL of the server, such as `http://127.0.0.1:8501`.

    Raises:
        InputError: The port is taken, or the address is not this machine's.

    Example:
        >>> with HttpServer(application, port=0) as server:
        ...     urllib.request.urlopen(f"{server.address}/livez")
    """

    def __init__(
        self,
        application: Callable[..., Awaitable[None]],
        port: int = 8501,
        host: str = "127.0.0.1",
        grace_seconds: float = 10.0,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        host = host.removeprefix("[").removesuffix("]")
        self._socket = _listening(host, port)
        self.port = self._socket.getsockname()[1]
        config = uvicorn.Config(
            application,
            http=_Connection,
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            # 0 would wait without an end.
            timeout_graceful_shutdown=max(1, round(grace_seconds)),
            **(options or {}),
        )
        scheme = "https" if config.is_ssl else "http"
        shown = f"[{host}]" if ":" in host else host
        self.address = f"{scheme}://{shown}:{self.port}"
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), daemon=True
        )

    def __enter__(self) -> "HttpServer":
        self._thread.start()
        end = time.monotonic() + _START_SECONDS
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > end:
                raise InputError(
                    f"{self.address}: the HTTP server did not start"
                )
            time.sleep(0.005)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()


def _listening(host: str, port: int) -> socket.socket:
    # asyncio switches Nagle's algorithm off only where the protocol is named;
    # with it, a reply would wait 40 ms for an acknowledgement.
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(2048)
    except OSError as error:
        listening.close()
        raise InputError(
            f"cannot listen on {host}:{port}: {error.strerror}; give another "
            "HTTP port, or 0 for a free one"
        ) from error
    return listening
