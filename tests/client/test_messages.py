"""Our messages are those of TF Serving: fields, bytes, and tensors."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import any_pb2, wrappers_pb2
from google.protobuf.descriptor import FieldDescriptor
from tensorflow.core.framework import tensor_pb2, tensor_shape_pb2
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_pb2,
    predict_pb2,
)
from tensorflow_serving.apis.status_pb2 import StatusProto

from lstm_dssm_client import messages
from lstm_dssm_client.errors import InputError

MODULES = (
    any_pb2, wrappers_pb2, tensor_pb2, tensor_shape_pb2, meta_graph_pb2,
    get_model_metadata_pb2, get_model_status_pb2, model_pb2, predict_pb2,
)  # fmt: skip
THEIRS = {
    "Dim": tensor_shape_pb2.TensorShapeProto.Dim,
    "StatusProto": StatusProto,
}


def theirs(name: str) -> Any:
    if name in THEIRS:
        return THEIRS[name]
    (found,) = (getattr(m, name) for m in MODULES if hasattr(m, name))
    return found


def kind(field: FieldDescriptor) -> tuple[Any, ...]:
    """Returns all that determines the bytes of a field of a message."""
    same = {FieldDescriptor.TYPE_ENUM: FieldDescriptor.TYPE_INT32}
    message = field.message_type and field.message_type.name
    type_ = same.get(field.type, field.type)
    form = field.is_repeated, field.is_packed
    return field.name, field.number, type_, *form, message


@pytest.mark.parametrize("name", messages.MESSAGES)
def test_fields(name):
    known = {kind(field) for field in theirs(name).DESCRIPTOR.fields}
    ours = messages.message_class(name).DESCRIPTOR
    assert {kind(field) for field in ours.fields} <= known
    assert ours.full_name != theirs(name).DESCRIPTOR.full_name


VALUES = {
    "text": np.array([b"angle", b"\xff\0", b""], object),
    "k": np.int32([[1, -2], [3, 4]]), "half": np.float16([0.5, -1]),
    "pair": np.complex64([1 + 2j]), "scalar": np.float64(0.1),
    "big": np.uint64([2**64 - 1]), "flag": np.array([True, False]),
}  # fmt: skip


# TensorFlow reads float16 in a way that NumPy 2.5 warns of.
@pytest.mark.filterwarnings("ignore:Setting the dtype:DeprecationWarning")
def test_bytes():
    """TF Serving's messages read our request, and ours read its reply."""
    ours = messages.message_class("PredictRequest")(
        model_spec=messages.model_spec("retriever", 7, "filtered"),
        inputs={name: messages.input_proto(name, np.asarray(values))
                for name, values in VALUES.items()},
        output_filter=["ids", "scores"],
    )  # fmt: skip
    packed = ours.SerializeToString(deterministic=True)
    request = predict_pb2.PredictRequest.FromString(packed)
    assert request.SerializeToString(deterministic=True) == packed
    assert request.model_spec.version.value == 7
    assert request.output_filter == ["ids", "scores"]
    for name, values in VALUES.items():
        read = tf.make_ndarray(request.inputs[name])
        assert (read.dtype, read.shape) == (values.dtype, np.shape(values))
        np.testing.assert_array_equal(read, values)
    for version, label in ((0, ""), (None, ""), ("canary", "canary")):
        spec = messages.model_spec("m", version)
        spec = model_pb2.ModelSpec.FromString(spec.SerializeToString())
        assert (spec.name, spec.version_label) == ("m", label)
        assert spec.HasField("version") == (version == 0)


@pytest.mark.parametrize("dtype", [">f2", ">f4", ">c8", ">i8"])
def test_the_order_of_bytes_does_not_matter(dtype):
    values = np.array([1, -2], dtype)
    np.testing.assert_array_equal(
        messages.read_tensor(messages.input_proto("x", values)), values
    )


@pytest.mark.parametrize("proto", [
    *(tf.make_tensor_proto(values) for values in VALUES.values()),
    tf.make_tensor_proto(VALUES["k"].astype("int64"), shape=[4]),
    tf.make_tensor_proto(tf.constant([1.5, -2], tf.bfloat16)),
    tf.make_tensor_proto(np.zeros([2, 0], np.float32)),
    # The last value stands for all others.
    tf.make_tensor_proto(3.0, shape=[2, 3]),
    tf.make_tensor_proto(b"x", shape=[2, 2]),
    tensor_pb2.TensorProto(
        dtype=1, tensor_shape=tf.TensorShape([2]).as_proto()
    ),
])  # fmt: skip
def test_tensors_that_are_read(proto):
    ours = messages.message_class("TensorProto").FromString(
        proto.SerializeToString()
    )
    got, want = messages.read_tensor(ours), tf.make_ndarray(proto)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    np.testing.assert_array_equal(got, want)


def test_a_tensor_without_a_counterpart():
    with pytest.raises(InputError, match="a tensor of DataType 21, which"):
        messages.read_tensor(messages.message_class("TensorProto")(dtype=21))
