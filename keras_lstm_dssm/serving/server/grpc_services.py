"""Implements TF Serving's gRPC services with a registry of models."""

from collections.abc import Callable
from typing import Any

import grpc
from tensorflow_serving.apis.get_model_metadata_pb2 import (
    GetModelMetadataRequest,
    GetModelMetadataResponse,
    SignatureDefMap,
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

from keras_lstm_dssm.serving.server.model_registry import ModelRegistry
from keras_lstm_dssm.serving.server.signature_call import (
    StatusError,
    invalid_argument,
)

# TF Serving also truncates longer messages.
_MESSAGE_BYTES = 1024


def _answers(method: Callable[..., Any]) -> Callable[..., Any]:
    """Converts a method's `StatusError` into the call's status.

    It also rejects requests whose deadline has passed or that name no model.
    """

    def answer(self: Any, request: Any, context: grpc.ServicerContext) -> Any:
        try:
            if _expired(context):
                raise StatusError(
                    grpc.StatusCode.DEADLINE_EXCEEDED,
                    "the deadline passed before the request's turn came",
                )
            if not request.HasField("model_spec"):
                raise invalid_argument("Missing ModelSpec")
            return method(self, request)
        except StatusError as error:
            return context.abort(error.code, _truncated(error.details))

    return answer


def _expired(context: grpc.ServicerContext) -> bool:
    """Returns whether the deadline passed or the client cancelled the call."""
    seconds = context.time_remaining()
    return not context.is_active() or (seconds is not None and seconds <= 0)


def _truncated(details: str) -> str:
    encoded = details.encode()
    if len(encoded) <= _MESSAGE_BYTES:
        return details
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
        max_rows: Maximum number of rows in a request.
    """

    Classify = Regress = MultiInference = _unimplemented

    def __init__(self, models: ModelRegistry, max_rows: int) -> None:
        self._models = models
        self._max_rows = max_rows

    @_answers
    def Predict(self, request: PredictRequest) -> PredictResponse:
        """Runs a signature of the requested model."""
        servable = self._models.find(request.model_spec)
        shapes = [proto.tensor_shape.dim for proto in request.inputs.values()]
        rows = max((shape[0].size for shape in shapes if shape), default=0)
        if rows > self._max_rows:
            raise invalid_argument(
                f"Task size {rows} is larger than maximum input batch size "
                f"{self._max_rows}"
            )
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
        servable = self._models.find(request.model_spec)
        reply = GetModelMetadataResponse()
        reply.model_spec.name = servable.name
        reply.model_spec.version.value = servable.version
        reply.metadata["signature_def"].Pack(
            SignatureDefMap(signature_def=servable.signature_defs)
        )
        return reply


class ModelService(ModelServiceServicer):
    """Implements GetModelStatus.

    Args:
        models: The registry of the models whose states it reports.
    """

    HandleReloadConfigRequest = _unimplemented

    def __init__(self, models: ModelRegistry) -> None:
        self._models = models

    @_answers
    def GetModelStatus(
        self, request: GetModelStatusRequest
    ) -> GetModelStatusResponse:
        """Returns the state of each version, or of the requested one."""
        spec = request.model_spec
        states = self._models.states(spec.name)
        missing = f"Could not find any versions of model {spec.name}"
        if spec.HasField("version"):  # TF Serving ignores a label here, too
            wanted = spec.version.value
            states = {v: s for v, s in states.items() if v == wanted}
            missing = f"Could not find version {wanted} of model {spec.name}"
        if not states:
            raise StatusError(grpc.StatusCode.NOT_FOUND, missing)
        reply = GetModelStatusResponse()
        for version, (state, code, message) in states.items():
            status = reply.model_version_status.add(
                version=version, state=state
            )
            status.status.error_code = code
            status.status.error_message = message
        return reply
