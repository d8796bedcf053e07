"""Requests as messages, without the clients of this package."""

from pathlib import Path

import tensorflow as tf
from tensorflow_serving.apis.get_model_status_pb2 import GetModelStatusRequest
from tensorflow_serving.apis.predict_pb2 import PredictRequest
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog


def predict_request(
    model: str, *wanted: str, **inputs: object
) -> PredictRequest:
    made = PredictRequest(output_filter=wanted)
    made.model_spec.name = model
    for name, value in inputs.items():
        made.inputs[name].CopyFrom(tf.make_tensor_proto(value))
    return made


def status_request(name: str, version: int | None) -> GetModelStatusRequest:
    request = GetModelStatusRequest()
    request.model_spec.name = name
    if version is not None:
        request.model_spec.version.value = version
    return request


def warmup_requests(version: Path) -> list[PredictRequest]:
    """Reads the warm-up requests of a version's folder."""
    path = version / "assets.extra" / "tf_serving_warmup_requests"
    return [
        PredictionLog.FromString(record.numpy()).predict_log.request
        for record in tf.data.TFRecordDataset(str(path))
    ]
