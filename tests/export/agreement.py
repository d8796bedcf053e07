"""C++ and Python give the same numbers, signature by signature."""

from pathlib import Path

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers the ops of the graph)
from tensorflow_serving.apis.predict_pb2 import PredictRequest

from keras_lstm_dssm.export.signatures import signature_defs, signatures
from tests.export.cpp_loader import run_in_cpp
from tests.serving.wire import warmup_requests


def assert_cpp_agrees(
    version: Path, *requests: PredictRequest
) -> list[dict[str, np.ndarray]]:
    """Runs requests and all warm-up records in both, to 1e-6.

    Returns:
        The outputs of `requests` in C++.
    """
    warm = warmup_requests(version)
    known = set(signatures(signature_defs(version)))
    assert known == {one.model_spec.signature_name for one in warm}
    model = tf.saved_model.load(str(version))
    everything = [*requests, *warm]
    found = run_in_cpp(version, *everything)
    for request, outputs in zip(everything, found, strict=True):
        key = request.model_spec.signature_name or "serving_default"
        inputs = {
            alias: tf.constant(tf.make_ndarray(proto))
            for alias, proto in request.inputs.items()
        }
        wanted = model.signatures[key](**inputs)
        assert outputs.keys() == wanted.keys()
        for alias, value in wanted.items():
            if value.dtype == tf.string:
                assert outputs[alias].tolist() == value.numpy().tolist()
            else:
                np.testing.assert_allclose(outputs[alias], value, atol=1e-6)
    return found[: len(requests)]
