"""Bounds on requests: each with its code, over gRPC and over HTTP."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework.tensor_pb2 import TensorProto
from tensorflow_serving.apis.predict_pb2 import PredictRequest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.serving import (
    Client,
    HttpClient,
    PredictionServer,
    ServingError,
)
from keras_lstm_dssm.serving.limits import Bounds
from keras_lstm_dssm.serving.servable import Servable, StatusError
from tests.serving.waiting import wait_until

BOUNDS = Bounds(max_rows=3, max_text_kb=1, max_k=5, max_message_mb=1)


def proto(values: object, packed: bool = False, **shape: int) -> TensorProto:
    """Returns a message, with its values in the one or the other field."""
    made = tf.make_tensor_proto(values)
    if packed:
        array = tf.make_ndarray(made)
        content = tf.io.serialize_tensor(tf.constant(array)).numpy()
        made = TensorProto.FromString(content)
        assert made.tensor_content or not array.size
    for index, size in enumerate(shape.values()):
        made.tensor_shape.dim[index].size = size
    return made


def request(**inputs: TensorProto) -> PredictRequest:
    made = PredictRequest()
    for name, value in inputs.items():
        made.inputs[name].CopyFrom(value)
    return made


@pytest.mark.parametrize(
    "inputs",
    [
        {"text": proto([b"x" * 1024] * 3)},
        {"text": proto([[b"x" * 1024] * 999] * 3)},
        {"text": proto([], a=0)},
        {"x": proto(np.float32(7))},
        {"x": proto(np.zeros([3, 1 << 16], np.float32), packed=True)},
        {"text": proto([b"x"], a=-1)},  # parsing reports it
        {},
    ],
)
def test_within_the_bounds(inputs):
    BOUNDS.check(request(**inputs))


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"text": proto([b"x"] * 4)}, "Task size 4 is larger than maximum inp"),
        ({"text": proto([b"x"], a=4)}, "Task size 4 is larger than maximum"),
        ({"x": proto(np.float32([[1]]), a=3, b=1 << 20)},
         "input x is a tensor of 3,145,728 elements, more than fit into th"),
        ({"x": proto([[b"x" * 1000]], a=3, b=1000)},
         "input x is a tensor of 3,000 elements, more than fit"),
        ({"y": proto([[b""]], a=3, b=1 << 40)}, "input y is a tensor of 3,298"),
    ],
)  # fmt: skip
def test_above_the_bounds(inputs, message):
    with pytest.raises(StatusError, match=message) as caught:
        BOUNDS.check(request(**inputs))
    assert caught.value.code is grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize(
    "inputs",
    [
        {"text": [b"x" * 1024] * 3, "k": np.int32([1, 5, 0])},
        {"k": np.int32([-9]), "other": np.int32([9])},
        {"text": [], "k": np.int32(5)},
    ],
)
def test_arrays_within_the_bounds(inputs):
    BOUNDS.check_arrays(as_arrays(inputs))


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"text": [b"x"] * 4}, "Task size 4 is larger than maximum"),
        ({"text": [b"", b"x" * 1025]},
         "input text has a text of 1,025 bytes, more than the 1,024 that"),
        ({"k": np.int32([1, 6])}, "k is 6, more than the 5 that this"),
        ({"n": np.int64([6])}, "n is 6, more than the 5"),
    ],
)  # fmt: skip
def test_arrays_above_the_bounds(inputs, message):
    with pytest.raises(StatusError, match=message) as caught:
        BOUNDS.check_arrays(as_arrays(inputs))
    assert caught.value.code is grpc.StatusCode.INVALID_ARGUMENT


def as_arrays(inputs: dict[str, Any]) -> dict[str, np.ndarray]:
    return {
        name: np.array(v, object) if isinstance(v, list) else np.asarray(v)
        for name, v in inputs.items()
    }


@pytest.mark.parametrize(
    ("content", "message"),
    [
        # The lengths of texts as varints, and then the texts.
        (b"\x81\x08" + b"x" * 1025, "input text has a text of 1,025 bytes"),
        (b"\0" * (1 << 20), "tensor parsing error: text"),
        (b"\xff" * 20, "tensor parsing error: text"),
    ],
)
def test_texts_in_tensor_content(tiny_models, content, message):
    servable = Servable("any", 1, tiny_models / "query_encoder/1")
    made = request(text=proto([b""]))
    made.inputs["text"].ClearField("string_val")
    made.inputs["text"].tensor_content = content
    BOUNDS.check(made)
    with pytest.raises(StatusError, match=message):
        servable.predict(made, BOUNDS.check_arrays)
    made.inputs["text"].tensor_content = b"\x80\x08" + b"x" * 1024
    assert servable.predict(made, BOUNDS.check_arrays).outputs


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        *[(name, 0, "2,147,483,647") for name in ("max_k", "max_rows")],
        *[("max_message_mb", value, "2,047") for value in (0, 2048)],
        *[(name, 0, "2") for name in ("max_text_kb", "max_requests")],
        ("max_k", 1 << 31, "2"),
    ],
)
def test_numbers_out_of_range(name, value, expected):
    message = f"{name} is {value}: expected a whole number from 1 to {expected}"
    with pytest.raises(InputError, match=message):
        Bounds(**{name: value})


@pytest.fixture
def clients(tiny_models: Path, tmp_path) -> Iterator[tuple[Client, HttpClient]]:
    """Clients of a server of narrow bounds, two requests at a time."""
    (tmp_path / "retriever").symlink_to(tiny_models / "retriever")
    with (
        PredictionServer(
            tmp_path,
            port=0,
            http_port=0,
            bounds=replace(BOUNDS, max_requests=2),
        ) as server,
        Client(server.address, timeout=20) as client,
        HttpClient(server.http_address or "", timeout=20) as http_client,
    ):
        yield client, http_client


def test_both_protocols(clients):
    code = grpc.StatusCode
    by_grpc = (code.INVALID_ARGUMENT, code.RESOURCE_EXHAUSTED)
    for client, codes in zip(clients, (by_grpc, (400, 413)), strict=True):
        for work, message, expected in (
            (lambda c: c.search(["x"] * 4), "Task size 4", codes[0]),
            (lambda c: c.search(["x" * 1025]), "1,025 bytes", codes[0]),
            (lambda c: c.search(["x"], k=6), "k is 6, more", codes[0]),
            (lambda c: c.search(["x" * (1 << 20)]), "larger than", codes[1]),
        ):
            with pytest.raises(ServingError, match=message) as caught:
                work(client)
            assert caught.value.code == expected
        assert client.search(["bolt"], k=1)[0][0].id == "bolt"


def test_no_queue_without_an_end(clients, monkeypatch):
    client, http_client = clients
    for each in clients:
        each.signatures("retriever")  # is not asked for again
    release, running = threading.Event(), []

    def hold(*arguments: object) -> object:
        running.append(1)
        assert release.wait(20)
        return original(*arguments)

    for name in ("predict", "signature"):
        original = getattr(Servable, name)
        release.clear()
        running.clear()
        monkeypatch.setattr(Servable, name, hold)
        each = client if name == "predict" else http_client
        with ThreadPoolExecutor(2) as pool:
            answers = [pool.submit(each.search, ["bolt"]) for _ in range(2)]
            wait_until(lambda: len(running) == 2)
            try:
                with pytest.raises(ServingError) as caught:
                    short = type(each)(each.target, timeout=0.2)
                    with short:
                        short.status("retriever")
                assert caught.value.code in (
                    grpc.StatusCode.RESOURCE_EXHAUSTED,
                    429,
                )
                assert "busy" in str(caught.value)
            finally:
                release.set()
            assert [answer.result()[0][0].id for answer in answers] == [
                "bolt",
                "bolt",
            ]
        monkeypatch.setattr(Servable, name, original)
        assert list(each.status("retriever")) == [1]
