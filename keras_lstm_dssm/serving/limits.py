"""Limits on the size of requests, on their number, and on waiting clients.

`Bounds` limits the size of a request, `Arrivals` the time in which it arrives.
`RequestSlots` limits how many requests run at the same time, and runs each in a
thread or in the event loop.
"""

import asyncio
import math
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import grpc
import numpy as np
import tensorflow as tf
from tensorflow.core.framework.types_pb2 import DataType
from tensorflow_serving.apis.predict_pb2 import PredictRequest

from keras_lstm_dssm.serving.servable import InvalidError, StatusError
from keras_lstm_dssm.settings.programs import ServerBounds

_COUNTS = ("k", "n")
"""Names of the inputs with the number of results of each row."""

REPLY_MB = 64
"""Maximum size of a reply in MiB."""


@dataclass(frozen=True)
class Bounds(ServerBounds):
    """Maximum sizes and number of requests, and the allowed protocols.

    `check` checks the shapes of a message before memory is allocated for its
    arrays; `check_arrays` checks the values before the graph runs.

    The attributes are `max_rows`, `max_text_kb`, `max_k`, `max_message_mb`,
    `max_requests` and `protocols`, as the flags of lstm-dssm-serve.

    Raises:
        InputError: A number is out of range, or a protocol unknown.

    Example:
        >>> Bounds(max_rows=64).check(request)
    """

    def check(self, request: PredictRequest) -> None:
        """Checks the shapes of a message, before arrays are made.

        A message may have fewer values than its shape has elements; the last
        value is then repeated. A few bytes can therefore describe a tensor of
        any size. Raises `StatusError` (INVALID_ARGUMENT).
        """
        shapes = [proto.tensor_shape.dim for proto in request.inputs.values()]
        self.check_rows(max((dim[0].size for dim in shapes if dim), default=0))
        for name, proto in request.inputs.items():
            elements = math.prod(dim.size for dim in proto.tensor_shape.dim)
            size = _BYTES.get(proto.dtype, 16)
            if proto.string_val and len(proto.string_val) < elements:
                size = max(size, len(proto.string_val[-1]))
            if elements * size > self.max_message_mb << 20:
                raise InvalidError(
                    f"input {name} is a tensor of {elements:,} elements, more"
                    f" than fit into the {self.max_message_mb} MiB of a request"
                )

    def check_rows(self, rows: int) -> None:
        """Checks a number of rows; the message is TF Serving's."""
        if rows > self.max_rows:
            raise InvalidError(
                f"Task size {rows} is larger than maximum input batch size "
                f"{self.max_rows}"
            )

    def check_arrays(self, inputs: Mapping[str, np.ndarray]) -> None:
        """Checks the rows, the texts, and the k or n of a request."""
        arrays = inputs.values()
        self.check_rows(max((len(a) for a in arrays if a.ndim), default=0))
        for name, array in inputs.items():
            if array.dtype == object:
                longest = max(map(len, array.flat), default=0)
                if longest > self.max_text_kb << 10:
                    raise InvalidError(
                        f"input {name} has a text of {longest:,} bytes, more"
                        f" than the {self.max_text_kb << 10:,} that this"
                        " server reads"
                    )
            elif name in _COUNTS and array.max(initial=0) > self.max_k:
                raise InvalidError(
                    f"{name} is {array.max()}, more than the {self.max_k} that"
                    " this server allows"
                )


_BYTES = {
    number: tf.as_dtype(number).size
    for number in DataType.values()
    if 0 < number < 100 and tf.as_dtype(number).size
}
"""Size of an element by its dtype. For other dtypes `check` takes 16 bytes."""


QUICK_BYTES = 1024
"""Largest request that may run in the event loop."""

QUICK_SECONDS = 0.002
"""Largest processor time after which the next request may run there, too."""

_MAX_KEYS = 256
_SLOW_FACTOR = 10
_SLOW_SECONDS = 60.0

T = TypeVar("T")


_LOOKS = 10
"""Polls of the sockets between two requests: a call of gRPC needs several."""


class LoopTurns(asyncio.Lock):
    """Lets the event loop poll its sockets between two requests.

    Requests run in the order in which they came. Otherwise all HTTP requests
    since the last poll would run before the next call of gRPC, which accepts
    one call a poll: with 32 clients of each protocol gRPC's latency was 16
    times as long, and beside ten hostile clients still twice as long.
    """

    async def next(self) -> None:
        """Waits until the caller may run its request in the event loop."""
        await self.acquire()
        looks = asyncio.create_task(self._look())
        # A loop that ends at once would not run a `finally` of `_look`.
        looks.add_done_callback(lambda _: self.release())

    async def _look(self) -> None:
        for _ in range(_LOOKS):
            await asyncio.sleep(0)


class RequestSlots(Executor):
    """Computes a bounded number of requests of one protocol at a time.

    Requests run in threads, so that none waits for a slow model. A short
    request runs in the event loop if the last request with its key was quick,
    because changing threads twice would take longer. After a request of
    `_SLOW_FACTOR` times the limit, requests with its key run in threads for
    `_SLOW_SECONDS`.

    A request holds its slot until it ends, even if the client disconnects. Only
    the event loop may use the object.
    """

    def __init__(
        self, threads: Executor, max_requests: int, turns: LoopTurns
    ) -> None:
        self._threads, self._max_requests = threads, max_requests
        self._turns = turns
        self._jobs: set[Future[Any]] = set()
        self._in_loop = 0
        # Key -> the time from which its requests may run in the loop.
        self._quick: dict[Hashable, float] = {}

    @property
    def running(self) -> int:
        """Number of requests that run in threads now."""
        return sum(job.running() for job in self._jobs.copy())

    def submit(
        self, function: Callable[..., T], /, *args: Any, **kwargs: Any
    ) -> "Future[T]":
        """Starts a request in a thread."""
        self._check()
        job = self._threads.submit(function, *args, **kwargs)
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)
        return job

    async def run(self, key: Hashable, work: Callable[[], T]) -> T:
        """Runs a request in a slot; raises RESOURCE_EXHAUSTED if all are taken.

        Requests with the same `key`, such as a model and a signature, take
        about the same time. With None they never run in the event loop.
        """
        if key is None:
            return await asyncio.wrap_future(self.submit(work))
        if self._quick.get(key, math.inf) <= time.monotonic():
            self._check()
            self._in_loop += 1
            try:
                await self._turns.next()
                return self._timed(key, work)
            finally:
                self._in_loop -= 1
        return await asyncio.wrap_future(self.submit(self._timed, key, work))

    def _check(self) -> None:
        if len(self._jobs) + self._in_loop >= self._max_requests:
            raise StatusError(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                f"more than {self._max_requests} requests at the same time: "
                "try again later",
            )

    def _timed(self, key: Hashable, work: Callable[[], T]) -> T:
        # The processor time of this thread: by the clock, a request that waits
        # for other threads would never be quick again.
        start = time.thread_time()
        result = work()
        seconds = time.thread_time() - start
        if seconds <= QUICK_SECONDS:
            if len(self._quick) < _MAX_KEYS:
                self._quick.setdefault(key, 0.0)
        elif seconds <= _SLOW_FACTOR * QUICK_SECONDS:
            self._quick.pop(key, None)
        elif key in self._quick or len(self._quick) < _MAX_KEYS:
            self._quick[key] = time.monotonic() + _SLOW_SECONDS
        return result


class Arrivals:
    """Limits the time in which a request arrives, and the number arriving.

    A request that has not arrived after `seconds` is refused. If more than
    `maximum` requests are arriving, the oldest is refused. Only the thread of
    the event loop may use the object.
    """

    def __init__(self, seconds: float, maximum: int) -> None:
        self._seconds, self._maximum = seconds, maximum
        # Waiting task -> number of bytes that have arrived, oldest first.
        self._waiting: dict[asyncio.Task[Any], int] = {}
        self._ended: dict[asyncio.Task[Any], StatusError] = {}

    @contextmanager
    def limit(self) -> Iterator[None]:
        """Limits the time of a `with` block, in which a message arrives.

        Raises `StatusError`: DEADLINE_EXCEEDED when the time is over, and
        RESOURCE_EXHAUSTED or UNAVAILABLE by `end_oldest` or `stop`.
        """
        task = asyncio.current_task()
        assert task is not None
        late = StatusError(
            grpc.StatusCode.DEADLINE_EXCEEDED,
            f"the request did not arrive within {self._seconds:g} seconds",
        )
        loop = asyncio.get_running_loop()
        timer = loop.call_later(self._seconds, self._end, task, late)
        self._waiting[task] = 0
        if len(self._waiting) > self._maximum:
            self.end_oldest()
        try:
            yield
        except asyncio.CancelledError:
            if task not in self._ended:
                raise
            raise self._ended[task] from None
        finally:
            timer.cancel()
            self._waiting.pop(task, None)
            self._ended.pop(task, None)

    def arrived(self, size: int) -> int:
        """Records how many bytes have arrived; returns the total of all."""
        task = asyncio.current_task()
        if task in self._waiting:
            self._waiting[task] = size
        return sum(self._waiting.values())

    def end_oldest(self) -> None:
        """Refuses the request that began first: too much is arriving."""
        error = StatusError(
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            "too many requests are arriving: try again later",
        )
        self._end(next(iter(self._waiting)), error)

    def stop(self) -> None:
        """Refuses all arriving requests, because the server stops."""
        error = StatusError(grpc.StatusCode.UNAVAILABLE, "the server stops")
        for task in list(self._waiting):
            self._end(task, error)

    def _end(self, task: "asyncio.Task[Any]", error: StatusError) -> None:
        if task in self._waiting:
            del self._waiting[task]
            self._ended[task] = error
            task.cancel()
