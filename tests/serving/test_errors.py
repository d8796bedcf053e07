"""Errors have the codes and messages of TF Serving."""

import grpc
import pytest
from tensorflow.core.framework.resource_handle_pb2 import ResourceHandleProto
from tensorflow.core.framework.tensor_pb2 import TensorProto
from tensorflow.core.framework.tensor_shape_pb2 import TensorShapeProto
from tensorflow.core.framework.types_pb2 import DataType
from tensorflow_serving.apis.get_model_metadata_pb2 import (
    GetModelMetadataRequest,
)
from tensorflow_serving.apis.get_model_status_pb2 import GetModelStatusRequest
from tensorflow_serving.apis.model_pb2 import ModelSpec
from tensorflow_serving.apis.predict_pb2 import PredictRequest

from tests.serving.wire import predict_request, status_request

Code = grpc.StatusCode
INVALID, NOT_FOUND = Code.INVALID_ARGUMENT, Code.NOT_FOUND


def encode(*wanted: str, **inputs: object) -> PredictRequest:
    return predict_request("query_encoder", *wanted, **inputs)


def spec(**fields: object) -> PredictRequest:
    made = encode(text=["a"])
    made.model_spec.CopyFrom(ModelSpec(**{"name": "query_encoder"} | fields))
    return made


def numbers(**fields: object) -> PredictRequest:
    """A request of one number, with fields of its tensor overwritten."""
    tensor = {"dtype": 1, "tensor_shape": shape(1), "float_val": [1]} | fields
    made = predict_request("numbers")
    made.inputs["x"].CopyFrom(TensorProto(**tensor))
    return made


def shape(*sizes: int) -> TensorShapeProto:
    return TensorShapeProto(dim=[{"size": size} for size in sizes])


def unranked() -> PredictRequest:
    made = encode(text=["a"])
    made.inputs["text"].tensor_shape.CopyFrom(
        TensorShapeProto(unknown_rank=True)
    )
    return made


def initialise(**inputs: object) -> PredictRequest:
    made = encode(**inputs)
    made.model_spec.signature_name = "__saved_model_init_op"
    return made


def metadata(name: str | None, *fields: str) -> GetModelMetadataRequest:
    made = GetModelMetadataRequest(metadata_field=fields)
    if name:
        made.model_spec.name = name
    return made


@pytest.mark.parametrize(("faulty", "code", "message"), [
    (PredictRequest(), INVALID, "Missing ModelSpec"),
    (spec(name=""), INVALID, "ModelSpec has no name specified."),
    (spec(name="x"), NOT_FOUND, "Servable not found for request: Latest(x)"),
    (spec(version={"value": 7}), NOT_FOUND,
     "Servable not found for request: Specific(query_encoder, 7)"),
    (spec(version_label="x"), INVALID,
     "Unrecognized servable version label: x"),
    (spec(signature_name="x"), Code.FAILED_PRECONDITION,
     'Serving signature key "x" not found.'),
    (encode(), INVALID,
     "input size does not match signature: 0!=1 len({}) != "
     "len({text}). Sent extra: {}. Missing but required: {text}."),
    (encode(text=["a"], y=["b"]), INVALID,
     "input size does not match signature: 2!=1 len({text,y}) != "
     "len({text}). Sent extra: {y}. Missing but required: {}."),
    (encode(y=["b"]), INVALID,
     "Signature input alias: text(feed name: serving_default_text:0) "
     "not found in request and no default value provided. Inputs "
     "expected to be in the request {y}, or default input alias set: "),
    (predict_request("numbers", x=["b"]), INVALID,
     "Expects arg[0] to be float but string is provided"),
    (encode(text=[1]), INVALID,
     "Expects arg[0] to be string but int32 is provided"),
    (encode("z", text=[1]), INVALID,
     "output tensor alias not found in signature: z Outputs expected "
     "to be in the set {embedding}."),
    (encode(text="no batch"), INVALID,
     "input text must have shape (None,), got ()"),
    # A scalar, of which some kernels for strings die.
    (unranked(), INVALID, "input text must have shape (None,), got ()"),
    (numbers(tensor_content=b"odd", float_val=[]), INVALID,
     "tensor parsing error: x"),
    (numbers(dtype=999), INVALID, "tensor parsing error: x"),
    (numbers(dtype=0), INVALID, "tensor parsing error: x"),
    (numbers(dtype=DataType.DT_RESOURCE, float_val=[],
     resource_handle_val=[ResourceHandleProto()]), INVALID,
     "Expects arg[0] to be float but resource is provided"),
    # 16 bytes that would become a tensor of 4 GiB.
    (numbers(tensor_shape=shape(1, 1 << 30)), INVALID,
     "input x is a tensor of 1,073,741,824 elements, more than fit into "
     "the 16 MiB of a request"),
    # Within the bound the shape is what is wrong.
    (numbers(tensor_shape=shape(1, 1 << 20)), INVALID,
     "input x must have shape (None,), got (1, 1048576)"),
    (numbers(tensor_shape=shape(1 << 30)), INVALID,
     "Task size 1073741824 is larger than maximum input batch size 512"),
    (encode(text=["a"] * 513), INVALID,
     "Task size 513 is larger than maximum input batch size 512"),
    (initialise(), Code.OUT_OF_RANGE,
     "Node 'NoOp' (type: 'NoOp', num of outputs: 0) does not have "
     "output 0"),
    (initialise(text=["a"]), INVALID,
     "input size does not match signature: 1!=0 len({text}) != "
     "len({}). Sent extra: {text}. Missing but required: {}."),
    (encode("embedding", "embedding", text=["a"]), INVALID,
     "duplicate output tensor alias: embedding"),
    # Of 1,024 bytes, less the two of a character that is cut.
    (encode("\u4e0a" * 9000, text=["a"]), INVALID,
     "output tensor alias not found in signature: "
     + "\u4e0a" * ((1024 - 44) // 3) + "...TRUNCATED"),
    (metadata(None, "signature_def"), INVALID, "Missing ModelSpec"),
    (metadata("numbers"), INVALID,
     "GetModelMetadataRequest must specify at least one metadata_field"),
    (metadata("numbers", "x"), INVALID, "Metadata field x is not supported"),
    (metadata("x", "signature_def"), NOT_FOUND,
     "Servable not found for request: Latest(x)"),
    (GetModelStatusRequest(), INVALID, "Missing ModelSpec"),
    (status_request("x", None), NOT_FOUND,
     "Could not find any versions of model x"),
    (status_request("numbers", 7), NOT_FOUND,
     "Could not find version 7 of model numbers"),
], ids=lambda v: v[:40] if isinstance(v, str) else None)  # fmt: skip
def test_errors(predictions, model_service, faulty, code, message):
    call = {
        PredictRequest: predictions.Predict,
        GetModelMetadataRequest: predictions.GetModelMetadata,
        GetModelStatusRequest: model_service.GetModelStatus,
    }[type(faulty)]
    with pytest.raises(grpc.RpcError) as caught:
        call(faulty, timeout=20)
    assert caught.value.code() is code
    assert caught.value.details() == message
