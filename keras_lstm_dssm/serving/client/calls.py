"""Makes the requests of a client and reads the replies, without transport.

Each method of `ModelCalls` is a generator: it yields a `Call`, is sent the
reply, and returns the result after its last reply. `Client` and `AsyncClient`
differ only in how they send the requests.
"""

from collections.abc import Generator, Iterable
from typing import Any, NamedTuple, TypeVar

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
from tensorflow_serving.apis.model_pb2 import ModelSpec
from tensorflow_serving.apis.predict_pb2 import PredictRequest, PredictResponse

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.index import Hit
from keras_lstm_dssm.export.signatures import Signature, signatures
from keras_lstm_dssm.serving.chunks import chunked, hits_from_outputs, rows_for
from keras_lstm_dssm.serving.tensor_protos import to_proto

_ATTEMPTS = 3
_CODES = {code.value[0]: code.name for code in grpc.StatusCode}

Answer = TypeVar("Answer")
Version = int | str | None
"""A version's number, its label (such as "canary"), or None for the newest."""


class Call(NamedTuple):
    """Holds one request.

    Attributes:
        method: The method's name in TF Serving's API, such as `Predict`.
        request: The message of that method.
    """

    method: str
    request: Any


Calls = Generator[Call, Any, Answer]


class Prediction(NamedTuple):
    """The outputs of a model, and the version that computed them.

    Attributes:
        model: The model's name.
        version: The version's number.
        signature: The signature's name.
        outputs: Arrays by the outputs' names.
    """

    model: str
    version: int
    signature: str
    outputs: dict[str, np.ndarray]


class VersionStatus(NamedTuple):
    """The state of a version on a server.

    Attributes:
        state: START, LOADING, AVAILABLE, UNLOADING or END.
        code: "OK", or the error code of a version that did not load.
        message: Why the version did not load; empty otherwise.
    """

    state: str
    code: str
    message: str


class _KnownSignatures(NamedTuple):
    """The signatures of a model, and the version that has them."""

    version: int
    signatures: dict[str, Signature]


class ModelCalls:
    """Makes the calls of one client, and caches the signatures of models.

    A server that batches computes the requests of several clients together.
    A request without rows, or with a wrong dtype or rank, can then fail the
    others, or end the server. So inputs are compared with the model's
    signature before they are sent.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, Version], _KnownSignatures] = {}

    def predict(
        self,
        model: str,
        inputs: dict[str, np.ndarray],
        outputs: Iterable[str] = (),
        version: Version = None,
        signature: str = "",
    ) -> Calls[Prediction]:
        """Runs one request; see `Client.predict`."""
        arrays = {name: np.asarray(values) for name, values in inputs.items()}
        request = PredictRequest(
            model_spec=_spec(model, version, signature),
            inputs={name: _proto(name, rows) for name, rows in arrays.items()},
            output_filter=outputs,
        )
        key = signature or tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY
        known = self._known.get((model, version))
        # A new version may have other inputs: inputs that do not fit the
        # cached signature are compared with the current one.
        if known is None or _misfit(arrays, known.signatures.get(key)):
            current = yield from self.signatures(model, version)
            misfit = _misfit(arrays, current.get(key))
            if misfit:
                raise InputError(f"model {model}: {misfit}")
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

    def encode(
        self, texts: Iterable[str | bytes], model: str, version: Version
    ) -> Calls[np.ndarray]:
        """Encodes texts, chunk by chunk; see `Client.encode`."""
        chunks = list(chunked(texts))
        if not chunks:
            width = yield from self._width(model, version)
            return np.zeros([0, width], np.float32)
        for _ in range(_ATTEMPTS):
            vectors: dict[int, list[np.ndarray]] = {}
            for rows in chunks:
                prediction = yield from self.predict(
                    model, {"text": rows}, ["embedding"], version
                )
                vectors.setdefault(prediction.version, []).append(
                    _matrix(prediction, "embedding", np.float32, len(rows))
                )
                # Vectors of two versions cannot be compared: if another
                # version answers, all texts are sent again.
                if len(vectors) > 1:
                    break
            else:
                (parts,) = vectors.values()
                return np.concatenate(parts)
        raise InputError(
            f"model {model}: versions {', '.join(map(str, sorted(vectors)))} "
            f"answered in turn, in each of {_ATTEMPTS} attempts; choose one "
            "with version=NUMBER"
        )

    def search(
        self, texts: Iterable[str | bytes], k: int, model: str, version: Version
    ) -> Calls[list[list[Hit]]]:
        """Retrieves documents, chunk by chunk; see `Client.search`."""
        hits: list[list[Hit]] = []
        for rows in chunked(texts, rows_for(k)):
            inputs = {"text": rows, "k": np.full(len(rows), k, np.int32)}
            prediction = yield from self.predict(
                model, inputs, ["ids", "scores"], version
            )
            ids = _matrix(prediction, "ids", np.object_, len(rows))
            scores = _matrix(prediction, "scores", np.float32, len(rows))
            hits += hits_from_outputs(ids, scores, k)
        return hits

    def signatures(
        self, model: str, version: Version
    ) -> Calls[dict[str, Signature]]:
        """Reads a model's inputs and outputs; see `Client.signatures`."""
        reply: GetModelMetadataResponse = yield Call(
            "GetModelMetadata",
            GetModelMetadataRequest(
                model_spec=_spec(model, version),
                metadata_field=["signature_def"],
            ),
        )
        packed = SignatureDefMap()
        reply.metadata["signature_def"].Unpack(packed)
        by_name = signatures(packed.signature_def)
        self._known[model, version] = _KnownSignatures(
            reply.model_spec.version.value, by_name
        )
        return by_name

    def status(self, model: str) -> Calls[dict[int, VersionStatus]]:
        """Reads the states of a model's versions; see `Client.status`."""
        reply: GetModelStatusResponse = yield Call(
            "GetModelStatus",
            GetModelStatusRequest(model_spec=_spec(model, None)),
        )
        return {
            status.version: VersionStatus(
                ModelVersionStatus.State.Name(status.state),
                _CODES[status.status.error_code],
                status.status.error_message,
            )
            for status in reply.model_version_status
        }

    def _width(self, model: str, version: Version) -> Calls[int]:
        """Returns the width of an encoder's vectors, from its signature."""
        by_name = yield from self.signatures(model, version)
        key = tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY
        outputs = by_name[key].outputs if key in by_name else {}
        shape = outputs["embedding"].shape if "embedding" in outputs else None
        if shape is None or shape.rank != 2 or shape[1] is None:
            raise InputError(
                f"model {model}: its signature {key} has no output embedding "
                "[batch, width]; name an encoder that lstm-dssm-export wrote"
            )
        return shape[1]


def _proto(name: str, values: np.ndarray) -> Any:
    if values.ndim and not len(values):
        raise InputError(f"input {name!r} has no rows; expected one or more")
    try:
        return to_proto(values)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"input {name!r}: {error}; expected an array of numbers, or of "
            "bytes for strings"
        ) from error


def _misfit(arrays: dict[str, np.ndarray], signature: Signature | None) -> str:
    """Describes an input whose dtype or shape does not fit the signature.

    Returns "" if all fit. The server checks the names before it batches.
    """
    specs = signature.inputs if signature else {}
    for name in arrays.keys() & specs.keys():
        values, spec = arrays[name], specs[name]
        dtype = tf.as_dtype(values.dtype)
        if dtype != spec.dtype or not spec.shape.is_compatible_with(
            values.shape
        ):
            return (
                f"input {name!r} is {dtype.name} {values.shape}, expected "
                f"{spec.dtype.name} {spec.shape}"
            )
    return ""


def _matrix(
    prediction: Prediction, name: str, dtype: type[np.generic], rows: int
) -> np.ndarray:
    """Returns an output after checking its dtype and number of rows."""
    values = prediction.outputs[name]
    if values.dtype != dtype or values.ndim != 2 or len(values) != rows:
        raise InputError(
            f"model {prediction.model}: its output {name} is {values.dtype} "
            f"{list(values.shape)}, expected {np.dtype(dtype)} [{rows}, any]; "
            "name a model that lstm-dssm-export wrote"
        )
    return values


def _spec(model: str, version: Version, signature: str = "") -> ModelSpec:
    spec = ModelSpec(name=model, signature_name=signature)
    if isinstance(version, str):
        spec.version_label = version
    elif version is not None:
        if not 0 <= version < 2**63:
            raise InputError(
                f"version is {version}; expected a number of 63 bits, or a "
                "label"
            )
        spec.version.value = version
    return spec
