"""Warm-up: what a server runs on a new version before it serves it.

A graph's first calls are slow: memory is allocated, kernels are made. TF
Serving replays the requests in `assets.extra/tf_serving_warmup_requests`
first, so that no user waits for that.

Source: https://www.tensorflow.org/tfx/serving/saved_model_warmup
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers the ops of the graph)
from absl import logging
from tensorflow_serving.apis.predict_pb2 import PredictRequest
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.signatures import (
    Signature,
    signature_defs,
    signatures,
)

WARMUP_FILE = Path("assets.extra", "tf_serving_warmup_requests")
"""Where it lies in a version's folder."""

BATCH_SIZES = (1, 8, 64, 512)
"""The sizes that a batching server pads requests to; see `batching.config`."""

# More of them and a server refuses the model.
_MOST_RECORDS = 1000
_K = 10


def write_warmup(
    version: str | os.PathLike[str],
    name: str,
    sizes: Sequence[int] = BATCH_SIZES,
) -> Path:
    """Writes one request for each signature and batch size of a version.

    One failing record makes a server refuse the whole version. So each is
    run here first, by the SavedModel as it lies on disk, and its outputs are
    checked: finite, and as many rows as the input has.

    Args:
        version: The version's folder, with `saved_model.pb` in it.
        name: The model's name.
        sizes: Rows of the requests.

    Returns:
        The file, a TFRecord of `PredictionLog`.

    Raises:
        InputError: A request fails or gives numbers that are not finite; an
            input is not one of those that models of this package have; there
            are over 1,000 records.

    Example:
    >>> write_warmup("models/query_encoder/1", "query_encoder")
    PosixPath('models/query_encoder/1/assets.extra/tf_serving_warmup_requests')
    """
    requests = [
        _request(name, key, signature, rows)
        for key, signature in signatures(signature_defs(version)).items()
        for rows in sizes
    ]
    if len(requests) > _MOST_RECORDS:
        raise InputError(
            f"{version}: {len(requests)} warm-up requests; servers take "
            f"{_MOST_RECORDS:,} at most: give fewer batch sizes"
        )
    model = _load(version)
    path = Path(version) / WARMUP_FILE
    path.parent.mkdir(exist_ok=True)
    with tf.io.TFRecordWriter(os.fspath(path)) as file:
        for request in requests:
            _replay(model, request)
            log = PredictionLog()
            log.predict_log.request.CopyFrom(request)
            file.write(log.SerializeToString())
    return path


def _load(version: str | os.PathLike[str]) -> Any:
    level = logging.get_verbosity()
    # It warns of gradients, which models for servers do not have.
    logging.set_verbosity(logging.ERROR)
    try:
        return tf.saved_model.load(os.fspath(version))
    finally:
        logging.set_verbosity(level)


def _request(
    name: str, key: str, signature: Signature, rows: int
) -> PredictRequest:
    request = PredictRequest()
    request.model_spec.name = name
    request.model_spec.signature_name = key
    values = {
        # Distinct texts of several lengths, as real ones are.
        "text": [" ".join(["warm", "up", str(i)][: 1 + i % 3])
                 for i in range(rows)],
        "k": np.full(rows, _K, np.int32),
    }  # fmt: skip
    for alias in signature.inputs:
        if alias not in values:
            raise InputError(
                f"{name}: signature {key} has an input {alias!r}; warm-up "
                f"knows values for {', '.join(values)} only"
            )
        request.inputs[alias].CopyFrom(tf.make_tensor_proto(values[alias]))
    return request


def _replay(model: Any, request: PredictRequest) -> None:
    name, key = request.model_spec.name, request.model_spec.signature_name
    inputs = {
        alias: tf.constant(tf.make_ndarray(proto))
        for alias, proto in request.inputs.items()
    }
    try:
        outputs = model.signatures[key](**inputs)
    except tf.errors.OpError as error:
        raise InputError(
            f"{name}: signature {key} fails: {error.message.splitlines()[0]}; "
            "servers would refuse this version"
        ) from error
    _check(outputs, len(inputs["text"]), name, key)


def _check(
    outputs: Mapping[str, tf.Tensor], rows: int, name: str, key: str
) -> None:
    for alias, tensor in outputs.items():
        values = tensor.numpy()
        if values.shape[:1] != (rows,):
            raise InputError(
                f"{name}: signature {key} gives {alias} of shape "
                f"{values.shape} for {rows} rows; batching servers want a "
                "row for each"
            )
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise InputError(
                f"{name}: signature {key} gives {alias} with numbers that are "
                "not finite; servers would pass them on"
            )
