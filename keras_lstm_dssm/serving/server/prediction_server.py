"""TF Serving's gRPC services in this process: for trials, demos and tests."""

import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any

import grpc
from grpc_health.v1.health import OVERALL_HEALTH, HealthServicer
from grpc_health.v1.health_pb2 import HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import add_HealthServicer_to_server
from tensorflow_serving.apis.get_model_metadata_pb2 import (
    GetModelMetadataRequest,
    GetModelMetadataResponse,
    SignatureDefMap,
)
from tensorflow_serving.apis.get_model_status_pb2 import (
    GetModelStatusRequest,
    GetModelStatusResponse,
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
from keras_lstm_dssm.serving.server.model_registry import Registry
from keras_lstm_dssm.serving.server.signature_call import Fault, invalid


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


_LOG = logging.getLogger(__name__)
_DAY = 86_400
_SERVICES = (
    OVERALL_HEALTH,
    "tensorflow.serving.PredictionService",
    "tensorflow.serving.ModelService",
)


class PredictionServer:
    """Serves a folder of models over gRPC while it is entered.

    New versions are loaded and warmed up while the old ones answer. The
    standard health service knows the server (""), its services and each
    model by name.

    Args:
        models_dir: The folder, `NAME/NUMBER/saved_model.pb` in it, and
            `models.config` where versions have policies or labels.
        port: The port; 0 takes a free one.
        host: The address to listen on; by default only this machine.
        versions: How many of the newest versions of each model to load.
        max_message_mb: Largest request and reply, in MiB.
        threads: Requests answered at the same time; others wait in line.
        poll_seconds: How often to look for new versions; 0 for never.
        grace_seconds: How long requests may run on after the end.

    Attributes:
        port: The port it listens on.
        address: Host and port, for clients on this machine.
        models: The `Registry` of what is loaded.

    Raises:
        InputError: The port is taken, there is no model in the folder, one
            does not load, or a time is negative, endless or none.

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
        max_message_mb: int = 2047,
        threads: int = 8,
        poll_seconds: float = 1.0,
        grace_seconds: float = 10.0,
    ) -> None:
        for name, seconds in (
            ("poll_seconds", poll_seconds),
            ("grace_seconds", grace_seconds),
        ):
            if not 0 <= seconds <= _DAY:
                raise InputError(f"{name} is {seconds}; expected 0 to {_DAY:,}")
        self.models = Registry(models_dir, versions)
        self._poll_seconds = poll_seconds
        self._grace_seconds = grace_seconds
        self._ending = threading.Event()
        self._polling = threading.Thread(target=self._poll, daemon=True)
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
        self._health = HealthServicer()
        add_HealthServicer_to_server(self._health, self._server)
        add_PredictionServiceServicer_to_server(
            Predictions(self.models), self._server
        )
        add_ModelServiceServicer_to_server(Models(self.models), self._server)
        self._tell_health()
        if ":" in host and not host.startswith("["):
            host = f"[{host}]"  # of IPv6
        try:
            self.port = self._server.add_insecure_port(f"{host}:{port}")
        except RuntimeError as error:
            raise InputError(
                f"cannot listen on {host}:{port}: the port is in use or the "
                "address is not this machine's; give another port, or 0 for "
                "a free one"
            ) from error
        self.address = f"{host}:{self.port}"

    def refresh(self) -> None:
        """Looks for new versions now; see `Registry.refresh`."""
        try:
            self.models.refresh()
        finally:
            self._tell_health()

    def _tell_health(self) -> None:
        kinds = HealthCheckResponse
        for service in _SERVICES:
            self._health.set(service, kinds.SERVING)
        for name in self.models.names():
            serves = self.models.versions(name)
            self._health.set(
                name, kinds.SERVING if serves else kinds.NOT_SERVING
            )

    def _poll(self) -> None:
        said = ""
        while not self._ending.wait(self._poll_seconds):
            try:
                self.refresh()
                said = ""
            except Exception as error:  # whatever it is, all serve on
                if str(error) != said:  # once, not at every poll
                    said = str(error)
                    foreseen = isinstance(error, InputError | OSError)
                    _LOG.warning(
                        "%s; serving as before", said, exc_info=not foreseen
                    )

    def __enter__(self) -> "PredictionServer":
        self._server.start()
        if self._poll_seconds:
            self._polling.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ending.set()  # nothing more is loaded
        self._health.enter_graceful_shutdown()
        self._server.stop(self._grace_seconds).wait()
        if self._poll_seconds:
            self._polling.join()
