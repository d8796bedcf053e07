"""Requests written by hand, as a client of others might send them."""

from pathlib import Path

import tensorflow as tf
from tensorflow_serving.apis.get_model_status_pb2 import (
    GetModelStatusRequest,
)
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
    asked = GetModelStatusRequest()
    asked.model_spec.name = name
    if version is not None:
        asked.model_spec.version.value = version
    return asked


def warmup_requests(version: Path) -> list[PredictRequest]:
    """Reads what a server replays, at the place where it looks for it."""
    path = version / "assets.extra" / "tf_serving_warmup_requests"
    return [
        PredictionLog.FromString(record.numpy()).predict_log.request
        for record in tf.data.TFRecordDataset(str(path))
    ]
