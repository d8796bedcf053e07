"""An exported model is what servers can run: checked as all kinds are."""

import functools
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers the ops of the graph)
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel
from tensorflow_serving.apis.predict_pb2 import PredictRequest

from keras_lstm_dssm.export.graphs.saved_module import predict_signatures
from tests.export.cpp_loader import run_in_cpp
from tests.export.ops import serving_ops, stock_ops
from tests.serving.wire import warmup_requests


@functools.lru_cache(maxsize=16)
def loaded(version: Path) -> Any:
    """Loads a version, which nobody changes, once for several tests."""
    return tf.saved_model.load(str(version))


def check_export(
    *requests: tuple[Path, PredictRequest],
) -> list[dict[str, np.ndarray]]:
    """Checks versions, in one process of C++ for all of them.

    C++ alone, without the package and without Python, loads each version, and
    computes for the requests and for those of the warm-up what Python computes,
    to 1e-6. Each signature has warm-up requests of 1, 8 and 64 rows. For ops
    see `check_ops`.

    Args:
        *requests: A version's folder and a request, several of a version too.

    Returns:
        The outputs of each request in C++.
    """
    given = defaultdict(list)
    for version, request in requests:
        given[version].append(request)
    runs = {
        version: [*of_version, *warmup_requests(version)]
        for version, of_version in given.items()
    }
    found = dict(zip(runs, run_in_cpp(runs), strict=True))
    for version, results in found.items():
        check_ops(version)
        assert [rows_of(each) for each in warmup_requests(version)] == [
            (signature, rows)
            for signature in sorted(predict_signatures(version))
            for rows in (1, 8, 64)
        ]
        for request, result in zip(runs[version], results, strict=True):
            assert_outputs_equal(loaded(version), request, result)
    outputs = {version: iter(results) for version, results in found.items()}
    return [next(outputs[version]) for version, _ in requests]


def check_ops(version: Path) -> None:
    """Checks that stock servers have every op, and that there are no gradients.

    The text is hashed in the graph.
    """
    ops = serving_ops(version)
    assert "CaseFoldUTF8" in ops
    assert ops <= stock_ops(), ops - stock_ops()
    text = (version / "saved_model.pb").read_bytes()
    (graph,) = SavedModel.FromString(text).meta_graphs
    library = graph.graph_def.library
    assert library.function
    assert not library.registered_gradients


def rows_of(request: PredictRequest) -> tuple[str, int]:
    """Returns a request's signature and the number of its rows."""
    first = next(iter(request.inputs.values()))
    return request.model_spec.signature_name, first.tensor_shape.dim[0].size


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
