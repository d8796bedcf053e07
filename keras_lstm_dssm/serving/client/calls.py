"""Makes the requests of a client and reads the replies, without transport.

Each method of `ModelCalls` is a generator: it yields a `Call`, is sent the
reply, and returns the result after its last reply. `Client` and `AsyncClient`
differ only in how they send the requests.
"""

from collections.abc import Generator, Iterable, Sequence
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
from tensorflow_serving.apis.predict_pb2 import PredictRequest, PredictResponse

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.index import Hit
from keras_lstm_dssm.export.keyvec import KEYS
from keras_lstm_dssm.export.signatures import Signature, signatures
from keras_lstm_dssm.serving.chunks import (
    chunked,
    chunked_pairs,
    hits_from_outputs,
    rows_for,
)
from keras_lstm_dssm.serving.client.messages import (
    EMBEDDING,
    IDS,
    KEY_PARTS,
    SCORE,
    SCORES,
    Output,
    Prediction,
    Version,
    VersionStatus,
    checked_output,
    describe_misfit,
    input_proto,
    model_spec,
)
from keras_lstm_dssm.serving.key_parts import (
    KeyParts,
    key_parts_from_outputs,
)
from keras_lstm_dssm.text import as_bytes
from keras_lstm_dssm.text.text_pairs import pairs_as_bytes, query_as_bytes

_ATTEMPTS = 3
_CODES = {code.value[0]: code.name for code in grpc.StatusCode}

Answer = TypeVar("Answer")


class Call(NamedTuple):
    """Holds one request.

    Attributes:
        method: The method's name in TF Serving's API, such as `Predict`.
        request: The message of that method.
    """

    method: str
    request: Any


Calls = Generator[Call, Any, Answer]


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
            model_spec=model_spec(model, version, signature),
            inputs={
                name: input_proto(name, rows) for name, rows in arrays.items()
            },
            output_filter=outputs,
        )
        key = signature or tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY
        known = self._known.get((model, version))
        # A new version may have other inputs: inputs that do not fit the
        # cached signature are compared with the current one.
        if known is None or describe_misfit(arrays, known.signatures.get(key)):
            current = yield from self.signatures(model, version)
            misfit = describe_misfit(arrays, current.get(key))
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
        return (
            yield from self._of_one_version(
                model, [{"text": rows} for rows in chunks], EMBEDDING, version
            )
        )

    def score(
        self, query: str | bytes, documents: Any, model: str, version: Version
    ) -> Calls[np.ndarray]:
        """Scores the documents of one query; see `Client.score`."""
        text, texts = query_as_bytes(query), as_bytes(documents)
        return (
            yield from self.score_pairs(
                [text] * len(texts), texts, model, version
            )
        )

    def score_pairs(
        self, queries: Any, documents: Any, model: str, version: Version
    ) -> Calls[np.ndarray]:
        """Scores pairs, chunk by chunk; see `Client.score_pairs`."""
        chunks = list(chunked_pairs(*pairs_as_bytes(queries, documents)))
        if not chunks:
            return np.zeros(0, np.float32)
        return (yield from self._of_one_version(model, chunks, SCORE, version))

    def _of_one_version(
        self,
        model: str,
        chunks: Sequence[dict[str, np.ndarray]],
        output: Output,
        version: Version,
    ) -> Calls[np.ndarray]:
        """Returns an output for all chunks, one or more, of one version.

        Vectors or scores of two versions cannot be compared: if another
        version begins to answer, all chunks are sent again.
        """
        for _ in range(_ATTEMPTS):
            parts: dict[int, list[np.ndarray]] = {}
            for inputs in chunks:
                prediction = yield from self.predict(
                    model, inputs, [output.name], version
                )
                rows = len(next(iter(inputs.values())))
                parts.setdefault(prediction.version, []).append(
                    checked_output(prediction, output, rows)
                )
                if len(parts) > 1:
                    break
            else:
                (parts_of_version,) = parts.values()
                return np.concatenate(parts_of_version)
        raise InputError(
            f"model {model}: versions {', '.join(map(str, sorted(parts)))} "
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
            ids = checked_output(prediction, IDS, len(rows))
            scores = checked_output(prediction, SCORES, len(rows))
            hits += hits_from_outputs(ids, scores, k)
        return hits

    def keys(
        self, texts: Iterable[str | bytes], n: int, model: str, version: Version
    ) -> Calls[list[KeyParts]]:
        """Finds key sentences and words by chunks; see `Client.keys`."""
        found: list[KeyParts] = []
        for rows in chunked(texts, rows_for(n, "n")):
            inputs = {"text": rows, "n": np.full(len(rows), n, np.int32)}
            prediction = yield from self.predict(
                model, inputs, [out.name for out in KEY_PARTS], version, KEYS
            )
            outputs = {
                output.name: checked_output(prediction, output, len(rows))
                for output in KEY_PARTS
            }
            found += key_parts_from_outputs(**outputs, n=n)
        return found

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
        self._known[model, version] = _KnownSignatures(
            reply.model_spec.version.value, by_name
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
