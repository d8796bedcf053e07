"""Makes the requests of a client over gRPC, and reads the replies."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import grpc
import numpy as np
import tensorflow as tf
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
from tensorflow_serving.apis.predict_pb2 import PredictRequest, PredictResponse

from keras_lstm_dssm.export.signatures import Signature, signatures
from keras_lstm_dssm.serving.client.messages import (
    input_proto,
    model_spec,
    plain_signature,
)
from lstm_dssm_client.calls import Calls, Known, TextCalls
from lstm_dssm_client.results import Prediction, Version, VersionStatus

_CODES = {code.value[0]: code.name for code in grpc.StatusCode}


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
        request = PredictRequest(
            model_spec=model_spec(model, version, signature),
            inputs={
                name: input_proto(name, rows) for name, rows in arrays.items()
            },
            output_filter=outputs,
        )
        yield from self.check_fit(model, arrays, version, signature)
        reply: PredictResponse = yield Call("Predict", request)
        spec = reply.model_spec
        known = self._known.get((model, version))
        if known and known.version != spec.version.value:
            self._known.pop((model, version), None)
        return Prediction(
            spec.name,
            spec.version.value,
            spec.signature_name,
            {name: tf.make_ndarray(p) for name, p in reply.outputs.items()},
        )

    def signatures(
        self, model: str, version: Version
    ) -> Calls[dict[str, Signature]]:
        """Reads a model's inputs and outputs; see `Client.signatures`."""
        reply: GetModelMetadataResponse = yield Call(
            "GetModelMetadata",
            GetModelMetadataRequest(
                model_spec=model_spec(model, version),
                metadata_field=["signature_def"],
            ),
        )
        packed = SignatureDefMap()
        reply.metadata["signature_def"].Unpack(packed)
        by_name = signatures(packed.signature_def)
        self._known[model, version] = Known(
            reply.model_spec.version.value,
            {name: plain_signature(each) for name, each in by_name.items()},
        )
        return by_name

    def status(self, model: str) -> Calls[dict[int, VersionStatus]]:
        """Reads the states of a model's versions; see `Client.status`."""
        reply: GetModelStatusResponse = yield Call(
            "GetModelStatus",
            GetModelStatusRequest(model_spec=model_spec(model, None)),
        )
        return {
            status.version: VersionStatus(
                ModelVersionStatus.State.Name(status.state),
                _CODES[status.status.error_code],
                status.status.error_message,
            )
            for status in reply.model_version_status
        }
