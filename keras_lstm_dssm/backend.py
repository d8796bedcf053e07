"""Check that Keras runs on TensorFlow, before anything else is imported."""

import os


def require_tensorflow() -> None:
    """Check that TensorFlow is the backend of Keras.

    Raises:
        ImportError: `KERAS_BACKEND` or Keras's configuration file names
            another backend; the message is one line.
    """
    backend = os.environ.get("KERAS_BACKEND") or "tensorflow"
    if backend == "tensorflow":
        try:
            import keras

            backend = keras.config.backend()
        except ModuleNotFoundError as error:
            # The backend in the configuration file may not be installed.
            if error.name not in ("jax", "torch", "openvino"):
                raise
            backend = error.name
    if backend != "tensorflow":
        raise ImportError(
            f"keras_lstm_dssm needs Keras on TensorFlow, found the backend "
            f"{backend}: set KERAS_BACKEND=tensorflow before Keras is imported"
        )
