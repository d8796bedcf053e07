"""The first run of a graph, which many requests may meet at once."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis.predict_pb2 import PredictResponse

from keras_lstm_dssm.serving.server.signature_call import SignatureCall
from tests.serving.wire import predict_request


def test_the_first_run_is_alone(
    tiny_models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[float] = []
    at_the_first_end: list[int] = []
    run = tf.raw_ops.StatefulPartitionedCall

    def watched(**arguments: Any) -> Any:
        started.append(time.monotonic())
        outputs = run(**arguments)
        time.sleep(0.1)
        if not at_the_first_end:
            at_the_first_end.append(len(started))
        return outputs

    monkeypatch.setattr(tf.raw_ops, "StatefulPartitionedCall", watched)
    model = tf.saved_model.load(str(tiny_models / "numbers" / "1"))
    call = SignatureCall(model.signatures["double"])

    def ask(x: float) -> float:
        reply = PredictResponse()
        call(predict_request("numbers", x=np.float32([x])), reply)
        return reply.outputs["y"].float_val[0]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, range(8))) == [2 * x for x in range(8)]
    assert at_the_first_end == [1]
    assert len(started) == 8


def test_scalars(tmp_path: Path) -> None:
    # TF Serving gives them, too, as long as it does not batch.
    module = tf.Module()
    module.serve = tf.function(
        lambda x: {"name": tf.constant("v1"), "sum": tf.reduce_sum(x)},
        input_signature=[tf.TensorSpec([None], tf.float32, "x")],
    )
    tf.saved_model.save(module, str(tmp_path), module.serve)
    model = tf.saved_model.load(str(tmp_path))
    reply = PredictResponse()
    call = SignatureCall(model.signatures["serving_default"])
    call(predict_request("any", x=np.float32([1, 2])), reply)
    values = {n: tf.make_ndarray(y) for n, y in reply.outputs.items()}
    assert values == {"name": b"v1", "sum": 3.0}
    assert {value.shape for value in values.values()} == {()}


def test_inputs_and_outputs_go_by_name(tmp_path: Path) -> None:
    module = tf.Module()
    module.seven = tf.Variable(7.0)
    module.serve = tf.function(
        lambda z, a, m: {"y": z - a, "b": a * m + module.seven, "t": m},
        input_signature=[
            tf.TensorSpec([None], tf.float32, name) for name in "zam"
        ],
    )
    tf.saved_model.save(module, str(tmp_path), module.serve)
    model = tf.saved_model.load(str(tmp_path))
    call = SignatureCall(model.signatures["serving_default"])
    m, z, a = np.float32([[100], [5], [1]])
    reply = PredictResponse()
    call(predict_request("any", "y", "b", m=m, z=z, a=a), reply)
    assert {name: y.float_val[0] for name, y in reply.outputs.items()} == {
        "y": 4.0,
        "b": 107.0,
    }
