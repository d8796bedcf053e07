"""A gRPC client for TF Serving and for the local PredictionService."""

from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, NamedTuple

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
from tensorflow_serving.apis.model_service_pb2_grpc import ModelServiceStub
from tensorflow_serving.apis.predict_pb2 import PredictRequest
from tensorflow_serving.apis.prediction_service_pb2_grpc import (
    PredictionServiceStub,
)

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.serving_error import ServingError
from keras_lstm_dssm.export.signatures import Signature, signatures
from keras_lstm_dssm.export.tensors import to_proto
from keras_lstm_dssm.text import as_bytes

_ROWS = 512


class Hit(NamedTuple):
    """One document found."""

    id: str
    score: float


class Client:
    """Encodes and searches text on a server.

    Args:
        target: The server's gRPC address, for example `127.0.0.1:8500`.
        timeout: Seconds that each request may take. Many texts are sent as
            several requests, of 512 texts each.
        max_message_mb: Largest reply accepted, in MiB (gRPC's own limit
            is 4, which is 10,000 vectors of 96 numbers).

    Every method raises `ServingError` when the server refuses, does not
    answer in time or is not there.

    Example:
        >>> with Client("127.0.0.1:8500") as client:
        ...     client.encode(["angle bracket"]).shape
        ...     client.search(["angle bracket"], k=2)
        (1, 96)
        [[Hit(id='steel angle', score=0.91), Hit(id='bracket', score=0.87)]]
    """

    def __init__(
        self, target: str, timeout: float = 5.0, max_message_mb: int = 64
    ) -> None:
        self.target = target
        self.timeout = timeout
        self._channel = grpc.insecure_channel(
            target,
            options=[
                ("grpc.max_receive_message_length", max_message_mb << 20),
                ("grpc.max_send_message_length", max_message_mb << 20),
                # gRPC would send even 127.0.0.1 through $http_proxy.
                ("grpc.enable_http_proxy", 0),
            ],
        )
        self._predictions = PredictionServiceStub(self._channel)
        self._models = ModelServiceStub(self._channel)

    def encode(
        self,
        texts: Iterable[str | bytes],
        model: str = "query_encoder",
        version: int | None = None,
    ) -> np.ndarray:
        """Returns the vectors of texts.

        Args:
            texts: n texts.
            model: The encoder's name on the server.
            version: The encoder's version, by default the newest.

        Returns:
            float32 [n, d], rows of unit length.
        """
        parts = [
            self._predict(model, {"text": rows}, ["embedding"], version)
            # No texts still make one request: d is known to the server.
            for rows in list(_chunks(texts)) or [np.array([], object)]
        ]
        return np.concatenate([part["embedding"] for part in parts])

    def search(
        self,
        texts: Iterable[str | bytes],
        k: int = 5,
        model: str = "retriever",
        version: int | None = None,
    ) -> list[list[Hit]]:
        """Returns the k best documents of each text, best first.

        Args:
            texts: n queries.
            k: How many documents; fewer come when there are fewer.
            model: The retriever's name on the server.
            version: The retriever's version, by default the newest.

        Returns:
            n lists of `Hit`.

        Raises:
            InputError: k is below 1.
        """
        if k < 1:
            raise InputError(f"k is {k}; expected 1 or more")
        found: list[list[Hit]] = []
        for rows in _chunks(texts):
            inputs = {"text": rows, "k": np.full(len(rows), k, np.int32)}
            reply = self._predict(model, inputs, ["ids", "scores"], version)
            found += [
                # Surplus columns, of a request batched with a larger k or
                # of a small corpus, have no id.
                [
                    Hit(key.decode(), score)
                    for key, score in zip(*row, strict=True)
                    if key
                ]
                for row in zip(
                    reply["ids"], reply["scores"].tolist(), strict=True
                )
            ]
        return found

    def signatures(
        self, model: str, version: int | None = None
    ) -> dict[str, Signature]:
        """Returns what a model takes and gives, by signature name."""
        request = GetModelMetadataRequest(
            model_spec=_spec(model, version), metadata_field=["signature_def"]
        )
        reply = self._call(self._predictions.GetModelMetadata, request)
        packed = SignatureDefMap()
        reply.metadata["signature_def"].Unpack(packed)
        return signatures(packed.signature_def)

    def status(self, model: str) -> dict[int, str]:
        """Returns the state of each version, such as `{2: "AVAILABLE"}`."""
        request = GetModelStatusRequest(model_spec=_spec(model, None))
        reply = self._call(self._models.GetModelStatus, request)
        state = ModelVersionStatus.State
        return {
            status.version: state.Name(status.state)
            for status in reply.model_version_status
        }

    def close(self) -> None:
        """Closes the connection; leaving the `with` block does it too."""
        self._channel.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _predict(
        self,
        model: str,
        inputs: dict[str, np.ndarray],
        outputs: list[str],
        version: int | None,
    ) -> dict[str, np.ndarray]:
        request = PredictRequest(
            model_spec=_spec(model, version),
            inputs={name: to_proto(rows) for name, rows in inputs.items()},
            output_filter=outputs,
        )
        reply = self._call(self._predictions.Predict, request)
        return {name: tf.make_ndarray(reply.outputs[name]) for name in outputs}

    def _call(self, method: Callable[..., Any], request: Any) -> Any:
        try:
            return method(request, timeout=self.timeout)
        except grpc.RpcError as error:
            raise ServingError(
                error, self.target, request.model_spec.name
            ) from error


def _chunks(texts: Iterable[str | bytes]) -> Iterator[np.ndarray]:
    encoded = np.array(as_bytes(texts), dtype=object)
    for start in range(0, len(encoded), _ROWS):
        yield encoded[start : start + _ROWS]


def _spec(model: str, version: int | None) -> ModelSpec:
    spec = ModelSpec(name=model)
    if version is not None:
        spec.version.value = version
    return spec
