"""TF Serving's gRPC services in this process: for trials, demos and tests.

The messages and services are those of `tensorflow-serving-api`, so the same
client works against either. Production wants TF Serving itself: it batches
requests, watches the folder and is not held up by Python.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
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
    ModelVersionStatus,
)
from tensorflow_serving.apis.model_service_pb2_grpc import (
    ModelServiceServicer,
    add_ModelServiceServicer_to_server,
)
from tensorflow_serving.apis.predict_pb2 import PredictRequest, PredictResponse
from tensorflow_serving.apis.prediction_service_pb2_grpc import (
    PredictionServiceServicer,
    add_PredictionServiceServicer_to_server,
)

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.fault import Fault, invalid
from keras_lstm_dssm.export.registry import Registry


def _answers(method: Callable[..., Any]) -> Callable[..., Any]:
    """Turns a `Fault` into the call's status; all requests name a model."""

    def answer(self: Any, request: Any, context: grpc.ServicerContext) -> Any:
        try:
            if not request.HasField("model_spec"):
                raise invalid("Missing ModelSpec")
            return method(self, request)
        except Fault as fault:
            return context.abort(fault.code, fault.details)

    return answer


class _Predictions(PredictionServiceServicer):
    def __init__(self, models: Registry) -> None:
        self._models = models

    @_answers
    def Predict(self, request: PredictRequest) -> PredictResponse:
        return self._models.find(request.model_spec).predict(request)

    @_answers
    def GetModelMetadata(
        self, request: GetModelMetadataRequest
    ) -> GetModelMetadataResponse:
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


class _Models(ModelServiceServicer):
    def __init__(self, models: Registry) -> None:
        self._models = models

    @_answers
    def GetModelStatus(
        self, request: GetModelStatusRequest
    ) -> GetModelStatusResponse:
        spec = request.model_spec
        versions = self._models.versions(spec.name)
        missing = f"Could not find any versions of model {spec.name}"
        if spec.HasField("version"):
            wanted = spec.version.value
            versions = [wanted] if wanted in versions else []
            missing = f"Could not find version {wanted} of model {spec.name}"
        if not versions:
            raise Fault(grpc.StatusCode.NOT_FOUND, missing)
        reply = GetModelStatusResponse()
        for version in reversed(versions):
            status = reply.model_version_status.add(
                version=version, state=ModelVersionStatus.AVAILABLE
            )
            status.status.SetInParent()
        return reply


class PredictionServer:
    """Serves a folder of models over gRPC while it is entered.

    Args:
        models_dir: The folder, `NAME/NUMBER/saved_model.pb` in it.
        port: The port; 0 takes a free one.
        host: The address to listen on; by default only this machine.
        versions: How many of the newest versions of each model to load.
        max_message_mb: Largest request and reply, in MiB.
        threads: Requests answered at the same time.

    Attributes:
        port: The port it listens on.
        models: The `Registry` of what is loaded.

    Raises:
        InputError: The port is taken, there is no model in the folder, or
            one does not load.

    Example:
        >>> with PredictionServer("models", port=0) as server:
        ...     with Client(f"127.0.0.1:{server.port}") as client:
        ...         client.search(["angle bracket"], k=5)
    """

    def __init__(
        self,
        models_dir: str | os.PathLike[str],
        port: int = 8500,
        host: str = "127.0.0.1",
        versions: int = 1,
        max_message_mb: int = 64,
        threads: int = 8,
    ) -> None:
        self.models = Registry(models_dir, versions)
        self._server = grpc.server(
            ThreadPoolExecutor(threads),
            options=[
                # Otherwise a second server shares the port in silence, and
                # every other request meets the wrong models.
                ("grpc.so_reuseport", 0),
                ("grpc.max_receive_message_length", max_message_mb << 20),
                ("grpc.max_send_message_length", max_message_mb << 20),
            ],
        )
        add_PredictionServiceServicer_to_server(
            _Predictions(self.models), self._server
        )
        add_ModelServiceServicer_to_server(_Models(self.models), self._server)
        try:
            self.port = self._server.add_insecure_port(f"{host}:{port}")
        except RuntimeError as error:
            raise InputError(
                f"cannot listen on {host}:{port}: the port is in use or the "
                "address is not this machine's; give another port, or 0 for "
                "a free one"
            ) from error

    def __enter__(self) -> "PredictionServer":
        self._server.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Running calls get a second to finish.
        self._server.stop(1).wait()
