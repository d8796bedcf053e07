"""Runs an exported encoder as TF Serving would: by TensorFlow's C++ alone."""

import io
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf
import tensorflow_text

from keras_lstm_dssm.export.signatures import signature_defs

SCRIPT = Path(__file__).with_name("cpp_session.py")


class CppError(RuntimeError):
    """What the C++ library answered, its function, code and message."""


def run_in_cpp(
    saved_model: Path, texts: Sequence[str | bytes], text_ops: bool = True
) -> np.ndarray:
    """Runs `serving_default` of an encoder in a fresh process.

    Args:
        saved_model: A version's folder.
        texts: The input `text`.
        text_ops: Whether to load the ops of TF.Text, as TF Serving has them.

    Returns:
        The output `embedding`, float32 [texts, d].

    Raises:
        CppError: The library refused to load or to run it.
    """
    signature = signature_defs(saved_model)["serving_default"]
    ops = Path(tensorflow_text.__file__).parent / "python" / "ops"
    job = {
        "tensorflow": tf.sysconfig.get_lib(),
        "op_libraries": [str(path) for path in sorted(ops.glob("*.so"))]
        if text_ops
        else [],
        "saved_model": str(saved_model),
        "input": signature.inputs["text"].name,
        "output": signature.outputs["embedding"].name,
        # JSON has no bytes; latin-1 maps each to the code point of its value.
        "texts": [_bytes(text).decode("latin-1") for text in texts],
    }
    done = subprocess.run(
        [sys.executable, SCRIPT],
        input=json.dumps(job).encode(),
        capture_output=True,
    )
    if done.returncode:
        raise CppError(done.stderr.decode().strip().splitlines()[-1])
    return np.load(io.BytesIO(done.stdout))


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text
