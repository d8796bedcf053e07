"""Implements TF Serving's gRPC services with a registry of models.

TokenInterceptor: a gRPC server that answers only requests with a token.
Handlers of gRPC services that parse messages themselves.
"""

import functools
import time
from collections.abc import Callable, Iterator
from typing import Any

import grpc
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from tensorflow_serving.apis.get_model_metadata_pb2 import (
    GetModelMetadataRequest,
    GetModelMetadataResponse,
)
from tensorflow_serving.apis.get_model_status_pb2 import (
    GetModelStatusRequest,
    GetModelStatusResponse,
)
from tensorflow_serving.apis.model_service_pb2_grpc import ModelServiceServicer
from tensorflow_serving.apis.predict_pb2 import PredictRequest, PredictResponse
from tensorflow_serving.apis.prediction_service_pb2_grpc import (
    PredictionServiceServicer,
)

from keras_lstm_dssm.serving.limits import Bounds
from keras_lstm_dssm.serving.metrics import Request, RequestMetrics
from keras_lstm_dssm.serving.model_registry import (
    ModelRegistry,
    model_metadata,
    model_status,
)
from keras_lstm_dssm.serving.security import NO_TOKEN, TokenFile
from keras_lstm_dssm.serving.servable import StatusError, invalid_argument

_HEALTH = "/grpc.health.v1.Health/"
"""The message of a refusal, over gRPC and HTTP."""


def _refuse(_: Iterator[bytes], context: grpc.ServicerContext) -> None:
    context.abort(grpc.StatusCode.UNAUTHENTICATED, NO_TOKEN)


# As the handler of a stream, it answers before the message is read.
_REFUSAL = grpc.stream_unary_rpc_method_handler(_refuse)


class TokenInterceptor(grpc.ServerInterceptor):
    """Refuses requests without a token, as UNAUTHENTICATED.

    Health checks need no token: they come from load balancers, and tell
    only whether the server and its models are ready.

    Args:
        tokens: The tokens that are allowed.

    Example:
        >>> grpc.server(pool, interceptors=[TokenInterceptor(tokens)])
    """

    def __init__(self, tokens: TokenFile) -> None:
        self._tokens = tokens

    def intercept_service(
        self,
        continuation: Callable[[Any], Any],
        handler_call_details: Any,
    ) -> Any:
        """Returns the handler of the request, or the one that refuses it."""
        if handler_call_details.method.startswith(_HEALTH):
            return continuation(handler_call_details)
        headers = [
            value
            for key, value in handler_call_details.invocation_metadata
            if key == "authorization"
        ]
        # Of several headers none is taken.
        if len(headers) == 1 and self._tokens.allows(headers[0]):
            return continuation(handler_call_details)
        return _REFUSAL


# TF Serving also truncates longer messages.
_MESSAGE_BYTES = 1024


def _answers(method: Callable[..., Any]) -> Callable[..., Any]:
    """Converts a method's `StatusError` into the call's status.

    It also rejects requests whose deadline has passed or that name no model,
    and adds each request to the metrics.
    """

    def answer(self: Any, request: Any, context: grpc.ServicerContext) -> Any:
        start = time.perf_counter()
        code = grpc.StatusCode.UNKNOWN
        try:
            if _expired(context):
                raise StatusError(
                    grpc.StatusCode.DEADLINE_EXCEEDED,
                    "the deadline passed before the request's turn came",
                )
            if not request.HasField("model_spec"):
                raise invalid_argument("Missing ModelSpec")
            reply = method(self, request)
            code = grpc.StatusCode.OK
            return reply
        except StatusError as error:
            code = error.code
            return context.abort(error.code, truncated(error.details))
        finally:
            if self._metrics is not None:
                spec = request.model_spec
                asked = Request(
                    method.__name__, spec.name, spec.signature_name, start
                )
                self._metrics.record("grpc", asked, code.name)

    return answer


def _expired(context: grpc.ServicerContext) -> bool:
    """Returns whether the deadline passed or the client cancelled the call."""
    seconds = context.time_remaining()
    return not context.is_active() or (seconds is not None and seconds <= 0)


def truncated(details: str) -> str:
    """Returns a message, without what TF Serving leaves out of a long one."""
    # Half a surrogate pair can come from the JSON of a request.
    encoded = details.encode(errors="replace")
    if len(encoded) <= _MESSAGE_BYTES:
        return encoded.decode()
    return encoded[:_MESSAGE_BYTES].decode(errors="ignore") + "...TRUNCATED"


def _unimplemented(_: Any, request: Any, context: grpc.ServicerContext) -> None:
    # The generated method would add a trace-back to the server's log.
    context.abort(
        grpc.StatusCode.UNIMPLEMENTED,
        f"{type(request).__name__}: not offered by this local server",
    )


class PredictionService(PredictionServiceServicer):
    """Implements Predict and GetModelMetadata.

    Args:
        models: The registry of the models that are served.
        bounds: The largest request that is computed.
        metrics: The metrics of the server, if there are any.
    """

    Classify = Regress = MultiInference = _unimplemented

    def __init__(
        self,
        models: ModelRegistry,
        bounds: Bounds,
        metrics: RequestMetrics | None = None,
    ) -> None:
        self._models = models
        self._bounds = bounds
        self._metrics = metrics

    @_answers
    def Predict(self, request: PredictRequest) -> PredictResponse:
        """Runs a signature of the requested model."""
        servable = self._models.find(request.model_spec)
        self._bounds.check(request)
        return servable.predict(request, self._bounds.check_arrays)

    @_answers
    def GetModelMetadata(
        self, request: GetModelMetadataRequest
    ) -> GetModelMetadataResponse:
        """Returns the signatures of the requested model."""
        if not request.metadata_field:
            raise invalid_argument(
                "GetModelMetadataRequest must specify at least one "
                "metadata_field"
            )
        for field in request.metadata_field:
            if field != "signature_def":
                raise invalid_argument(
                    f"Metadata field {field} is not supported"
                )
        return model_metadata(self._models, request.model_spec)


class ModelService(ModelServiceServicer):
    """Implements GetModelStatus.

    Args:
        models: The registry of the models whose states it reports.
        metrics: The metrics of the server, if there are any.
    """

    HandleReloadConfigRequest = _unimplemented

    def __init__(
        self, models: ModelRegistry, metrics: RequestMetrics | None = None
    ) -> None:
        self._models = models
        self._metrics = metrics

    @_answers
    def GetModelStatus(
        self, request: GetModelStatusRequest
    ) -> GetModelStatusResponse:
        """Returns the state of each version, or of the requested one."""
        return model_status(self._models, request.model_spec)


NO_MESSAGE = "Exception deserializing request!"
"""gRPC's own message for bytes that are no message of the method."""


def service_handlers(
    service: ServiceDescriptor, servicer: Any
) -> grpc.GenericRpcHandler:
    """Returns what `add_XServicer_to_server` would add to a server.

    gRPC (1.85) loses 20 kB of memory for each message that its own
    deserializer cannot parse, and logs a trace-back: anyone who can connect
    could fill the memory. Here the method parses the bytes, and aborts the
    call with the same code and message.

    Args:
        service: The service, from `pb2.DESCRIPTOR.services_by_name`.
        servicer: An object with a method of each name.

    Example:
        >>> service = health_pb2.DESCRIPTOR.services_by_name["Health"]
        >>> handlers = service_handlers(service, HealthServicer())
        >>> server.add_generic_rpc_handlers([handlers])
    """
    handlers = {}
    for method in service.methods:
        make = (
            grpc.unary_stream_rpc_method_handler
            if method.server_streaming
            else grpc.unary_unary_rpc_method_handler
        )
        handlers[method.name] = make(
            _parsing(
                getattr(servicer, method.name),
                GetMessageClass(method.input_type),
            ),
            response_serializer=_serialize,
        )
    return grpc.method_handlers_generic_handler(service.full_name, handlers)


def _parsing(
    behavior: Callable[..., Any], message: type[Any]
) -> Callable[..., Any]:
    # `wraps` keeps the attributes by which gRPC calls some methods otherwise.
    @functools.wraps(behavior)
    def parse(data: bytes, context: grpc.ServicerContext, *more: Any) -> Any:
        try:
            request = message.FromString(data)
        except DecodeError:
            return context.abort(grpc.StatusCode.INTERNAL, NO_MESSAGE)
        return behavior(request, context, *more)

    return parse


def _serialize(reply: Any) -> bytes:
    serialized: bytes = reply.SerializeToString()
    return serialized
