"""One loaded version of one model, answering Predict."""

from pathlib import Path

import grpc
import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers the ops that encoders use)
from google.protobuf.message import DecodeError
from tensorflow_serving.apis.predict_pb2 import PredictRequest, PredictResponse
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.signatures import signature_defs
from keras_lstm_dssm.export.warmup import WARMUP_FILE
from keras_lstm_dssm.serving.server.signature_call import (
    CODES,
    Fault,
    SignatureCall,
    invalid,
)

_MAX_RECORDS = 1000


class Servable:
    """A SavedModel in memory; any number of threads may call `predict`.

    Args:
        name: The model's name.
        version: The version's number.
        folder: The version's folder.

    Raises:
        InputError: TensorFlow cannot load the folder.
    """

    def __init__(self, name: str, version: int, folder: Path) -> None:
        self.name = name
        self.version = version
        self.signature_defs = signature_defs(folder)
        try:
            # Kept, because the functions hold its variables only weakly.
            self._model = tf.saved_model.load(str(folder))
        except (OSError, ValueError, tf.errors.OpError) as error:
            raise InputError(
                f"{folder}: TensorFlow cannot load it: {error}"
            ) from error
        self._calls = {
            key: SignatureCall(function)
            for key, function in self._model.signatures.items()
        }

    def predict(self, request: PredictRequest) -> PredictResponse:
        """Runs one signature, `serving_default` when none is named.

        Args:
            request: Its inputs are the signature's, by name.

        Returns:
            The outputs asked for (all by default), and the model's name,
            version and signature.

        Raises:
            Fault: The request does not fit the signature, or the graph
                refuses the values.
        """
        key = request.model_spec.signature_name or "serving_default"
        if key not in self._calls:
            raise Fault(
                grpc.StatusCode.FAILED_PRECONDITION,
                f'Serving signature key "{key}" not found.',
            )
        reply = PredictResponse()
        reply.model_spec.name = self.name
        reply.model_spec.version.value = self.version
        reply.model_spec.signature_name = key
        self._calls[key](request, reply)
        return reply

    def warm_up(self, folder: Path) -> int:
        """Replays the requests that were exported with the model, if any.

        The first run of a graph costs a hundred times the second one; here
        it happens before the version is offered. A single request that
        fails makes TF Serving refuse the version, and this server too.

        Args:
            folder: The version's folder. The requests are a TFRecord file of
                `PredictionLog` in it; see `write_warmup`.

        Returns:
            How many requests were run.

        Raises:
            Fault: The file is damaged or too long, or a request fails.
        """
        path = folder / WARMUP_FILE
        if not path.exists():
            return 0
        done = 0
        try:
            for record in tf.data.TFRecordDataset(str(path)):
                if done == _MAX_RECORDS:
                    raise invalid(
                        "Number of warmup records exceeds the maximum "
                        f"({_MAX_RECORDS}) at {path}"
                    )
                self._replay(PredictionLog.FromString(record.numpy()))
                done += 1
        except DecodeError as error:
            raise invalid(f"Failed to parse warmup record from {path}") from (
                error
            )
        except tf.errors.OpError as error:
            raise Fault(
                CODES[error.error_code],
                f"{error.message}. Please verify your warmup data is in "
                "TFRecord format.",
            ) from error
        return done

    def _replay(self, log: PredictionLog) -> None:
        kind = log.WhichOneof("log_type")
        if kind == "predict_log":
            self.predict(log.predict_log.request)
        elif kind is not None:
            raise Fault(
                grpc.StatusCode.UNIMPLEMENTED,
                f"Unsupported log_type for warmup: {kind}",
            )
