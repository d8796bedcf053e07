"""Both clients over gRPC, with the local server and one that fails.

Our messages are those of TF Serving: fields, bytes, and tensors.
"""

import asyncio
import pickle
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import grpc
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
from tensorflow_serving.apis import get_model_status_pb2 as status_pb2
from tensorflow_serving.apis.model_service_pb2_grpc import (
    ModelServiceServicer,
    add_ModelServiceServicer_to_server,
)
from tensorflow_serving.apis.status_pb2 import StatusProto

from keras_lstm_dssm.serving import PredictionServer
from lstm_dssm_client import (
    AsyncClient,
    Client,
    InputError,
    ServingError,
    grpc_client,
)
from tests.client.conftest import run, unit
from tests.serving.tiny_models import save_function

Code = grpc.StatusCode


def test_a_reply_above_grpcs_own_limit(client):
    # 9 bytes a hit, 512 texts, 1,000 columns: 4.5 MiB.
    texts, k = np.array([b"bolt"] * 512, object), np.full(512, 1000, np.int32)
    prediction = client.predict("retriever", {"text": texts, "k": k})
    assert prediction.outputs["scores"].shape == (512, 1000)


def test_texts_of_more_bytes_than_one_message_holds(client):
    texts = ["x" * 4096] * 512 + ["x" * (1 << 19)]
    with Client(client.target, timeout=20, max_message_mb=1) as small:
        got = small.encode(texts)
    want = unit([(3, len(text)) for text in texts])
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_a_refusal_names_code_and_model(client):
    with pytest.raises(ServingError) as caught:
        client.encode(["x"], model="absent")
    # It can be passed between processes.
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert isinstance(error, ServingError)
        assert (error.code, error.model) == (Code.NOT_FOUND, "absent")
        assert "Latest(absent)" in error.details
        assert str(error) == (
            f"{client.target}, model absent: NOT_FOUND: "
            "Servable not found for request: Latest(absent); check the model's "
            "name and version; the client's `status`, or `lstm-dssm-search "
            "--show=status`, lists the versions"
        )


def test_a_reply_above_the_clients_limit(client):
    with (
        Client(client.target, max_message_mb=1) as small,
        pytest.raises(ServingError, match="raise max_message_mb"),
    ):
        small.search(["bolt"], k=300_000)


def test_an_encoder_and_a_scorer_that_are_none(tmp_path):
    for name, output, inputs in (
        ("lengths", "embedding", ["text"]),
        ("sizes", "score", ["query", "document"]),
    ):
        save_function(
            tmp_path / name / "1",
            lambda *texts, output=output: {
                output: tf.strings.length(texts[-1])
            },
            **dict.fromkeys(inputs, "string"),
        )
    with (
        PredictionServer(tmp_path, port=0) as server,
        Client(server.address) as other,
    ):
        found = r"its output embedding is int32 \[2\], expected float32 "
        with pytest.raises(InputError, match=rf"s: {found}\[2, any\]; give a"):
            other.encode(["a", "b"], model="lengths")
        found = r"its output score is int32 \[2\], expected float32 "
        with pytest.raises(InputError, match=rf"s: {found}\[2\]; give a"):
            other.score("a", ["b", "c"], model="sizes")


class Failing(ModelServiceServicer):
    """Fails `failures` times with `code`, then answers."""

    def __init__(self) -> None:
        self.code, self.failures, self.calls = Code.OK, 0, 0

    def GetModelStatus(
        self,
        request: status_pb2.GetModelStatusRequest,
        context: grpc.ServicerContext,
    ) -> status_pb2.GetModelStatusResponse:
        self.calls += 1
        if self.calls <= self.failures:
            context.abort(self.code, "on purpose")
        reply = status_pb2.GetModelStatusResponse()
        reply.model_version_status.add(
            version=3, state=status_pb2.ModelVersionStatus.AVAILABLE
        )
        return reply


def serve(service: Failing, port: int = 0) -> tuple[grpc.Server, int]:
    server = grpc.server(
        ThreadPoolExecutor(2), options=[("grpc.so_reuseport", 0)]
    )
    add_ModelServiceServicer_to_server(service, server)
    port = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    return server, port


@pytest.fixture
def failing() -> Iterator[tuple[Failing, str]]:
    service = Failing()
    server, port = serve(service)
    yield service, f"127.0.0.1:{port}"
    server.stop(None).wait()


def test_a_server_that_is_not_available_is_tried_again(failing):
    service, target = failing
    service.code, service.failures = Code.UNAVAILABLE, 2
    with Client(target) as client:
        for ask in (lambda work: work(client), partial(run, client)):
            service.calls, start = 0, time.monotonic()
            assert list(ask(lambda c: c.status("x"))) == [3]
            assert service.calls == 3
            # 0.1 and 0.2 seconds, less a fifth.
            assert time.monotonic() - start > 0.24
        service.code, service.calls = Code.NOT_FOUND, 0
        with pytest.raises(ServingError, match="NOT_FOUND: on purpose"):
            run(client, lambda c: c.status("x"))
    assert service.calls == 1


@pytest.mark.parametrize(("code", "calls"), [
    (Code.UNAVAILABLE, 5),
    *((code, 1) for code in (
        Code.INVALID_ARGUMENT, Code.NOT_FOUND, Code.FAILED_PRECONDITION,
        Code.INTERNAL, Code.DEADLINE_EXCEEDED, Code.UNKNOWN,
        Code.RESOURCE_EXHAUSTED,
    )),
])  # fmt: skip
def test_five_calls_and_of_other_codes_one(failing, code, calls):
    service, target = failing
    service.code, service.failures = code, 9
    with Client(target) as client, pytest.raises(ServingError) as caught:
        client.status("x")
    assert service.calls == calls
    assert caught.value.code is code
    assert caught.value.details == "on purpose"


def test_the_deadline_holds_for_all_attempts(failing):
    service, target = failing
    service.code, service.failures = Code.UNAVAILABLE, 9
    start = time.monotonic()
    with Client(target, timeout=0.25) as client, pytest.raises(ServingError):
        client.status("x")
    assert time.monotonic() - start < 1
    assert 1 < service.calls < 5


def test_a_server_that_is_started_anew():
    first, second = Failing(), Failing()
    server, port = serve(first)
    with Client(f"127.0.0.1:{port}") as client:
        client.status("x")
        server.stop(None).wait()
        running = []
        later = threading.Timer(
            0.3, lambda: running.append(serve(second, port)[0])
        )
        later.start()
        assert list(client.status("x")) == [3]
        later.join()
        assert (first.calls, second.calls) == (1, 1)
        running[0].stop(None).wait()


def test_a_server_that_never_answers():
    async def ask(target: str) -> None:
        async with AsyncClient(target, timeout=0.2) as client:
            await client.status("query_encoder")

    with socket.create_server(("127.0.0.1", 0)) as silent:
        target = f"127.0.0.1:{silent.getsockname()[1]}"
        with (
            Client(target, timeout=0.2) as client,
            pytest.raises(ServingError, match="; raise timeout, or") as caught,
        ):
            client.status("query_encoder")
        assert caught.value.code is Code.DEADLINE_EXCEEDED
        with pytest.raises(ServingError, match="DEADLINE_EXCEEDED"):
            asyncio.run(ask(target))


def test_an_input_of_no_dtype(client):
    message = "input 'y': there is no tensor of dtype datetime64.s.; expected"
    with pytest.raises(InputError, match=message):
        client.predict("numbers", {"y": np.array([0], "datetime64[s]")})


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


@pytest.mark.parametrize("name", grpc_client.MESSAGES)
def test_fields(name):
    known = {kind(field) for field in theirs(name).DESCRIPTOR.fields}
    ours = grpc_client.message_class(name).DESCRIPTOR
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
    ours = grpc_client.message_class("PredictRequest")(
        model_spec=grpc_client.model_spec("retriever", 7, "filtered"),
        inputs={name: grpc_client.input_proto(name, np.asarray(values))
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
        spec = grpc_client.model_spec("m", version)
        spec = model_pb2.ModelSpec.FromString(spec.SerializeToString())
        assert (spec.name, spec.version_label) == ("m", label)
        assert spec.HasField("version") == (version == 0)


@pytest.mark.parametrize("dtype", [">f2", ">f4", ">c8", ">i8"])
def test_the_order_of_bytes_does_not_matter(dtype):
    values = np.array([1, -2], dtype)
    np.testing.assert_array_equal(
        grpc_client.read_tensor(grpc_client.input_proto("x", values)), values
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
    ours = grpc_client.message_class("TensorProto").FromString(
        proto.SerializeToString()
    )
    got, want = grpc_client.read_tensor(ours), tf.make_ndarray(proto)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    np.testing.assert_array_equal(got, want)


def test_a_tensor_without_a_counterpart():
    with pytest.raises(InputError, match="a tensor of DataType 21, which"):
        grpc_client.read_tensor(
            grpc_client.message_class("TensorProto")(dtype=21)
        )
