"""An exported model is what servers can run: checked as all kinds are."""

import functools
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text  # also registers the ops of the graph
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel
from tensorflow_serving.apis.predict_pb2 import PredictRequest

from keras_lstm_dssm.export.graphs.saved_module import (
    predict_signatures,
    signature_defs,
)
from tests.serving.wire import warmup_requests

SCRIPT = Path(__file__).with_name("cpp_session.py")


class CppError(RuntimeError):
    """A function of the C++ library, its error code and message."""


def run_in_cpp(
    requests: Mapping[Path, Sequence[PredictRequest]], text_ops: bool = True
) -> list[list[dict[str, np.ndarray]]]:
    """Loads versions in a fresh process and runs requests, one by one.

    Args:
        requests: Version folder to requests. Their inputs and signatures
            count; `serving_default` where none is named.
        text_ops: Whether to load the ops of TF.Text, as TF Serving has them.

    Returns:
        For each version and request all outputs by alias; strings as arrays
        of bytes.

    Raises:
        CppError: The library refused to load or to run a version.
    """
    ops = Path(tensorflow_text.__file__).parent / "python" / "ops"
    libraries = sorted(map(str, ops.glob("*.so")))
    job = {
        "tensorflow": tf.sysconfig.get_lib(),
        "op_libraries": libraries if text_ops else [],
        "models": [
            {"saved_model": str(path), "runs": [_run(path, r) for r in each]}
            for path, each in requests.items()
        ],
    }
    command, data = [sys.executable, SCRIPT], json.dumps(job).encode()
    done = subprocess.run(command, input=data, capture_output=True)
    if done.returncode:
        raise CppError(done.stderr.decode().strip().splitlines()[-1])
    return [
        [
            {alias: _array(**output) for alias, output in outputs.items()}
            for outputs in model
        ]
        for model in json.loads(done.stdout)
    ]


def _run(saved_model: Path, request: PredictRequest) -> dict[str, Any]:
    key = request.model_spec.signature_name or "serving_default"
    signature = signature_defs(saved_model)[key]
    return {
        "inputs": {
            info.name: _plain(tf.make_ndarray(request.inputs[alias]))
            for alias, info in signature.inputs.items()
        },
        "outputs": {key: info.name for key, info in signature.outputs.items()},
    }


def _plain(values: np.ndarray) -> list:
    # JSON has no bytes; latin-1 maps each to the code point of its value.
    return [
        value.decode("latin-1") if isinstance(value, bytes) else value
        for value in values.tolist()
    ]


def _array(dtype: str, shape: list[int], values: list) -> np.ndarray:
    if dtype == "object":
        values = [value.encode("latin-1") for value in values]
    return np.array(values, dtype).reshape(shape)


# Those of TF.Text that TF Serving 2.12 and all later ones link and that
# hashing and tokenising text may need. It links more of them; the trimmers
# (TFText>RoundRobin*) and TFText>Utf8Binarize came with 2.20.
TEXT_OPS = frozenset([
    "CaseFoldUTF8", "NormalizeUTF8", "RegexSplitWithOffsets",
    "TFText>NgramsStringJoin", "TFText>WhitespaceTokenizeWithOffsetsV2",
])  # fmt: skip


def stock_ops() -> frozenset[str]:
    """Returns the names of the ops that a graph for TF Serving may use."""
    lines = Path(__file__).with_name("ops_2_12.txt").read_text().splitlines()
    return TEXT_OPS.union(
        *(line.split() for line in lines if not line.startswith("#"))
    )


def serving_ops(saved_model: Path) -> frozenset[str]:
    """Returns the names of all ops in a SavedModel's graph and functions.

    Args:
        saved_model: A version's folder.
    """
    model = SavedModel.FromString((saved_model / "saved_model.pb").read_bytes())
    ops: set[str] = set()
    for meta_graph in model.meta_graphs:
        graph = meta_graph.graph_def
        functions = graph.library.function
        ops.update(node.op for node in graph.node)
        ops.update(node.op for each in functions for node in each.node_def)
        # A function may be called by its name as if it were an op.
        ops -= {function.signature.name for function in functions}
    return frozenset(ops)


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
