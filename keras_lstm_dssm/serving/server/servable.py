"""Loads one version of one model, and runs its signatures."""

from pathlib import Path

import grpc
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow_serving.apis.predict_pb2 import PredictRequest, PredictResponse
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from keras_lstm_dssm.export.saved_module import SIGNATURE
from keras_lstm_dssm.export.warmup import WARMUP_FILE
from keras_lstm_dssm.serving.saved_graph import SavedGraph
from keras_lstm_dssm.serving.server.signature_call import (
    CODES,
    SignatureCall,
    StatusError,
    invalid_argument,
)

# TF Serving's limit.
_MAX_RECORDS = 1000


class Servable:
    """Holds a SavedModel in memory; threads may share it.

    Args:
        name: The model's name.
        version: The version's number.
        folder: The version's folder.

    Attributes:
        signature_defs: Name to definition of each signature in the SavedModel.

    Raises:
        InputError: TensorFlow cannot load the folder.
    """

    def __init__(self, name: str, version: int, folder: Path) -> None:
        self.name = name
        self.version = version
        graph = SavedGraph(folder)
        self.signature_defs = graph.definitions
        self._calls = {
            key: SignatureCall(definition, graph.function)
            for key, definition in graph.definitions.items()
        }

    def signature(self, name: str) -> SignatureCall | None:
        """Returns a signature by its name, "" for the default; or None."""
        return self._calls.get(name or SIGNATURE)

    def predict(self, request: PredictRequest) -> PredictResponse:
        """Runs one signature.

        Args:
            request: The signature's inputs by name; the signature's name,
                by default `serving_default`; the names of the outputs to
                return, by default all.

        Returns:
            The outputs, and the model's name, version and signature.

        Raises:
            StatusError: The request does not fit the signature, or the graph
                rejects the values.
        """
        key = request.model_spec.signature_name or SIGNATURE
        call = self.signature(key)
        if call is None:
            raise StatusError(
                grpc.StatusCode.FAILED_PRECONDITION,
                f'Serving signature key "{key}" not found.',
            )
        reply = PredictResponse()
        reply.model_spec.name = self.name
        reply.model_spec.version.value = self.version
        reply.model_spec.signature_name = key
        call(request, reply)
        return reply

    def warm_up(self, folder: Path) -> int:
        """Replays the requests that were exported with the model, if any.

        The first run of a graph takes a hundred times as long as the second,
        so it is done before the version is served. If a request fails, TF
        Serving rejects the version, and so does this server.

        Args:
            folder: The version's folder. The requests are a TFRecord file of
                `PredictionLog` in it; see `write_warmup`.

        Returns:
            The number of requests that were run.

        Raises:
            StatusError: The file is damaged or has more than 1,000 records,
                or a request fails.
        """
        path = folder / WARMUP_FILE
        if not path.exists():
            return 0
        count = 0
        try:
            for record in tf.data.TFRecordDataset(str(path)):
                if count == _MAX_RECORDS:
                    raise invalid_argument(
                        "Number of warmup records exceeds the maximum "
                        f"({_MAX_RECORDS}) at {path}"
                    )
                self._replay(PredictionLog.FromString(record.numpy()))
                count += 1
        except DecodeError as error:
            raise invalid_argument(
                f"Failed to parse warmup record from {path}"
            ) from error
        except tf.errors.OpError as error:
            raise StatusError(
                CODES[error.error_code],
                f"{error.message}. Please verify your warmup data is in "
                "TFRecord format.",
            ) from error
        return count

    def _replay(self, log: PredictionLog) -> None:
        kind = log.WhichOneof("log_type")
        if kind == "predict_log":
            self.predict(log.predict_log.request)
        elif kind is not None:
            raise StatusError(
                grpc.StatusCode.UNIMPLEMENTED,
                f"Unsupported log_type for warmup: {kind}",
            )
