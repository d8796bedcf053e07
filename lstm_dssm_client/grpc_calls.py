"""Makes the requests of a client over gRPC, and reads the replies."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import grpc
import numpy as np

from lstm_dssm_client.calls import Calls, Known, TextCalls
from lstm_dssm_client.grpc_requests import input_proto, model_spec, signatures
from lstm_dssm_client.messages import message_class
from lstm_dssm_client.results import Prediction, Version, VersionStatus
from lstm_dssm_client.signatures import Signature
from lstm_dssm_client.tensors import read_tensor

_PredictRequest = message_class("PredictRequest")
_GetModelMetadataRequest = message_class("GetModelMetadataRequest")
_GetModelStatusRequest = message_class("GetModelStatusRequest")

_CODES = {code.value[0]: code.name for code in grpc.StatusCode}
_STATES = {
    10: "START",
    20: "LOADING",
    30: "AVAILABLE",
    40: "UNLOADING",
    50: "END",
}


class Call(NamedTuple):
    """Holds one request.

    Attributes:
        method: The method's name in TF Serving's API, such as `Predict`.
        request: The message of that method.
    """

    method: str
    request: Any


class ModelCalls(TextCalls):
    """Makes the calls of one client; each request is a `Call`."""

    def predict(
        self,
        model: str,
        inputs: Mapping[str, np.ndarray],
        outputs: Iterable[str] = (),
        version: Version = None,
        signature: str = "",
    ) -> Calls[Prediction]:
        """Runs one request; see `Client.predict`."""
        arrays = {name: np.asarray(values) for name, values in inputs.items()}
        request = _PredictRequest(
            model_spec=model_spec(model, version, signature),
            inputs={
                name: input_proto(name, rows) for name, rows in arrays.items()
            },
            output_filter=outputs,
        )
        yield from self.check_fit(model, arrays, version, signature)
        reply = yield Call("Predict", request)
        spec = reply.model_spec
        known = self._known.get((model, version))
        if known and known.version != spec.version.value:
            self._known.pop((model, version), None)
        return Prediction(
            spec.name,
            spec.version.value,
            spec.signature_name,
            {name: read_tensor(p) for name, p in reply.outputs.items()},
        )

    def signatures(
        self, model: str, version: Version
    ) -> Calls[dict[str, Signature]]:
        """Reads a model's inputs and outputs; see `Client.signatures`."""
        reply = yield Call(
            "GetModelMetadata",
            _GetModelMetadataRequest(
                model_spec=model_spec(model, version),
                metadata_field=["signature_def"],
            ),
        )
        by_name = signatures(reply.metadata["signature_def"].value)
        self._known[model, version] = Known(
            reply.model_spec.version.value, by_name
        )
        return by_name

    def status(self, model: str) -> Calls[dict[int, VersionStatus]]:
        """Reads the states of a model's versions; see `Client.status`."""
        reply = yield Call(
            "GetModelStatus",
            _GetModelStatusRequest(model_spec=model_spec(model, None)),
        )
        return {
            status.version: VersionStatus(
                _STATES.get(status.state, "UNKNOWN"),
                _CODES[status.status.error_code],
                status.status.error_message,
            )
            for status in reply.model_version_status
        }
