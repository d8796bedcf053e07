"""What clients ask and how they read the answers, apart from any transport.

Each function is a generator: it yields requests as `Call`s, is sent the
replies, and returns the result. `Client` and `AsyncClient` differ only in how
they run it.
"""

from collections.abc import Generator, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

import grpc
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis.get_model_metadata_pb2 import (
    GetModelMetadataRequest,
    SignatureDefMap,
)
from tensorflow_serving.apis.get_model_status_pb2 import (
    GetModelStatusRequest,
    ModelVersionStatus,
)
from tensorflow_serving.apis.model_pb2 import ModelSpec
from tensorflow_serving.apis.predict_pb2 import PredictRequest, PredictResponse

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.signatures import Signature, signatures
from keras_lstm_dssm.serving.tensors import to_proto
from keras_lstm_dssm.text import as_bytes

# At most in one request: texts, their bytes, hits in the reply.
_ROWS = 512
_BYTES = 1 << 19
_HITS = 1 << 18

_TRIES = 3
_CODES = {code.value[0]: code.name for code in grpc.StatusCode}

Result = TypeVar("Result")
Version = int | str | None
"""A version's number, its label (such as "canary"), or the newest."""


class Call(NamedTuple):
    """One request: the method of TF Serving's API, and its message."""

    method: str
    request: Any


Steps = Generator[Call, Any, Result]


class Hit(NamedTuple):
    """One document found."""

    id: str
    score: float


def as_hits(ids: np.ndarray, scores: np.ndarray) -> list[list[Hit]]:
    """Reads a retriever's outputs, `[batch, width]` each.

    Surplus columns, of a request batched with a larger k, have no id.
    """
    return [
        [
            Hit(key.decode(errors="replace"), score)
            for key, score in zip(*row, strict=True)
            if key
        ]
        for row in zip(ids, scores.tolist(), strict=True)
    ]


def rows_for(k: int) -> int:
    """Returns how many queries a request holds: many hits make it large.

    Raises:
        InputError: k is below 1, or above what int32 holds.
    """
    if not 1 <= k < 2**31:
        raise InputError(f"k is {k}; expected 1 or more, below 2**31")
    return min(_ROWS, max(1, _HITS // k))


class Prediction(NamedTuple):
    """What a model answered, and which version of it."""

    model: str
    version: int
    signature: str
    outputs: dict[str, np.ndarray]


class VersionStatus(NamedTuple):
    """Where a version stands: START, LOADING, AVAILABLE, UNLOADING or END.

    `code` is "OK", or with `message` tells why a version did not load.
    """

    state: str
    code: str
    message: str


def predict(
    model: str,
    inputs: dict[str, np.ndarray],
    outputs: Iterable[str] = (),
    version: Version = None,
    signature: str = "",
) -> Steps[Prediction]:
    """Runs one request; see `Client.predict`."""
    spec = _spec(model, version, signature)
    reply: PredictResponse = yield Call(
        "Predict",
        PredictRequest(
            model_spec=spec,
            inputs={name: _proto(name, rows) for name, rows in inputs.items()},
            output_filter=outputs,
        ),
    )
    return Prediction(
        reply.model_spec.name,
        reply.model_spec.version.value,
        reply.model_spec.signature_name,
        {name: tf.make_ndarray(proto) for name, proto in reply.outputs.items()},
    )


def encode(
    texts: Iterable[str | bytes], model: str, version: Version
) -> Steps[np.ndarray]:
    """Encodes texts, 512 a request; see `Client.encode`."""
    # No texts still make one request: d is known to the server.
    chunks = list(chunked(texts)) or [np.array([], object)]
    for _ in range(_TRIES):
        vectors: dict[int, list[np.ndarray]] = {}
        for rows in chunks:
            found = yield from predict(
                model, {"text": rows}, ["embedding"], version
            )
            vectors.setdefault(found.version, []).append(
                _output(found, "embedding", np.float32, len(rows))
            )
            # Vectors of two trainings have nothing to do with each other:
            # when another version answers, all texts are sent again.
            if len(vectors) > 1:
                break
        else:
            (answered,) = vectors.values()
            return np.concatenate(answered)
    raise InputError(
        f"model {model}: versions {', '.join(map(str, sorted(vectors)))} "
        f"answered in turn, {_TRIES} times; say which with version=NUMBER"
    )


def search(
    texts: Iterable[str | bytes], k: int, model: str, version: Version
) -> Steps[list[list[Hit]]]:
    """Finds documents, 512 queries a request; see `Client.search`."""
    hits: list[list[Hit]] = []
    for rows in chunked(texts, rows_for(k)):
        inputs = {"text": rows, "k": np.full(len(rows), k, np.int32)}
        found = yield from predict(model, inputs, ["ids", "scores"], version)
        ids = _output(found, "ids", np.object_, len(rows))
        scores = _output(found, "scores", np.float32, len(rows))
        hits += as_hits(ids, scores)
    return hits


def model_signatures(
    model: str, version: Version
) -> Steps[dict[str, Signature]]:
    """Asks what a model takes and gives; see `Client.signatures`."""
    reply = yield Call(
        "GetModelMetadata",
        GetModelMetadataRequest(
            model_spec=_spec(model, version), metadata_field=["signature_def"]
        ),
    )
    packed = SignatureDefMap()
    reply.metadata["signature_def"].Unpack(packed)
    return signatures(packed.signature_def)


def model_status(model: str) -> Steps[dict[int, VersionStatus]]:
    """Asks for the state of a model's versions; see `Client.status`."""
    reply = yield Call(
        "GetModelStatus", GetModelStatusRequest(model_spec=_spec(model, None))
    )
    return {
        status.version: VersionStatus(
            ModelVersionStatus.State.Name(status.state),
            _CODES[status.status.error_code],
            status.status.error_message,
        )
        for status in reply.model_version_status
    }


def chunked(
    texts: Iterable[str | bytes], most: int = _ROWS
) -> Iterator[np.ndarray]:
    """Cuts texts into requests: 512 texts or half a megabyte at most.

    A longer text is a request of its own.
    """
    chunk: list[bytes] = []
    size = 0
    for text in as_bytes(texts):
        if chunk and (len(chunk) == most or size + len(text) > _BYTES):
            yield np.array(chunk, object)
            chunk, size = [], 0
        chunk.append(text)
        size += len(text)
    if chunk:
        yield np.array(chunk, object)


def _proto(name: str, values: np.ndarray) -> Any:
    try:
        return to_proto(np.asarray(values))
    except (TypeError, ValueError) as error:
        raise InputError(
            f"input {name!r}: {error}; expected an array of numbers, or of "
            "bytes for strings"
        ) from error


def _output(
    found: Prediction, name: str, dtype: type[np.generic], rows: int
) -> np.ndarray:
    """Checks that an output is the matrix that was asked for."""
    got = found.outputs[name]
    if got.dtype != dtype or got.ndim != 2 or len(got) != rows:
        raise InputError(
            f"model {found.model}: its output {name} is {got.dtype} "
            f"{list(got.shape)}, expected {np.dtype(dtype)} [{rows}, any]; "
            "name a model that lstm-dssm-export wrote"
        )
    return got


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
