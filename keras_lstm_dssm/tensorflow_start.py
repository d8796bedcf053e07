"""Prepares TensorFlow and Keras: oneDNN, the backend, intra-op threads."""

import importlib.util
import os
import platform
import sys

_FEW_CORES = 2


def start_tensorflow() -> None:
    """Switches oneDNN on, and checks that Keras runs on TensorFlow."""
    legacy = os.environ.get("TF_USE_LEGACY_KERAS", "").lower()
    if legacy in ("1", "true") and importlib.util.find_spec("tf_keras") is None:
        if "ray.train" in sys.modules and "TF_CONFIG" in os.environ:
            # Ray Train 2.60 sets TF_USE_LEGACY_KERAS and TF_CONFIG in the
            # workers of a TensorflowTrainer.
            del os.environ["TF_USE_LEGACY_KERAS"]
        else:
            raise ImportError(
                "TF_USE_LEGACY_KERAS is set, so TensorFlow imports tf-keras, "
                "which is not installed: unset the variable"
            )
    # By default TensorFlow uses oneDNN only on x86 processors with VNNI.
    # Without oneDNN a step of `lstm_96` takes twice as long (docs/speed.md).
    on_x86 = platform.machine() in ("x86_64", "AMD64")
    if on_x86 and "tensorflow" not in sys.modules:
        os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    backend = os.environ.get("KERAS_BACKEND") or "tensorflow"
    if backend == "tensorflow":
        try:
            import keras

            backend = keras.config.backend()
        except ModuleNotFoundError as error:
            # Keras's configuration file may name a backend that is missing.
            if error.name not in ("jax", "torch", "openvino"):
                raise
            backend = error.name
    if backend != "tensorflow":
        raise ImportError(
            f"keras_lstm_dssm needs Keras on TensorFlow, found the backend "
            f"{backend}: set KERAS_BACKEND=tensorflow before Keras is imported"
        )


def usable_cores() -> int:
    """Returns the number of logical processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def use_one_intra_op_thread() -> None:
    """Limits TensorFlow to one intra-op thread if there are 1 or 2 cores."""
    # Training and encoding keep two cores busy anyway. Dividing single
    # operations costs more time than it saves (docs/speed.md). The variable
    # has no effect after TensorFlow's first operation.
    if usable_cores() <= _FEW_CORES:
        os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
