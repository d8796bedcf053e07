"""TF Serving's gRPC services and the health service, for a `grpc.aio` server.

Each call is a coroutine of the event loop: it checks the token, awaits the
message for a limited time, and only then takes a slot in which a model runs.
So a client that sends nothing, or reads nothing, holds no thread and no slot.
"""

import asyncio
import gc
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import grpc
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from tensorflow_serving.apis import model_service_pb2, prediction_service_pb2

from keras_lstm_dssm.serving.limits import (
    MAX_WAITING,
    MAX_WAITING_OF_PEER,
    QUICK_BYTES,
    Bounds,
    RequestSlots,
    overdue,
)
from keras_lstm_dssm.serving.metrics import RequestMetrics
from keras_lstm_dssm.serving.model_registry import (
    ModelRegistry,
    model_metadata,
    model_status,
)
from keras_lstm_dssm.serving.security import NO_TOKEN, TokenFile
from keras_lstm_dssm.serving.servable import StatusError, invalid_argument

NO_MESSAGE = "Exception deserializing request!"
"""gRPC's own message for bytes that are no message of the method."""

MESSAGE_SECONDS = 30.0
"""Seconds in which a call's message has to arrive, and its reply to be read."""

HEALTH_SECONDS = 5.0
"""Limit of `MESSAGE_SECONDS` for calls of the health service."""

MAX_WATCHES = 64
"""Maximum number of streams of `Health.Watch`; 16 of one address."""

# TF Serving also truncates longer messages.
_MESSAGE_BYTES = 1024


def truncated(details: str) -> str:
    """Cuts a long error message where TF Serving cuts it."""
    encoded = details.encode()
    if len(encoded) <= _MESSAGE_BYTES:
        return details
    return encoded[:_MESSAGE_BYTES].decode(errors="ignore") + "...TRUNCATED"


class Services(NamedTuple):
    """Answers TF Serving's methods; threads may share it."""

    models: ModelRegistry
    bounds: Bounds
    metrics: RequestMetrics | None = None

    def answer(
        self,
        method: str,
        request: Any,
        context: grpc.aio.ServicerContext,
        start: float,
    ) -> bytes:
        """Answers a request, and adds it to the metrics."""
        code = grpc.StatusCode.UNKNOWN
        try:
            seconds = context.time_remaining()
            if seconds is not None and seconds <= 0:
                raise StatusError(
                    grpc.StatusCode.DEADLINE_EXCEEDED,
                    "the deadline passed before the request's turn came",
                )
            if not request.HasField("model_spec"):
                raise invalid_argument("Missing ModelSpec")
            match method:
                case "Predict":
                    servable = self.models.find(request.model_spec)
                    self.bounds.check(request)
                    reply = servable.predict(request, self.bounds.check_arrays)
                case "GetModelMetadata":
                    _check_fields(request.metadata_field)
                    reply = model_metadata(self.models, request.model_spec)
                case "GetModelStatus":
                    reply = model_status(self.models, request.model_spec)
            serialized: bytes = reply.SerializeToString()
            code = grpc.StatusCode.OK
            return serialized
        except StatusError as error:
            code = error.code
            raise
        finally:
            if self.metrics is not None:
                spec = request.model_spec
                names = method, spec.name, spec.signature_name
                self.metrics.record("grpc", *names, code.name, start)


def _check_fields(metadata_fields: Sequence[str]) -> None:
    """Raises `StatusError` unless a request asks for signatures only."""
    if not metadata_fields:
        raise invalid_argument(
            "GetModelMetadataRequest must specify at least one metadata_field"
        )
    for field in metadata_fields:
        if field != "signature_def":
            raise invalid_argument(f"Metadata field {field} is not supported")


@dataclass(eq=False)
class _Call:
    """A call while it waits for its client, see `limits.Waiting`."""

    peer: str
    since: float
    seconds: float
    task: Any
    is_answered: bool
    error: StatusError | None = None


def _drop_call(task: "asyncio.Task[Any]") -> None:
    """Ends a call whose reply is being sent, and frees the reply.

    grpc.aio (1.85) has no function for it. It frees a call, and so resets the
    stream, when nothing refers to it any more: the task that awaits the end
    of the call does, and refers to the call's own task, too.
    """
    for outer in asyncio.all_tasks():
        held = gc.get_referents(outer.get_coro())
        if outer is not task and any(
            each is task or task in gc.get_referents(each) for each in held
        ):
            outer.cancel()


def _address(context: grpc.aio.ServicerContext) -> str:
    """Returns the client's address, without its port."""
    address: str = context.peer().rpartition(":")[0]
    return address


class WaitingCalls:
    """Holds the calls whose clients have to send a message or read a reply.

    A call may wait for a number of seconds. Waiting calls are counted apart
    from the requests that are computed; `overdue` says which of them end. Only
    the event loop may use the object.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._calls: set[_Call] = set()

    async def message(self, context: grpc.aio.ServicerContext) -> bytes:
        """Waits for the message of a call."""
        call = self._add(context)
        try:
            data = await context.read()
        except asyncio.CancelledError:
            if call.error is None:
                raise
            raise call.error from None
        finally:
            self._calls.discard(call)
        if data is grpc.aio.EOF:
            raise StatusError(grpc.StatusCode.INTERNAL, NO_MESSAGE)
        return data

    def reply(self, context: grpc.aio.ServicerContext) -> None:
        """Counts a call from now on until its client has read the reply."""
        call = self._add(context, is_answered=True)
        # A callback of the context would keep the call from being freed.
        call.task.add_done_callback(lambda _: self._calls.discard(call))

    async def write(
        self, context: grpc.aio.ServicerContext, reply: bytes
    ) -> None:
        """Sends a message of a stream."""
        call = self._add(context, is_answered=True)
        try:
            await context.write(reply)
        finally:
            self._calls.discard(call)

    def _add(
        self, context: grpc.aio.ServicerContext, is_answered: bool = False
    ) -> _Call:
        now = asyncio.get_running_loop().time()
        task = asyncio.current_task()
        call = _Call(_address(context), now, self._seconds, task, is_answered)
        self._calls.add(call)
        if len(self._calls) > MAX_WAITING:
            self.end_overdue()
        return call

    def end_overdue(self) -> None:
        """Ends the calls that have waited too long, or are too many."""
        now = asyncio.get_running_loop().time()
        for call in overdue(self._calls, now):
            code = grpc.StatusCode.RESOURCE_EXHAUSTED
            message = "too many calls wait for their messages"
            if now - call.since >= self._seconds:
                code = grpc.StatusCode.DEADLINE_EXCEEDED
                message = f"no message within {self._seconds:g} seconds"
            self._end(call, StatusError(code, message))

    def stop(self, answered: bool) -> None:
        """Ends the calls without a message and, if `answered`, the others."""
        error = StatusError(grpc.StatusCode.UNAVAILABLE, "the server stops")
        for call in list(self._calls):
            if answered or not call.is_answered:
                self._end(call, error)

    def _end(self, call: _Call, error: StatusError) -> None:
        """Ends a call, with the error if its reply is not being sent yet."""
        self._calls.discard(call)
        call.error = error
        # The task refers to `call`: without this, gRPC's call is not freed.
        task, call.task = call.task, None
        if call.is_answered:
            _drop_call(task)
        task.cancel()


class Health:
    """Answers the calls of `grpc.health.v1`, without waiting for a model.

    A change of a state only wakes the streams that watch it: each of them
    sends by itself, so that none waits for a client that reads nothing.
    """

    def __init__(self, statuses: Mapping[str, int]) -> None:
        self._statuses = dict(statuses)
        self._stopped = False
        self._watches: dict[asyncio.Event, str] = {}

    def update(self, statuses: Mapping[str, int]) -> None:
        """Sets the states of services, unless the server stops."""
        if not self._stopped:
            self._statuses.update(statuses)
            self._wake()

    def stop(self) -> None:
        """Sets all states to NOT_SERVING permanently, and ends the streams."""
        self._stopped = True
        not_serving = HealthCheckResponse.NOT_SERVING
        self._statuses = dict.fromkeys(self._statuses, not_serving)
        self._wake()

    def _wake(self) -> None:
        for event in self._watches:
            event.set()

    def check(self, request: HealthCheckRequest) -> bytes:
        """Returns the reply of Check."""
        status = self._statuses.get(request.service)
        if status is None:
            raise StatusError(grpc.StatusCode.NOT_FOUND, "unknown service")
        return HealthCheckResponse(status=status).SerializeToString()

    async def watch(
        self,
        request: HealthCheckRequest,
        write: Callable[[bytes], Awaitable[None]],
        peer: str,
    ) -> None:
        """Sends a state, and again whenever it changes."""
        of_peer = list(self._watches.values()).count(peer)
        if len(self._watches) >= MAX_WATCHES or of_peer >= MAX_WAITING_OF_PEER:
            raise StatusError(
                grpc.StatusCode.RESOURCE_EXHAUSTED, "too many streams of Watch"
            )
        changed, sent = asyncio.Event(), None
        self._watches[changed] = peer
        try:
            while True:
                changed.clear()
                status = self._statuses.get(
                    request.service, HealthCheckResponse.SERVICE_UNKNOWN
                )
                if status != sent:
                    sent = status
                    reply = HealthCheckResponse(status=status)
                    await write(reply.SerializeToString())
                if self._stopped:
                    return
                await changed.wait()
        finally:
            del self._watches[changed]


_OFFERED = ("Predict", "GetModelMetadata", "GetModelStatus")
_HEALTH = "/grpc.health.v1.Health/"


class GrpcServices(grpc.GenericRpcHandler):
    """Handles the calls of a `grpc.aio` server: TF Serving's and health.

    Messages are read as bytes and parsed here: grpc.aio waits for others
    without a limit, and loses 20 kB for each that it cannot parse (1.85).
    """

    def __init__(
        self,
        services: Services,
        slots: RequestSlots,
        health: Health,
        tokens: TokenFile | None = None,
    ) -> None:
        logging.getLogger("grpc._cython.cygrpc").addFilter(_is_own_error)
        self._services, self._slots = services, slots
        self._health, self._tokens = health, tokens
        self._waiting = WaitingCalls(MESSAGE_SECONDS)
        self._waiting_health = WaitingCalls(HEALTH_SECONDS)
        self._handlers = {
            f"{_HEALTH}Check": _unary(self._check),
            f"{_HEALTH}Watch": grpc.stream_stream_rpc_method_handler(
                self._watch
            ),
        }
        for file, name in (
            (prediction_service_pb2, "PredictionService"),
            (model_service_pb2, "ModelService"),
        ):
            service = file.DESCRIPTOR.services_by_name[name]
            for method in service.methods:
                message = GetMessageClass(method.input_type)
                answer = (
                    partial(self._answer, method.name, message)
                    if method.name in _OFFERED
                    else partial(self._not_offered, message.__name__)
                )
                path = f"/{service.full_name}/{method.name}"
                self._handlers[path] = _unary(answer)

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler | None:
        """Returns the handler of a call."""
        return self._handlers.get(handler_call_details.method)

    def end_overdue(self) -> None:
        """Ends the calls that have waited too long, or are too many."""
        self._waiting.end_overdue()
        self._waiting_health.end_overdue()

    def stop(self) -> None:
        """Ends calls for which the server would wait until the grace ends."""
        self._health.stop()
        self._waiting.stop(answered=False)
        self._waiting_health.stop(answered=True)

    async def _answer(
        self, method: str, message: type[Any], context: grpc.aio.ServicerContext
    ) -> bytes:
        start = time.perf_counter()
        self._check_token(context)
        data = await self._waiting.message(context)
        if len(data) <= QUICK_BYTES:
            request = _parsed(message, data)
            spec = request.model_spec
            known = self._services.models.known(spec.name, spec.signature_name)
            reply = await self._slots.run(
                (method, *known) if all(known) else None,
                partial(self._services.answer, method, request, context, start),
            )
        else:
            reply = await self._slots.run(
                None,
                lambda: self._services.answer(
                    method, _parsed(message, data), context, start
                ),
            )
        self._waiting.reply(context)
        return reply

    async def _not_offered(
        self, name: str, context: grpc.aio.ServicerContext
    ) -> bytes:
        self._check_token(context)
        raise StatusError(
            grpc.StatusCode.UNIMPLEMENTED,
            f"{name}: not offered by this local server",
        )

    def _check_token(self, context: grpc.aio.ServicerContext) -> None:
        if self._tokens is None:
            return
        headers = [
            value
            for key, value in context.invocation_metadata() or ()
            if key == "authorization"
        ]
        # Of several headers none is taken.
        if len(headers) != 1 or not self._tokens.allows(headers[0]):
            raise StatusError(grpc.StatusCode.UNAUTHENTICATED, NO_TOKEN)

    async def _check(self, context: grpc.aio.ServicerContext) -> bytes:
        data = await self._waiting_health.message(context)
        reply = self._health.check(_parsed(HealthCheckRequest, data))
        self._waiting_health.reply(context)
        return reply

    async def _watch(self, _: Any, context: grpc.aio.ServicerContext) -> None:
        try:
            data = await self._waiting_health.message(context)
            request = _parsed(HealthCheckRequest, data)
            await self._health.watch(
                request,
                partial(self._waiting_health.write, context),
                _address(context),
            )
        except StatusError as error:
            await context.abort(error.code, truncated(error.details))


def _is_own_error(record: logging.LogRecord) -> bool:
    """Filters out the trace-back of a client that goes before its reply."""
    return "ExecuteBatchError" not in record.getMessage()


def _parsed(message: type[Any], data: bytes) -> Any:
    try:
        return message.FromString(data)
    except DecodeError:
        raise StatusError(grpc.StatusCode.INTERNAL, NO_MESSAGE) from None


def _unary(
    answer: Callable[[grpc.aio.ServicerContext], Awaitable[bytes]],
) -> grpc.RpcMethodHandler:
    """Returns a handler that ends a call with the code of a `StatusError`."""

    async def handle(_: Any, context: grpc.aio.ServicerContext) -> bytes:
        try:
            return await answer(context)
        except StatusError as error:
            return await context.abort(error.code, truncated(error.details))

    return grpc.stream_unary_rpc_method_handler(handle)
