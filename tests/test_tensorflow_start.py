"""Importing keras_lstm_dssm turns on TensorFlow's fast products, oneDNN.

The import sets the environment variable TF_ENABLE_ONEDNN_OPTS, and changes
nothing else of the process.
"""

import os
import platform
import subprocess
import sys
from collections.abc import Mapping

import pytest

from keras_lstm_dssm.tensorflow_start import (
    usable_cores,
    use_one_intra_op_thread,
)

CODE = """
import os, signal, sys, warnings
import tensorflow, tensorflow_text, keras
import numpy as np, logging

def state():
    random = np.random.get_state()[1]
    return {
        "environment": dict(os.environ),
        "descriptors": {
            number: os.readlink(f"/proc/self/fd/{number}")
            for number in os.listdir("/proc/self/fd")
            if os.path.exists(f"/proc/self/fd/{number}")
        },
        "signals": [signal.getsignal(n) for n in signal.valid_signals()],
        "warnings": list(warnings.filters),
        "random": random.tolist(),
        "streams": (sys.stdout, sys.stderr, sys.stdin, sys.excepthook),
        "levels": (logging.root.level, logging.getLogger("absl").level),
        "handlers": list(logging.root.handlers),
        "float": keras.config.floatx(),
        "folder": os.getcwd(),
    }

before = state()
import keras_lstm_dssm
after = state()
for name in before:
    assert before[name] == after[name], (name, before[name], after[name])
print("same")
"""


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited: Mapping[str, str] = {
        name: value
        for name, value in os.environ.items()
        if name
        not in (
            "TF_CPP_MIN_LOG_LEVEL",
            "KERAS_BACKEND",
            "TF_ENABLE_ONEDNN_OPTS",
        )
    }
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**inherited, **environment},
        capture_output=True,
        text=True,
    )


def test_the_process_stays_as_it_is():
    done = python(CODE)
    assert done.stdout == "same\n", done.stderr


@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="oneDNN is of x86"
)
def test_tensorflow_has_the_fast_kernels_of_onednn():
    """TensorFlow uses oneDNN, unless TF_ENABLE_ONEDNN_OPTS is set to 0."""
    code = """
import keras_lstm_dssm, os
from tensorflow.python.util import _pywrap_util_port
print(os.environ["TF_ENABLE_ONEDNN_OPTS"], _pywrap_util_port.IsMklEnabled())
"""
    assert python(code).stdout == "1 True\n"
    assert python(code, TF_ENABLE_ONEDNN_OPTS="0").stdout == "0 False\n"


def test_another_backend_is_one_clear_line(tmp_path):
    """In Keras's file; test_programs.py has it in the environment."""
    (tmp_path / "keras.json").write_text('{"backend": "jax"}')
    code = "try:\n import keras_lstm_dssm\nexcept ImportError as e:\n print(e)"
    done = python(code, KERAS_HOME=str(tmp_path))
    assert done.stdout == (
        "keras_lstm_dssm needs Keras on TensorFlow, found the backend jax: "
        "set KERAS_BACKEND=tensorflow before Keras is imported\n"
    ), done.stderr


@pytest.mark.parametrize(
    ("cores", "before", "after"), [(2, "", "1"), (2, "2", "2"), (3, "", None)]
)
def test_threads_of_an_operation(monkeypatch, cores, before, after):
    name = "TF_NUM_INTRAOP_THREADS"
    monkeypatch.setattr(os, "environ", {name: before} if before else {})
    usable = set(range(cores))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: usable, False)
    use_one_intra_op_thread()
    assert os.environ.get(name) == after


def test_cores_of_the_process_or_else_of_the_machine(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 5, 6}, False)
    assert usable_cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    assert usable_cores() == 8
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert usable_cores() == 1
