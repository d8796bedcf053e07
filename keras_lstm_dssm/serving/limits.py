"""Limits on the size, the number and the arrival time of requests.

`Bounds` limits the size of a request, and `Arrivals` the time in which a
request arrives. `RequestSlots` runs requests in threads or in the event loop,
and limits how many requests run or wait.
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
"""Names of the inputs that limit the number of results for each text."""

REPLY_MB = 64
"""Maximum size of a gRPC reply in MiB, unless `Bounds.max_message_mb` is
larger."""


@dataclass(frozen=True)
class Bounds(ServerBounds):
    """Maximum sizes and number of requests, and the allowed protocols.

    The flag `--protocols` of lstm-dssm-serve sets `protocols`. The flag `--set`
    sets `max_rows`, `max_text_kb`, `max_k`, `max_message_mb` or `max_requests`.

    Raises:
        InputError: A number is out of range, or a protocol is unknown.

    Example:
        >>> Bounds(max_rows=64).check(request)
    """

    def check(self, request: PredictRequest) -> None:
        """Checks the shapes of a message, before memory is allocated.

        Raises `InvalidError` if there are too many rows or a tensor is too
        large.
        """
        # In a `TensorProto`, the last value that is sent stands for all values
        # that are missing, so a few bytes can describe a tensor of any size.
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
        """Checks the number of rows; the error has TF Serving's message."""
        if rows > self.max_rows:
            raise InvalidError(
                f"Task size {rows} is larger than maximum input batch size "
                f"{self.max_rows}"
            )

    def check_arrays(self, inputs: Mapping[str, np.ndarray]) -> None:
        """Checks the number of rows, the sizes of texts, and `k` or `n`."""
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
"""Value of `DataType` -> size of an element of this dtype, in bytes."""

QUICK_BYTES = 1024
"""Size in bytes of the largest request that may run in the event loop."""

QUICK_SECONDS = 0.002
"""Longest processor time, in seconds, of requests that count as quick."""

_MAX_KEYS = 256
_SLOW_FACTOR = 10
_SLOW_SECONDS = 60.0

T = TypeVar("T")

_POLLS = 10
"""The event loop polls its sockets this many times between two requests. For
gRPC, one poll is not enough."""


class LoopTurns(asyncio.Lock):
    """Lets the event loop poll its sockets between two requests."""

    # A poll accepts many HTTP requests, but only one gRPC call. Without this
    # class, gRPC calls took 16 times as long (32 clients of each protocol).

    async def next(self) -> None:
        """Waits until the caller may run its request in the event loop."""
        await self.acquire()
        polls = asyncio.create_task(self._poll())
        # A callback releases the lock, because a task that is cancelled before
        # its start runs no code.
        polls.add_done_callback(lambda _: self.release())

    async def _poll(self) -> None:
        for _ in range(_POLLS):
            await asyncio.sleep(0)


class RequestSlots(Executor):
    """Runs the requests of one protocol, in threads or in the event loop.

    At most `max_requests` run or wait. Only the thread of the event loop may
    use the object.
    """

    def __init__(
        self, threads: Executor, max_requests: int, turns: LoopTurns
    ) -> None:
        self._threads, self._max_requests = threads, max_requests
        self._turns = turns
        # Requests that run in a thread or wait for a thread. A request stays in
        # the set until the request ends, even if the client disconnects.
        self._jobs: set[Future[Any]] = set()
        self._in_loop = 0
        # Maps a key, such as method and model, to a time. From this time on,
        # requests with the key may run in the event loop.
        self._loop_times: dict[Hashable, float] = {}

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
        """Runs a request, and returns what `work` returns.

        The request runs in the event loop if earlier requests with the same
        `key` were quick. Otherwise, or if `key` is `None`, the request runs in
        a thread.
        """
        if key is None:
            return await asyncio.wrap_future(self.submit(work))
        if self._loop_times.get(key, math.inf) <= time.monotonic():
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
        # `thread_time` does not count the time of waiting for other threads.
        start = time.thread_time()
        result = work()
        seconds = time.thread_time() - start
        # After a quick request, requests with this key run in the event loop.
        # After a slower request, requests with this key run in threads until a
        # request is quick. After a very slow request, requests with this key
        # run in threads for a minute; no other request ends the minute.
        if seconds <= QUICK_SECONDS:
            if len(self._loop_times) < _MAX_KEYS:
                self._loop_times.setdefault(key, 0.0)
        elif seconds <= _SLOW_FACTOR * QUICK_SECONDS:
            if self._loop_times.get(key, 0.0) <= time.monotonic():
                self._loop_times.pop(key, None)
        elif key in self._loop_times or len(self._loop_times) < _MAX_KEYS:
            self._loop_times[key] = time.monotonic() + _SLOW_SECONDS
        return result


class Arrivals:
    """Limits the number of arriving requests, and the time of each arrival.

    Only the thread of the event loop may use the object.
    """

    def __init__(self, seconds: float, maximum: int) -> None:
        self._seconds, self._maximum = seconds, maximum
        # Maps each task that waits for a request to the number of bytes that
        # have arrived. The oldest task is first.
        self._waiting: dict[asyncio.Task[Any], int] = {}
        self._errors: dict[asyncio.Task[Any], StatusError] = {}

    @contextmanager
    def limit(self) -> Iterator[None]:
        """Limits the time of a `with` block that receives a message."""
        task = asyncio.current_task()
        assert task is not None
        too_late = StatusError(
            grpc.StatusCode.DEADLINE_EXCEEDED,
            f"the request did not arrive within {self._seconds:g} seconds",
        )
        loop = asyncio.get_running_loop()
        timer = loop.call_later(self._seconds, self._end, task, too_late)
        self._waiting[task] = 0
        if len(self._waiting) > self._maximum:
            self.end_oldest()
        try:
            yield
        except asyncio.CancelledError:
            if task not in self._errors:
                raise
            raise self._errors[task] from None
        finally:
            timer.cancel()
            self._waiting.pop(task, None)
            self._errors.pop(task, None)

    def arrived(self, size: int) -> int:
        """Records the request's size so far; returns the sum of all sizes."""
        task = asyncio.current_task()
        if task in self._waiting:
            self._waiting[task] = size
        return sum(self._waiting.values())

    def end_oldest(self) -> None:
        """Refuses the oldest request that is arriving."""
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
            self._errors[task] = error
            task.cancel()
