"""Bounds: how large one Predict request may be."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import tensorflow as tf
from tensorflow.core.framework.types_pb2 import DataType
from tensorflow_serving.apis.predict_pb2 import PredictRequest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.serving.servable import invalid_argument
from keras_lstm_dssm.settings.choices import (
    BATCH_SIZES,
    MAX_MESSAGE_MB,
    MAX_REQUESTS,
    MAX_SERVED_K,
    MAX_TEXT_KB,
)

_COUNTS = ("k", "n")
"""Inputs that say how many results a row gets."""

# A reply has at most the rows and the k that the bounds allow.
REPLY_MB = 64


@dataclass(frozen=True)
class Bounds:
    """The largest requests that are computed, and how many at a time.

    A message is checked before it is parsed, by `check`, and its arrays are
    checked before the graph runs, by `check_arrays`.

    Attributes:
        max_rows: Maximum number of rows; by default 512, the maximum of the
            exported `batching.config`.
        max_text_kb: Maximum size of one text, in KiB.
        max_k: Maximum `k` of a retriever, and `n` of a KeyVec.
        max_message_mb: Maximum size of a request, in MiB, also once a
            message that states a shape and few values is expanded to it.
        max_requests: Maximum number of requests of each protocol that are
            computed or wait.

    Raises:
        InputError: A number is out of range.

    Example:
        >>> Bounds(max_rows=64).check(request)
    """

    max_rows: int = BATCH_SIZES[-1]
    max_text_kb: int = MAX_TEXT_KB
    max_k: int = MAX_SERVED_K
    max_message_mb: int = MAX_MESSAGE_MB
    max_requests: int = MAX_REQUESTS

    def __post_init__(self) -> None:
        for name, maximum in _LARGEST.items():
            value = getattr(self, name)
            if not 1 <= value <= maximum:
                raise InputError(
                    f"{name} is {value}; expected 1 to {maximum:,}"
                )

    def check(self, request: PredictRequest) -> None:
        """Checks the shapes of a message, before it is made into arrays.

        A message may have fewer values than its shape has elements: the last
        value then counts for all others, so that few bytes can describe a
        tensor of any size.

        Args:
            request: The message, of at most `max_message_mb`.

        Raises:
            StatusError: The request is above a bound (INVALID_ARGUMENT, 400
                over HTTP). The message for rows is TF Serving's.
        """
        dims = [proto.tensor_shape.dim for proto in request.inputs.values()]
        self.check_rows(max((each[0].size for each in dims if each), default=0))
        for name, proto in request.inputs.items():
            elements = math.prod(dim.size for dim in proto.tensor_shape.dim)
            size = _BYTES.get(proto.dtype, 16)
            if proto.string_val and len(proto.string_val) < elements:
                size = max(size, len(proto.string_val[-1]))
            if elements * size > self.max_message_mb << 20:
                raise invalid_argument(
                    f"input {name} is a tensor of {elements:,} elements, more"
                    f" than fit into the {self.max_message_mb} MiB of a request"
                )

    def check_rows(self, rows: int) -> None:
        """Checks a number of rows, before anything is made of them.

        Raises:
            StatusError: See `check`.
        """
        if rows > self.max_rows:
            raise invalid_argument(
                f"Task size {rows} is larger than maximum input batch size "
                f"{self.max_rows}"
            )

    def check_arrays(self, inputs: Mapping[str, np.ndarray]) -> None:
        """Checks the rows, the texts, and the k or n of a request.

        Args:
            inputs: Arrays by name; strings are object arrays of bytes.

        Raises:
            StatusError: See `check`.
        """
        arrays = inputs.values()
        self.check_rows(max((len(a) for a in arrays if a.ndim), default=0))
        for name, array in inputs.items():
            if array.dtype == object:
                longest = max(map(len, array.flat), default=0)
                if longest > self.max_text_kb << 10:
                    raise invalid_argument(
                        f"input {name} has a text of {longest:,} bytes, more"
                        f" than the {self.max_text_kb << 10:,} that this"
                        " server reads"
                    )
            elif name in _COUNTS and array.max(initial=0) > self.max_k:
                raise invalid_argument(
                    f"{name} is {array.max()}, more than the {self.max_k} that"
                    " this server allows"
                )


_LARGEST = {
    "max_rows": 2**31 - 1,
    "max_text_kb": 2**21,
    "max_k": 2**31 - 1,
    "max_message_mb": 2047,
    "max_requests": 2**31 - 1,
}

_BYTES = {
    number: tf.as_dtype(number).size
    for number in DataType.values()
    if 0 < number < 100 and tf.as_dtype(number).size
}
"""Size of an element by its dtype; others, such as texts, count 16 bytes."""
