"""Errors have the codes and messages of TF Serving."""

import grpc
import numpy as np
import pytest
from tensorflow.core.framework.tensor_pb2 import TensorProto
from tensorflow.core.framework.tensor_shape_pb2 import TensorShapeProto
from tensorflow_serving.apis.get_model_metadata_pb2 import (
    GetModelMetadataRequest,
)
from tensorflow_serving.apis.get_model_status_pb2 import (
    GetModelStatusRequest,
)
from tensorflow_serving.apis.model_service_pb2_grpc import ModelServiceStub
from tensorflow_serving.apis.predict_pb2 import PredictRequest
from tensorflow_serving.apis.prediction_service_pb2_grpc import (
    PredictionServiceStub,
)

from tests.serving.wire import predict_request, status_request

Code = grpc.StatusCode


def spec(**fields: object) -> PredictRequest:
    made = predict_request("query_encoder", text=["a"])
    for name, value in fields.items():
        if name == "version":
            made.model_spec.version.value = value
        else:
            setattr(made.model_spec, name, value)
    return made


def numbers(**fields: object) -> PredictRequest:
    """A request of one number, with fields of its tensor overwritten."""
    made = predict_request("numbers", x=np.float32([1]))
    made.inputs["x"].MergeFrom(TensorProto(float_val=[1]))
    made.inputs["x"].ClearField("tensor_content")
    for name, value in fields.items():
        if isinstance(value, TensorShapeProto):
            made.inputs["x"].tensor_shape.CopyFrom(value)
        else:
            setattr(made.inputs["x"], name, value)
    return made


def shape(*sizes: int) -> TensorShapeProto:
    return TensorShapeProto(dim=[{"size": size} for size in sizes])


def initialise(**inputs: object) -> PredictRequest:
    made = predict_request("query_encoder", **inputs)
    made.model_spec.signature_name = "__saved_model_init_op"
    return made


@pytest.mark.parametrize(
    ("faulty", "code", "message"),
    [
        (PredictRequest(), Code.INVALID_ARGUMENT, "Missing ModelSpec"),
        (
            spec(name=""),
            Code.INVALID_ARGUMENT,
            "ModelSpec has no name specified.",
        ),
        (
            spec(name="x"),
            Code.NOT_FOUND,
            "Servable not found for request: Latest(x)",
        ),
        (
            spec(version=7),
            Code.NOT_FOUND,
            "Servable not found for request: Specific(query_encoder, 7)",
        ),
        (
            spec(version_label="x"),
            Code.INVALID_ARGUMENT,
            "Unrecognized servable version label: x",
        ),
        (
            spec(signature_name="x"),
            Code.FAILED_PRECONDITION,
            'Serving signature key "x" not found.',
        ),
        (
            predict_request("query_encoder"),
            Code.INVALID_ARGUMENT,
            "input size does not match signature: 0!=1 len({}) != "
            "len({text}). Sent extra: {}. Missing but required: {text}.",
        ),
        (
            predict_request("query_encoder", text=["a"], y=["b"]),
            Code.INVALID_ARGUMENT,
            "input size does not match signature: 2!=1 len({text,y}) != "
            "len({text}). Sent extra: {y}. Missing but required: {}.",
        ),
        (
            predict_request("query_encoder", y=["b"]),
            Code.INVALID_ARGUMENT,
            "Signature input alias: text(feed name: serving_default_text:0) "
            "not found in request and no default value provided. Inputs "
            "expected to be in the request {y}, or default input alias set: ",
        ),
        (
            predict_request("numbers", x=["b"]),
            Code.INVALID_ARGUMENT,
            "Expects arg[0] to be float but string is provided",
        ),
        (
            predict_request("query_encoder", text=[1]),
            Code.INVALID_ARGUMENT,
            "Expects arg[0] to be string but int32 is provided",
        ),
        (
            predict_request("query_encoder", "z", text=[1]),
            Code.INVALID_ARGUMENT,
            "output tensor alias not found in signature: z Outputs expected "
            "to be in the set {embedding}.",
        ),
        (
            predict_request("query_encoder", text="no batch"),
            Code.INVALID_ARGUMENT,
            "input text must have shape (None,), got ()",
        ),
        (
            numbers(tensor_content=b"odd"),
            Code.INVALID_ARGUMENT,
            "tensor parsing error: x",
        ),
        (
            numbers(dtype=999),
            Code.INVALID_ARGUMENT,
            "tensor parsing error: x",
        ),
        (
            numbers(dtype=0),
            Code.INVALID_ARGUMENT,
            "tensor parsing error: x",
        ),
        (
            # 16 bytes that would become a tensor of 4 GiB.
            numbers(tensor_shape=shape(1, 1 << 30)),
            Code.INVALID_ARGUMENT,
            "input x must have shape (None,), got (1, 1073741824)",
        ),
        (
            numbers(tensor_shape=shape(1 << 30)),
            Code.INVALID_ARGUMENT,
            "Task size 1073741824 is larger than maximum input batch size 512",
        ),
        (
            predict_request("query_encoder", text=["a"] * 513),
            Code.INVALID_ARGUMENT,
            "Task size 513 is larger than maximum input batch size 512",
        ),
        (
            initialise(),
            Code.OUT_OF_RANGE,
            "Node 'NoOp' (type: 'NoOp', num of outputs: 0) does not have "
            "output 0",
        ),
        (
            initialise(text=["a"]),
            Code.INVALID_ARGUMENT,
            "input size does not match signature: 1!=0 len({text}) != "
            "len({}). Sent extra: {text}. Missing but required: {}.",
        ),
        (
            predict_request(
                "query_encoder", "embedding", "embedding", text=["a"]
            ),
            Code.INVALID_ARGUMENT,
            "duplicate output tensor alias: embedding",
        ),
    ],
)
def test_predict_errors(
    predictions: PredictionServiceStub,
    faulty: PredictRequest,
    code: grpc.StatusCode,
    message: str,
) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        predictions.Predict(faulty, timeout=20)
    assert caught.value.code() is code
    assert caught.value.details() == message


def test_long_messages_are_truncated(
    predictions: PredictionServiceStub,
) -> None:
    start = "output tensor alias not found in signature: "
    with pytest.raises(grpc.RpcError) as caught:
        predictions.Predict(
            predict_request("query_encoder", "\u4e0a" * 9000, text=["a"]),
            timeout=20,
        )
    # 1,024 bytes, less the two of a character that is cut.
    details = start + "\u4e0a" * ((1024 - len(start)) // 3) + "...TRUNCATED"
    assert caught.value.details() == details


@pytest.mark.parametrize(
    ("name", "fields", "code", "message"),
    [
        (None, ["signature_def"], Code.INVALID_ARGUMENT, "Missing ModelSpec"),
        ("numbers", [], Code.INVALID_ARGUMENT, "at least one metadata_field"),
        ("numbers", ["x"], Code.INVALID_ARGUMENT, "field x is not supported"),
        ("x", ["signature_def"], Code.NOT_FOUND, "Latest(x)"),
    ],
)
def test_metadata_errors(
    predictions: PredictionServiceStub,
    name: str | None,
    fields: list[str],
    code: grpc.StatusCode,
    message: str,
) -> None:
    faulty = GetModelMetadataRequest(metadata_field=fields)
    if name:
        faulty.model_spec.name = name
    with pytest.raises(grpc.RpcError, match="terminated") as caught:
        predictions.GetModelMetadata(faulty, timeout=20)
    assert caught.value.code() is code
    assert message in caught.value.details()


@pytest.mark.parametrize(
    ("faulty", "code", "message"),
    [
        (GetModelStatusRequest(), Code.INVALID_ARGUMENT, "Missing ModelSpec"),
        (
            status_request("x", None),
            Code.NOT_FOUND,
            "Could not find any versions of model x",
        ),
        (
            status_request("numbers", 7),
            Code.NOT_FOUND,
            "Could not find version 7 of model numbers",
        ),
    ],
)
def test_status_errors(
    model_service: ModelServiceStub,
    faulty: GetModelStatusRequest,
    code: grpc.StatusCode,
    message: str,
) -> None:
    with pytest.raises(grpc.RpcError, match="terminated") as caught:
        model_service.GetModelStatus(faulty, timeout=20)
    assert caught.value.code() is code
    assert caught.value.details() == message
