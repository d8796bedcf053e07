"""TF Serving's gRPC services and the health service, for a `grpc.aio` server.

`Predictions` and `Health` implement the methods. `Calls` checks the token of
each call and waits for the message in the event loop. `RequestSlots` then runs
the method. Health checks run at once and need no token.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import grpc
from google.protobuf.message import DecodeError, Message
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import (
    HealthServicer,
    add_HealthServicer_to_server,
)
from tensorflow_serving.apis import get_model_metadata_pb2 as metadata_pb2
from tensorflow_serving.apis import get_model_status_pb2 as status_pb2
from tensorflow_serving.apis import predict_pb2
from tensorflow_serving.apis.model_pb2 import ModelSpec
from tensorflow_serving.apis.model_service_pb2_grpc import (
    ModelServiceServicer,
    add_ModelServiceServicer_to_server,
)
from tensorflow_serving.apis.prediction_service_pb2_grpc import (
    PredictionServiceServicer,
    add_PredictionServiceServicer_to_server,
)

from keras_lstm_dssm.serving.limits import (
    QUICK_BYTES,
    Arrivals,
    Bounds,
    RequestSlots,
)
from keras_lstm_dssm.serving.metrics import RequestMetrics
from keras_lstm_dssm.serving.model_registry import (
    ModelRegistry,
    model_metadata,
    model_status,
)
from keras_lstm_dssm.serving.security import NO_TOKEN, Security
from keras_lstm_dssm.serving.servable import InvalidError, StatusError

NO_MESSAGE = "Exception deserializing request!"
"""gRPC's message for a request that cannot be parsed."""

MAX_WATCHES = 64
"""Maximum number of open streams of `Health.Watch`."""

_HEALTH = "/grpc.health.v1.Health/"


class Predictions(PredictionServiceServicer, ModelServiceServicer):
    """Implements TF Serving's methods; threads may share the object."""

    def __init__(self, models: ModelRegistry, bounds: Bounds) -> None:
        self._models, self._bounds = models, bounds

    def Predict(
        self, request: predict_pb2.PredictRequest, _: Any
    ) -> predict_pb2.PredictResponse:
        """Runs the requested signature of a model."""
        servable = self._models.find(_checked_spec(request))
        self._bounds.check(request)
        return servable.predict(request, self._bounds.check_arrays)

    def GetModelMetadata(
        self, request: metadata_pb2.GetModelMetadataRequest, _: Any
    ) -> metadata_pb2.GetModelMetadataResponse:
        """Returns the signatures of a model."""
        spec = _checked_spec(request)
        if not request.metadata_field:
            raise InvalidError(
                "GetModelMetadataRequest must specify at least one "
                "metadata_field"
            )
        for field in request.metadata_field:
            if field != "signature_def":
                raise InvalidError(f"Metadata field {field} is not supported")
        return model_metadata(self._models, spec)

    def GetModelStatus(
        self, request: status_pb2.GetModelStatusRequest, _: Any
    ) -> status_pb2.GetModelStatusResponse:
        """Returns the states of a model's versions."""
        return model_status(self._models, _checked_spec(request))

    def Classify(self, request: Message, _: Any) -> Any:
        """Raises UNIMPLEMENTED, because this server lacks the method."""
        raise StatusError(
            grpc.StatusCode.UNIMPLEMENTED,
            f"{type(request).__name__}: not offered by this local server",
        )

    Regress = MultiInference = HandleReloadConfigRequest = Classify


def _checked_spec(request: Any) -> ModelSpec:
    if not request.HasField("model_spec"):
        raise InvalidError("Missing ModelSpec")
    return request.model_spec


def _spec(request: Any) -> ModelSpec:
    """Returns `model_spec`, or an empty `ModelSpec` if the field is missing."""
    return getattr(request, "model_spec", ModelSpec())


class Health(HealthServicer):
    """Answers the calls of `grpc.health.v1`, without waiting for a model."""

    # The servicer of the package `grpc_health` holds a lock while it sends. A
    # client that reads slowly would block all changes of states
    # (`test_a_watch_that_nobody_reads`), so this class replaces the servicer.

    def __init__(self, statuses: Mapping[str, int]) -> None:
        self._statuses = dict(statuses)
        self._stopped = False
        self._changed = asyncio.Event()
        self._watches = 0

    def update(self, statuses: Mapping[str, int]) -> None:
        """Sets the states of services; has no effect after `stop`."""
        if not self._stopped:
            self._statuses.update(statuses)
            self._changed.set()
            self._changed = asyncio.Event()

    def stop(self) -> None:
        """Sets all states to NOT_SERVING permanently, and ends the streams."""
        not_serving = HealthCheckResponse.NOT_SERVING
        self.update(dict.fromkeys(self._statuses, not_serving))
        self._stopped = True

    def Check(self, request: HealthCheckRequest, _: Any) -> HealthCheckResponse:
        """Returns the state of a service."""
        status = self._statuses.get(request.service)
        if status is None:
            raise StatusError(grpc.StatusCode.NOT_FOUND, "unknown service")
        return HealthCheckResponse(status=status)

    async def Watch(
        self, request: HealthCheckRequest, _: Any
    ) -> AsyncIterator[HealthCheckResponse]:
        """Sends a service's state at once, and the new state after changes."""
        if self._watches >= MAX_WATCHES:
            raise StatusError(
                grpc.StatusCode.RESOURCE_EXHAUSTED, "too many streams of Watch"
            )
        last_status = None
        self._watches += 1
        try:
            while True:
                changed = self._changed
                status = self._statuses.get(
                    request.service, HealthCheckResponse.SERVICE_UNKNOWN
                )
                if status != last_status:
                    last_status = status
                    yield HealthCheckResponse(status=status)
                if self._stopped:
                    return
                await changed.wait()
        finally:
            self._watches -= 1


class Calls(grpc.aio.ServerInterceptor):
    """Checks tokens; limits the number of calls and the wait for messages."""

    # The class reads and parses messages itself. grpc.aio would wait for a
    # message without a time limit (`test_calls_without_a_message`), and would
    # send a traceback if a message cannot be parsed.

    def __init__(
        self,
        models: ModelRegistry,
        slots: RequestSlots,
        arrivals: Arrivals,
        security: Security,
        metrics: RequestMetrics | None,
    ) -> None:
        logging.getLogger("grpc._cython.cygrpc").addFilter(_is_not_disconnect)
        self._models, self._slots, self._arrivals = models, slots, arrivals
        self._security, self._metrics = security, metrics

    async def intercept_service(
        self,
        continuation: Callable[
            [grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler]
        ],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler:
        """Returns a handler that reads a call's message as bytes."""
        handler: Any = await continuation(handler_call_details)
        if handler is None:
            return handler
        if handler.unary_stream is not None:
            return grpc.stream_stream_rpc_method_handler(
                partial(self._stream, handler)
            )
        return grpc.stream_unary_rpc_method_handler(
            partial(self._reply, handler_call_details.method, handler)
        )

    async def _stream(
        self, handler: Any, _: Any, context: grpc.aio.ServicerContext
    ) -> None:
        try:
            request = _parsed(handler, await self._read(context))
            async for reply in handler.unary_stream(request, context):
                await context.write(handler.response_serializer(reply))
        except StatusError as error:
            await context.abort(error.code, error.details)

    async def _reply(
        self,
        method: str,
        handler: Any,
        _: Any,
        context: grpc.aio.ServicerContext,
    ) -> bytes:
        start = time.perf_counter()
        try:
            if method.startswith(_HEALTH):
                return _run(handler, await self._read(context))
            metadata = context.invocation_metadata() or ()
            tokens = [v for key, v in metadata if key == "authorization"]
            if not self._security.admits(tokens):
                raise StatusError(grpc.StatusCode.UNAUTHENTICATED, NO_TOKEN)
            data = await self._read(context)
            key, name = None, method.rpartition("/")[2]
            if len(data) <= QUICK_BYTES:
                spec = _spec(_parsed(handler, data))
                names = self._models.known(spec.name, spec.signature_name)
                key = (name, *names) if all(names) else None
            return await self._slots.run(
                key,
                partial(self._measured, name, handler, data, context, start),
            )
        except StatusError as error:
            return await context.abort(error.code, error.details)

    async def _read(self, context: grpc.aio.ServicerContext) -> bytes:
        with self._arrivals.limit():
            data = await context.read()
        if data is grpc.aio.EOF:
            raise StatusError(grpc.StatusCode.INTERNAL, NO_MESSAGE)
        return data

    def _measured(
        self,
        name: str,
        handler: Any,
        data: bytes,
        context: grpc.aio.ServicerContext,
        start: float,
    ) -> bytes:
        spec = _spec(_parsed(handler, data))
        code = grpc.StatusCode.UNKNOWN
        try:
            seconds = context.time_remaining()
            if seconds is not None and seconds <= 0:
                raise StatusError(
                    grpc.StatusCode.DEADLINE_EXCEEDED,
                    "the deadline passed before the request's turn came",
                )
            reply = _run(handler, data)
            code = grpc.StatusCode.OK
            return reply
        except StatusError as error:
            code = error.code
            raise
        finally:
            if self._metrics is not None:
                labels = name, spec.name, spec.signature_name, code.name
                self._metrics.record("grpc", *labels, start)


def _is_not_disconnect(record: logging.LogRecord) -> bool:
    """Filters out the error that gRPC logs if a client has disconnected."""
    return "ExecuteBatchError" not in record.getMessage()


def _parsed(handler: Any, data: bytes) -> Any:
    try:
        return handler.request_deserializer(data)
    except DecodeError:
        raise StatusError(grpc.StatusCode.INTERNAL, NO_MESSAGE) from None


def _run(handler: Any, data: bytes) -> bytes:
    reply = handler.unary_unary(_parsed(handler, data), None)
    return handler.response_serializer(reply)


def add_services(
    server: grpc.aio.Server, predictions: Predictions, health: Health
) -> None:
    """Adds all services; the server must have the interceptor `Calls`."""
    add_PredictionServiceServicer_to_server(predictions, server)
    add_ModelServiceServicer_to_server(predictions, server)
    add_HealthServicer_to_server(health, server)
