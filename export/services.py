"""TF Serving's gRPC services, over a `Registry`."""

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

from keras_lstm_dssm.export.fault import Fault, invalid
from keras_lstm_dssm.export.registry import Registry


def _answers(method: Callable[..., Any]) -> Callable[..., Any]:
    """Turns a `Fault` into the call's status; all requests name a model."""

    def answer(self: Any, request: Any, context: grpc.ServicerContext) -> Any:
        try:
            if _late(context):
                raise Fault(
                    grpc.StatusCode.DEADLINE_EXCEEDED,
                    "the deadline passed before the request's turn came",
                )
            if not request.HasField("model_spec"):
                raise invalid("Missing ModelSpec")
            return method(self, request)
        except Fault as fault:
            return context.abort(fault.code, fault.details)

    return answer


def _late(context: grpc.ServicerContext) -> bool:
    """Whether nobody waits any more: the deadline passed, the call ended."""
    seconds = context.time_remaining()
    return not context.is_active() or (seconds is not None and seconds <= 0)


def _unimplemented(_: Any, request: Any, context: grpc.ServicerContext) -> None:
    # The generated method would add a trace-back to the server's log.
    context.abort(
        grpc.StatusCode.UNIMPLEMENTED,
        f"{type(request).__name__}: not offered by this local server",
    )


class Predictions(PredictionServiceServicer):
    """Predict and GetModelMetadata."""

    Classify = Regress = MultiInference = _unimplemented

    def __init__(self, models: Registry) -> None:
        self._models = models

    @_answers
    def Predict(self, request: PredictRequest) -> PredictResponse:
        """Runs a model."""
        return self._models.find(request.model_spec).predict(request)

    @_answers
    def GetModelMetadata(
        self, request: GetModelMetadataRequest
    ) -> GetModelMetadataResponse:
        """Tells a model's signatures."""
        if not request.metadata_field:
            raise invalid(
                "GetModelMetadataRequest must specify at least one "
                "metadata_field"
            )
        for field in request.metadata_field:
            if field != "signature_def":
                raise invalid(f"Metadata field {field} is not supported")
        servable = self._models.find(request.model_spec)
        reply = GetModelMetadataResponse()
        reply.model_spec.name = servable.name
        reply.model_spec.version.value = servable.version
        reply.metadata["signature_def"].Pack(
            SignatureDefMap(signature_def=servable.signature_defs)
        )
        return reply


class Models(ModelServiceServicer):
    """GetModelStatus."""

    HandleReloadConfigRequest = _unimplemented

    def __init__(self, models: Registry) -> None:
        self._models = models

    @_answers
    def GetModelStatus(
        self, request: GetModelStatusRequest
    ) -> GetModelStatusResponse:
        """Tells the state of each version, or of the one asked for."""
        spec = request.model_spec
        states = self._models.states(spec.name)
        missing = f"Could not find any versions of model {spec.name}"
        if spec.HasField("version"):  # a label is not read, as in TF Serving
            wanted = spec.version.value
            states = {v: s for v, s in states.items() if v == wanted}
            missing = f"Could not find version {wanted} of model {spec.name}"
        if not states:
            raise Fault(grpc.StatusCode.NOT_FOUND, missing)
        reply = GetModelStatusResponse()
        for version, (state, code, message) in states.items():
            status = reply.model_version_status.add(
                version=version, state=state
            )
            status.status.error_code = code
            status.status.error_message = message
        return reply
