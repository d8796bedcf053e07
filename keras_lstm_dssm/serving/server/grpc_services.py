"""Implements TF Serving's gRPC services with a registry of models."""

import time
from collections.abc import Callable
from typing import Any

import grpc
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

from keras_lstm_dssm.serving.server.bounds import Bounds
from keras_lstm_dssm.serving.server.model_registry import ModelRegistry
from keras_lstm_dssm.serving.server.model_replies import (
    model_metadata,
    model_status,
)
from keras_lstm_dssm.serving.server.request_metrics import (
    Request,
    RequestMetrics,
)
from keras_lstm_dssm.serving.server.signature_call import (
    StatusError,
    invalid_argument,
)

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
        return servable.predict(request)

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
