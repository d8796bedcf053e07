"""What clients send, and how they put the replies together."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis.get_model_metadata_pb2 import (
    GetModelMetadataResponse,
    SignatureDefMap,
)
from tensorflow_serving.apis.predict_pb2 import PredictResponse

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.serving.servable import to_proto
from lstm_dssm_client.grpc_client import Calls, ModelCalls


def metadata(version: int, **dtypes: tf.DType) -> GetModelMetadataResponse:
    """The metadata of an encoder, with inputs `[batch]` of these dtypes."""
    packed = SignatureDefMap()
    definition = packed.signature_def["serving_default"]
    definition.method_name = "tensorflow/serving/predict"
    for name, dtype in (dtypes or {"text": tf.string}).items():
        definition.inputs[name].dtype = dtype.as_datatype_enum
        definition.inputs[name].tensor_shape.dim.add(size=-1)
    reply = GetModelMetadataResponse()
    reply.model_spec.version.value = version
    reply.metadata["signature_def"].Pack(packed)
    return reply


def answered(calls: Calls[Any], *versions: int) -> Any:
    """Runs `encode` or `score_pairs` on a server of these versions in turn.

    A text's vector is [version, length], a document's score the version.
    """
    call = next(calls)
    for version in versions:
        if call.method == "GetModelMetadata":
            call = calls.send(metadata(version))
        reply = PredictResponse()
        reply.model_spec.version.value = version
        texts = call.request.inputs["text"].string_val
        vectors = np.float32([[version, len(text)] for text in texts])
        to_proto(vectors, reply.outputs["embedding"])
        documents = call.request.inputs["document"].string_val
        scores = np.full(len(documents), version, np.float32)
        to_proto(scores, reply.outputs["score"])
        try:
            call = calls.send(reply)
        except StopIteration as end:
            assert version == versions[-1]
            return end.value
    raise AssertionError("another request follows")


TEXTS = ["a" * size for size in range(1, 1026)]  # three requests


@pytest.mark.parametrize(
    "versions", [(1, 1, 1), (1, 2, 2, 2, 2), (1, 1, 2, 2, 3, 3, 3, 3)]
)
def test_all_vectors_are_of_one_version(versions: tuple[int, ...]) -> None:
    vectors = answered(ModelCalls().encode(TEXTS, "m", None), *versions)
    wanted = [[versions[-1], size] for size in range(1, 1026)]
    assert vectors.tolist() == wanted
    scores = answered(
        ModelCalls().score_pairs(TEXTS, TEXTS, "m", None), *versions
    )
    assert scores.tolist() == [versions[-1]] * 1025


def test_versions_that_answer_in_turn() -> None:
    with pytest.raises(
        InputError, match="versions 1, 2 answered in turn, in each of 3 att"
    ):
        answered(ModelCalls().encode(TEXTS, "m", None), 1, 2, 1, 2, 1, 2)


def sent(calls: Calls[Any], *replies: Any) -> list[str]:
    """Returns the methods that are called until the last of the replies."""
    methods = [next(calls).method]
    for reply in replies:
        try:
            methods.append(calls.send(reply).method)
        except StopIteration:
            break
    return methods


def reply_of(version: int) -> PredictResponse:
    reply = PredictResponse()
    reply.model_spec.version.value = version
    return reply


def test_a_signature_is_read_once_for_each_version() -> None:
    calls, text = ModelCalls(), {"text": np.array([b"a"], object)}
    both, alone = ["GetModelMetadata", "Predict"], ["Predict"]
    assert sent(calls.predict("m", text), metadata(1), reply_of(1)) == both
    assert sent(calls.predict("m", text), reply_of(1)) == alone
    assert sent(calls.predict("m", text), reply_of(2)) == alone
    assert sent(calls.predict("m", text), metadata(2), reply_of(2)) == both
    # By number and in another model it is another signature.
    for model, version in (("m", 1), ("n", None)):
        request = calls.predict(model, text, (), version)
        assert sent(request, metadata(1), reply_of(1)) == both


def test_what_does_not_fit_is_compared_with_the_signature_of_now() -> None:
    calls, x = ModelCalls(), np.float32([1])
    integers, floats = metadata(1, x=tf.int32), metadata(2, x=tf.float32)
    message = r"model m: input 'x' is float32 \(1,\), expected int32 \(None,\)"
    for _ in range(2):
        with pytest.raises(InputError, match=message):
            sent(calls.predict("m", {"x": x}), integers)
    methods = sent(calls.predict("m", {"x": x}), floats, reply_of(2))
    assert methods == ["GetModelMetadata", "Predict"]
    assert sent(calls.predict("m", {"x": x}), reply_of(2)) == ["Predict"]


@pytest.mark.parametrize(
    ("calls_of", "message"),
    [
        (lambda c: c.search(["x"], 0, "m", None), "k is 0; expected 1"),
        (lambda c: c.search(["x"], 2**31, "m", None), r"below 2\*\*31"),
        (lambda c: c.predict("m", {}, version=-1), "version is -1; expected"),
        (lambda c: c.predict("m", {}, version=2**63), "a number of 63 bits"),
        (
            lambda c: c.predict("m", {"x": np.zeros([0, 3])}),
            "input 'x' has no rows; expected one or more",
        ),
        (
            lambda c: c.predict("m", {"x": [object()]}),
            "input 'x': .*; expected an array of numbers",
        ),
    ],
)
def test_what_cannot_be_sent(
    calls_of: Callable[[ModelCalls], Calls[Any]], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        next(calls_of(ModelCalls()))
