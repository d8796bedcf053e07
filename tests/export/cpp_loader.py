"""Runs exported models as TF Serving would: by TensorFlow's C++ alone."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text
from tensorflow_serving.apis.predict_pb2 import PredictRequest

from keras_lstm_dssm.export.graphs.saved_module import signature_defs

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
    job = {
        "tensorflow": tf.sysconfig.get_lib(),
        "op_libraries": [str(path) for path in sorted(ops.glob("*.so"))]
        if text_ops
        else [],
        "models": [
            {
                "saved_model": str(version),
                "runs": [_run(version, request) for request in each],
            }
            for version, each in requests.items()
        ],
    }
    done = subprocess.run(
        [sys.executable, SCRIPT],
        input=json.dumps(job).encode(),
        capture_output=True,
    )
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
        "outputs": {
            alias: info.name for alias, info in signature.outputs.items()
        },
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
