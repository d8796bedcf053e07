"""Replies are those of TF Serving, over a real connection."""

import grpc
import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis.classification_pb2 import ClassificationRequest
from tensorflow_serving.apis.inference_pb2 import MultiInferenceRequest
from tensorflow_serving.apis.model_management_pb2 import ReloadConfigRequest
from tensorflow_serving.apis.model_service_pb2_grpc import ModelServiceStub
from tensorflow_serving.apis.prediction_service_pb2_grpc import (
    PredictionServiceStub,
)
from tensorflow_serving.apis.regression_pb2 import RegressionRequest

from tests.serving.wire import predict_request


def test_a_request_without_rows(predictions):
    request = predict_request("query_encoder", text=np.array([], object))
    reply = predictions.Predict(request, timeout=20)
    assert tf.make_ndarray(reply.outputs["embedding"]).shape == (0, 2)


def test_values_come_as_typed_fields(predictions):
    request = predict_request("numbers", x=np.float32([2, 0, -1]))
    reply = predictions.Predict(request, timeout=20)
    spec, outputs = reply.model_spec, reply.outputs
    assert (spec.name, spec.version.value) == ("numbers", 1)
    assert spec.signature_name == "serving_default"
    for name, field in {
        "float32": "float_val", "float64": "double_val", "int32": "int_val",
        "int64": "int64_val", "int8": "int_val",
    }.items():  # fmt: skip
        assert list(getattr(outputs[name], field)) == [2, 0, -1]
    assert list(outputs["bool"].bool_val) == [True, False, False]
    assert list(outputs["string"].string_val) == [b"2", b"0", b"-1"]
    assert tf.make_ndarray(outputs["int8"]).tolist() == [2, 0, -1]
    assert tf.make_ndarray(outputs["bool"]).tolist() == [True, False, False]
    request.model_spec.signature_name = "double"
    reply = predictions.Predict(request, timeout=20)
    assert reply.model_spec.signature_name == "double"
    assert list(reply.outputs["y"].float_val) == [4, 0, -2]


def test_both_forms_of_input_are_read(predictions):
    packed = predict_request("numbers", "float32", x=np.float32([1, 2]))
    assert packed.inputs["x"].tensor_content
    typed = predict_request("numbers", "float32", x=np.float32([0]))
    typed.inputs["x"].ClearField("float_val")
    typed.inputs["x"].tensor_shape.dim[0].size = 2
    typed.inputs["x"].float_val.extend([1, 2])
    for request in (packed, typed):
        reply = predictions.Predict(request, timeout=20)
        assert list(reply.outputs["float32"].float_val) == [1, 2]


@pytest.mark.parametrize(("stub", "method", "request_of"), [
    (PredictionServiceStub, "Classify", ClassificationRequest),
    (PredictionServiceStub, "Regress", RegressionRequest),
    (PredictionServiceStub, "MultiInference", MultiInferenceRequest),
    (ModelServiceStub, "HandleReloadConfigRequest", ReloadConfigRequest),
])  # fmt: skip
def test_what_is_not_offered(channel, stub, method, request_of):
    with pytest.raises(grpc.RpcError, match="not offered") as caught:
        getattr(stub(channel), method)(request_of(), timeout=20)
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


METHODS = [
    "tensorflow.serving.PredictionService/Predict",
    "tensorflow.serving.PredictionService/GetModelMetadata",
    "tensorflow.serving.ModelService/GetModelStatus",
    "grpc.health.v1.Health/Check",
]


def send_no_message(channel: grpc.Channel, method: str) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        channel.unary_unary(f"/{method}")(b"\xff\xff\xff", timeout=20)
    assert caught.value.code() is grpc.StatusCode.INTERNAL
    assert caught.value.details() == "Exception deserializing request!"


def test_no_message(channel, server):
    for method in METHODS:
        send_no_message(channel, method)
    watch = channel.unary_stream("/grpc.health.v1.Health/Watch")
    with pytest.raises(grpc.RpcError) as caught:
        next(watch(b"\xff\xff\xff", timeout=20))
    assert caught.value.code() is grpc.StatusCode.INTERNAL
