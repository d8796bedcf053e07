"""One signature: its first run, its order of names, errors of its graph."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef

from keras_lstm_dssm.serving.saved_models import SavedGraph
from keras_lstm_dssm.serving.servable import Servable, StatusError, to_proto
from tests.export.agreement import CppError, run_in_cpp
from tests.serving.tiny_models import save_function
from tests.serving.wire import predict_request


def saved(folder: Path, function: Any, **inputs: Any) -> Servable:
    """Saves a function as `serving_default` and loads it."""
    return Servable("any", 1, save_function(folder, function, **inputs))


def test_the_graph_is_prepared_once(tmp_path, monkeypatch):
    prepared: list[str] = []
    prepare = SavedGraph.function

    def watched(graph: SavedGraph, definition: SignatureDef) -> Any:
        prepared.append(definition.method_name)
        time.sleep(0.1)
        return prepare(graph, definition)

    monkeypatch.setattr(SavedGraph, "function", watched)
    servable = saved(tmp_path, lambda x: {"y": 2 * x}, x="float32")

    def ask(x: float) -> float:
        reply = servable.predict(predict_request("any", x=np.float32([x])))
        return reply.outputs["y"].float_val[0]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, range(8))) == [2 * x for x in range(8)]
    assert prepared == ["tensorflow/serving/predict"]


def test_scalars(tmp_path):
    # TF Serving returns them as well, as long as it does not batch.
    servable = saved(
        tmp_path,
        lambda x: {"name": tf.constant("v1"), "sum": tf.reduce_sum(x)},
        x="float32",
    )
    reply = servable.predict(predict_request("any", x=np.float32([1, 2])))
    values = {n: tf.make_ndarray(y) for n, y in reply.outputs.items()}
    assert values == {"name": b"v1", "sum": 3.0}
    assert {value.shape for value in values.values()} == {()}


def test_inputs_and_outputs_go_by_name(tmp_path):
    seven = tf.Variable(7.0)
    serve = lambda z, a, m: {"y": z - a, "b": a * m + seven, "t": m}  # noqa: E731
    inputs = dict.fromkeys("zam", "float32")
    servable = saved(tmp_path, serve, owned=seven, **inputs)
    m, z, a = np.float32([[100], [5], [1]])
    reply = servable.predict(predict_request("any", "y", "b", m=m, z=z, a=a))
    found = {name: y.float_val[0] for name, y in reply.outputs.items()}
    assert found == {"y": 4.0, "b": 107.0}


def test_an_error_of_the_graph_is_that_of_a_session(tmp_path):
    """TF Serving runs graphs in a C++ session; this test does, too."""

    def prefixes(text: tf.Tensor) -> dict[str, tf.Tensor]:
        size = tf.shape(text)[0]
        with tf.control_dependencies([tf.debugging.assert_less(size, 2)]):
            return {"prefix": tf.strings.substr(text, 0, size)}

    request = predict_request("any", text=["a", "b"])
    with pytest.raises(StatusError) as caught:
        saved(tmp_path, prefixes, text="string").predict(request)
    with pytest.raises(CppError) as expected:
        run_in_cpp({tmp_path: [request]})
    code, details = caught.value.code.value[0], caught.value.details
    assert details.startswith("assertion failed: ")
    message = f"TF_SessionRun: code {code}: {details}"
    assert message.split() == str(expected.value).split()


@pytest.mark.parametrize("dtype", [
    "bool", "float16", "bfloat16", "float32", "float64", "int8", "int16",
    "int32", "int64", "uint8", "uint16", "uint32", "uint64", "complex64",
])  # fmt: skip
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0), (2, 2)])
def test_numbers(dtype, shape):
    values = np.arange(np.prod(shape)).reshape(shape) + 1
    values = values.astype(tf.as_dtype(dtype).as_numpy_dtype)
    proto = to_proto(values)
    read = tf.make_ndarray(proto)
    assert read.dtype == values.dtype
    np.testing.assert_array_equal(read, values)
    parsed = tf.io.parse_tensor(proto.SerializeToString(), dtype).numpy()
    np.testing.assert_array_equal(np.asarray(parsed), values)
    assert not proto.tensor_content or dtype == "complex64"


def test_strings():
    values = np.array([[b"a", b""], [b"\xff\0", b"long" * 9]], object)
    read = tf.make_ndarray(to_proto(values))
    assert read.tolist() == values.tolist()


def test_numbers_of_dtypes_without_a_field():
    """They are in `tensor_content`, where TensorFlow itself reads them."""
    values = np.array([[0.5, -2.0], [1.5, 0.0]])
    values = values.astype(tf.as_dtype("float8_e4m3fn").as_numpy_dtype)
    proto = to_proto(values)
    assert len(proto.tensor_content) == 4
    read = tf.make_ndarray(proto)
    assert read.dtype == values.dtype
    np.testing.assert_array_equal(
        read.astype(np.float32), values.astype(np.float32)
    )
