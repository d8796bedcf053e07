"""Warm-up requests of a model's version, and the sizes of a server's batches.

A graph's first calls are slow, because memory is allocated and kernels are
created. Before TF Serving serves a version, it runs the requests in
`assets.extra/tf_serving_warmup_requests`. TF Serving rejects the version if a
request has more rows than `batching.config` allows.

Source: https://www.tensorflow.org/tfx/serving/saved_model_warmup
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging
from tensorflow_serving.apis.predict_pb2 import PredictRequest
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.graphs.saved_module import predict_signatures
from keras_lstm_dssm.settings.fields import BATCH_SIZES
from lstm_dssm_client.signatures import Signature

WARMUP_FILE = Path("assets.extra", "tf_serving_warmup_requests")

WARMUP_SIZES = (1, 8, 64)
"""Numbers of rows of the warm-up requests. The largest number is 64, so an
operator can lower a server's `max_batch_size` to 64 without a new export."""

BATCHING_CONFIG = "batching.config"

# `batch_timeout_micros`: a batch waits at most 1 ms for further requests.
BATCHING_TEXT = f"""\
# Exports never change this file, so you can edit it. TF Serving rejects
# a version if one of its warm-up requests has more rows than max_batch_size.
# The largest request has {WARMUP_SIZES[-1]} rows. To set max_batch_size below
# {WARMUP_SIZES[-1]}, change this file, then export again: the new version has
# smaller warm-up requests. max_batch_size must be the last allowed batch size.
max_batch_size {{ value: {BATCH_SIZES[-1]} }}
batch_timeout_micros {{ value: 1000 }}
max_enqueued_batches {{ value: 100 }}
num_batch_threads {{ value: 2 }}
""" + "".join(f"allowed_batch_sizes: {size}\n" for size in BATCH_SIZES)
"""The content of `batching.config` for a new folder of models."""

_MAX_RECORDS = 1000  # a server rejects a version with more requests
_K = 10  # the value of the inputs `k` and `n` of each request


def warmup_sizes(models_dir: str | os.PathLike[str]) -> list[int]:
    """Returns the `WARMUP_SIZES` that `batching.config` allows, or `[1]`."""
    path = Path(models_dir, BATCHING_CONFIG)
    text = path.read_text(errors="replace") if path.exists() else ""
    match = re.search(
        r"^[^#]*?max_batch_size\s*:?\s*{\s*value\s*:\s*(\d+)", text, re.M
    )
    largest = int(match[1]) if match else BATCH_SIZES[-1]
    return [s for s in WARMUP_SIZES if s <= largest] or [1]


def write_warmup(
    version: str | os.PathLike[str],
    name: str,
    sizes: Sequence[int] = WARMUP_SIZES,
) -> Path:
    """Runs and writes a request for each signature and number of rows."""
    requests = [
        _request(name, key, signature, rows)
        for key, signature in predict_signatures(version).items()
        for rows in sizes
    ]
    if len(requests) > _MAX_RECORDS:
        raise InputError(
            f"{version}: {len(requests)} warm-up requests; servers take "
            f"{_MAX_RECORDS:,} at most: pass fewer `sizes` (numbers of rows) to"
            " write_warmup, or export fewer signatures"
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
    # Hides TensorFlow's warning that the SavedModel has no gradients.
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
    # The texts are "warm", "warm up", "warm up 2", "warm", "warm up", ...
    texts = [
        " ".join(["warm", "up", str(row)][: 1 + row % 3]) for row in range(rows)
    ]
    values = {
        "text": texts,
        "k": np.full(rows, _K, np.int32),
        "n": np.full(rows, _K, np.int32),
        "query": texts,
        "document": texts,
        # Every second query has a tag. It need not be a tag of any document.
        "tags": ["warm up" * (row % 2) for row in range(rows)],
    }
    for alias in signature.inputs:
        if alias not in values:
            raise InputError(
                f"{name}: signature {key} has an input {alias!r}; warm-up "
                f"requests have values for {', '.join(values)} only"
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
            "servers would reject this version"
        ) from error
    rows = len(next(iter(inputs.values())))
    for alias, tensor in outputs.items():
        values = tensor.numpy()
        if values.shape[:1] != (rows,):
            raise InputError(
                f"{name}: signature {key} gives {alias} of shape "
                f"{values.shape} for {rows} rows; servers that batch need one "
                "row of output for each row of input"
            )
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise InputError(
                f"{name}: signature {key} gives {alias} with numbers that are "
                "not finite; servers would send them to clients"
            )
