"""TF Serving's REST API: paths, methods and status codes of HTTP.

This module follows `tensorflow_serving/model_servers/http_rest_api_handler.cc`
and `http_server.cc`. docs/tf_serving.md lists the differences.
"""

import json
import logging
import re
import time
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

import grpc
import orjson
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from tensorflow_serving.apis.get_model_metadata_pb2 import SignatureDefMap
from tensorflow_serving.apis.model_pb2 import ModelSpec

from keras_lstm_dssm.serving.limits import Bounds
from keras_lstm_dssm.serving.metrics import RequestMetrics
from keras_lstm_dssm.serving.model_registry import (
    ModelRegistry,
    model_metadata,
    model_status,
)
from keras_lstm_dssm.serving.protocols import (
    ROUTES,
    TOWERS,
    error_body,
    find_models,
    model_object,
    spec_of,
)
from keras_lstm_dssm.serving.rest_json import (
    inputs_from_json,
    is_row_format,
    json_from_outputs,
    parse_object,
    row_count,
    signature_name,
)
from keras_lstm_dssm.serving.servable import InvalidError, StatusError

_LOG = logging.getLogger(__name__)

HTTP_CODES = {
    "OK": 200, "CANCELLED": 499, "UNKNOWN": 500, "INVALID_ARGUMENT": 400,
    "DEADLINE_EXCEEDED": 504, "NOT_FOUND": 404, "ALREADY_EXISTS": 409,
    "PERMISSION_DENIED": 403, "RESOURCE_EXHAUSTED": 429,
    "FAILED_PRECONDITION": 400, "ABORTED": 409, "OUT_OF_RANGE": 400,
    "UNIMPLEMENTED": 501, "INTERNAL": 500, "UNAVAILABLE": 503,
    "DATA_LOSS": 500, "UNAUTHENTICATED": 401,
}  # fmt: skip
"""Name of a gRPC status code -> HTTP status code."""

_MODEL = (
    r"/v1/models/(?P<name>[^/:]+)"
    r"(?:/versions/(?P<version>\d+)|/labels/(?P<label>[^/:]+))?"
)
_FLAGS = re.IGNORECASE | re.ASCII
_POST = re.compile(_MODEL + r":(?P<verb>classify|regress|predict)", _FLAGS)
_GET = re.compile(_MODEL + r"(?P<metadata>/metadata)?", _FLAGS)


class Reply(NamedTuple):
    """A reply over HTTP."""

    status: int
    body: bytes  # JSON
    version: str = ""  # version of the model that was run, or ""


class RestApi:
    """Answers requests in TF Serving's REST API and other protocols (`ROUTES`).

    Threads may share the object.
    """

    def __init__(
        self,
        models: ModelRegistry,
        bounds: Bounds = Bounds(),
        metrics: RequestMetrics | None = None,
    ) -> None:
        self._models = models
        self._bounds = bounds
        self._metrics = metrics

    def known(self, method: str, path: str) -> tuple[str, str] | None:
        """Returns the names of a request's gRPC method and model.

        Returns None if the request is for no gRPC method of this server, or if
        the model is not served.
        """
        try:
            name, spec = _method_and_model(method, path)
        except StatusError:
            return None
        return (name, spec.name) if self._models.versions(spec.name) else None

    def answer(self, method: str, path: str, body: bytes = b"") -> Reply:
        """Answers a request; `path` is percent-encoded and has no URL query."""
        start = time.perf_counter()
        label = model = signature = version = ""
        code = "OK"
        route = ROUTES.get(path)
        if route and route.protocol not in self._bounds.protocols:
            route = None
        try:
            if route and route.method == method:
                request = parse_object(body) if method == "POST" else {}
                label, model = route.label, str(request.get("model", ""))
                value = route.answer(self._models, self._bounds, request)
                model, _, version = value.get("model", "").rpartition("@")
                reply = orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)
            else:
                label, spec = _method_and_model(method, path)
                model = spec.name
                if label == "Predict":
                    request = parse_object(body)
                    signature = signature_name(request)
                    version, reply = self._predict(spec, signature, request)
                elif label == "GetModelMetadata":
                    reply = _metadata_json(self._models, spec)
                else:
                    reply = json.dumps(self._status(spec)).encode()
        except Exception as error:  # no error may stop the server
            code, message = code_and_message(error, f"{method} {path}")
            reply = error_body(path, HTTP_CODES[code], message)
        if self._metrics is not None:
            self._metrics.record("http", label, model, signature, code, start)
        return Reply(HTTP_CODES[code], reply, version)

    def _status(self, spec: ModelSpec) -> dict[str, Any]:
        """Returns the states of a model's versions.

        If the protocol `openai` is allowed and the path has no version or
        label, the reply for a served model also has OpenAI's fields. The reply
        for the model `TOWERS` then has only OpenAI's fields.
        """
        models, name = self._models, spec.name
        if "openai" not in self._bounds.protocols or spec.WhichOneof(
            "version_choice"
        ):
            return _as_dict(model_status(models, spec))
        spec = spec_of(models, name)
        if spec.name == TOWERS:
            find_models(models, name)  # raises if the encoders are not served
            return model_object(models, name)
        status = _as_dict(model_status(models, spec))
        if models.versions(spec.name):
            status |= model_object(models, name)
        return status

    def _predict(
        self, spec: ModelSpec, signature: str, request: Mapping[str, object]
    ) -> tuple[str, bytes]:
        servable = self._models.find(spec)
        call = servable.signature(signature)
        if call is None:
            raise InvalidError(
                f'Serving signature name: "{signature or "serving_default"}" '
                "not found in signature def"
            )
        if not call.input_dtypes:
            raise InvalidError(
                "Failed to get input map for signature: "
                f"{signature or 'DEFAULT'}"
            )
        self._bounds.check_rows(row_count(request))
        inputs = inputs_from_json(request, call.input_dtypes)
        self._bounds.check_arrays(inputs)
        outputs = call.run_arrays(inputs)
        body = json_from_outputs(outputs, is_row_format(request))
        return str(servable.version), body


def code_and_message(error: Exception, request: str) -> tuple[str, str]:
    """Returns an error's gRPC code and message; logs unexpected errors."""
    if isinstance(error, StatusError):
        return error.code.name, error.details
    _LOG.error("%s", request, exc_info=error)
    return "INTERNAL", "internal error"


def _method_and_model(method: str, path: str) -> tuple[str, ModelSpec]:
    """Returns the gRPC method and the model that an HTTP request names."""
    if method == "POST" and (match := _POST.fullmatch(path)):
        spec = _model_spec(match)
        if match["verb"].lower() != "predict":
            raise StatusError(
                grpc.StatusCode.UNIMPLEMENTED,
                f"{match['verb']}: not offered by this local server",
            )
        return "Predict", spec
    if method == "GET" and (match := _GET.fullmatch(path)):
        name = "GetModelMetadata" if match["metadata"] else "GetModelStatus"
        return name, _model_spec(match)
    if method == "GET" and path.lower() == "/v1/models":
        raise InvalidError("Missing model name in request.")
    raise InvalidError(f"Malformed request: {method} {path}")


def _model_spec(match: re.Match[str]) -> ModelSpec:
    spec = ModelSpec(name=unquote(match["name"]))
    if match["version"]:
        digits = match["version"].lstrip("0") or "0"
        if len(digits) > 19 or int(digits) >= 2**63:
            raise InvalidError(
                f"Failed to convert version: {match['version']} to numeric."
            )
        spec.version.value = int(digits)
    if match["label"]:
        spec.version_label = unquote(match["label"])
    return spec


def _as_dict(message: Message) -> dict:
    return MessageToDict(
        message,
        always_print_fields_with_no_presence=True,
        preserving_proto_field_name=True,
    )


def _metadata_json(models: ModelRegistry, spec: ModelSpec) -> bytes:
    reply = model_metadata(models, spec)
    signatures = SignatureDefMap()
    reply.metadata["signature_def"].Unpack(signatures)
    return json.dumps(
        {
            "model_spec": _as_dict(reply.model_spec),
            "metadata": {"signature_def": _as_dict(signatures)},
        }
    ).encode()
