"""C++ and Python compute the same numbers, signature by signature."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers the ops of the graph)
from tensorflow_serving.apis.predict_pb2 import PredictRequest

from keras_lstm_dssm.export.graphs.saved_module import predict_signatures
from tests.export.cpp_loader import run_in_cpp
from tests.serving.wire import warmup_requests


def assert_cpp_agrees(
    requests: Mapping[Path, PredictRequest],
) -> list[dict[str, np.ndarray]]:
    """Runs a request and the warm-up of each version in both, to 1e-6.

    Returns:
        The outputs of each request in C++.
    """
    everything = {
        version: [request, *warmup_requests(version)]
        for version, request in requests.items()
    }
    outputs = run_in_cpp(everything)
    for (version, each), results in zip(
        everything.items(), outputs, strict=True
    ):
        assert set(predict_signatures(version)) == {
            request.model_spec.signature_name for request in each[1:]
        }
        model = tf.saved_model.load(str(version))
        for request, result in zip(each, results, strict=True):
            assert_outputs_equal(model, request, result)
    return [results[0] for results in outputs]


def assert_outputs_equal(
    model: tf.Module, request: PredictRequest, result: dict[str, np.ndarray]
) -> None:
    key = request.model_spec.signature_name or "serving_default"
    inputs = {
        alias: tf.constant(tf.make_ndarray(proto))
        for alias, proto in request.inputs.items()
    }
    expected = model.signatures[key](**inputs)
    assert result.keys() == expected.keys()
    for alias, value in expected.items():
        if value.dtype == tf.string:
            assert result[alias].tolist() == value.numpy().tolist()
        else:
            np.testing.assert_allclose(result[alias], value, atol=1e-6)
