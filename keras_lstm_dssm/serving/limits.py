"""Bounds: how large one Predict request may be."""

import math
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from tensorflow.core.framework.tensor_pb2 import TensorProto
from tensorflow.core.framework.types_pb2 import DataType
from tensorflow_serving.apis.predict_pb2 import PredictRequest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.serving.servable import invalid_argument
from keras_lstm_dssm.settings.choices import (
    BATCH_SIZES,
    MAX_MESSAGE_MB,
    MAX_SERVED_K,
    MAX_TEXT_KB,
)

_COUNTS = ("k", "n")
"""Inputs that say how many results a row gets."""

# A reply has at most the rows and the k that the bounds allow.
REPLY_MB = 64


class Bounds(NamedTuple):
    """The largest request that is computed.

    Attributes:
        max_rows: Maximum number of rows; by default 512, the maximum of the
            exported `batching.config`.
        max_text_kb: Maximum size of one text, in KiB.
        max_k: Maximum `k` of a retriever, and `n` of a KeyVec.
        max_message_mb: Maximum size of a request, in MiB, also once a
            message that states a shape and few values is expanded to it.

    Example:
        >>> Bounds(max_rows=64).check(request)
    """

    max_rows: int = BATCH_SIZES[-1]
    max_text_kb: int = MAX_TEXT_KB
    max_k: int = MAX_SERVED_K
    max_message_mb: int = MAX_MESSAGE_MB

    def checked(self) -> "Bounds":
        """Returns these bounds, after checking that they are in range.

        Raises:
            InputError: A number is out of range.
        """
        for name, value, most in (
            ("max_rows", self.max_rows, 2**31 - 1),
            ("max_text_kb", self.max_text_kb, 2**21),
            ("max_k", self.max_k, 2**31 - 1),
            ("max_message_mb", self.max_message_mb, 2047),
        ):
            if not 1 <= value <= most:
                raise InputError(f"{name} is {value}; expected 1 to {most:,}")
        return self

    def check(self, request: PredictRequest) -> None:
        """Checks a request, before its values become tensors.

        Raises:
            StatusError: The request is above a bound (INVALID_ARGUMENT, 400
                over HTTP). The message for rows is TF Serving's.
        """
        protos = request.inputs.values()
        shapes = [proto.tensor_shape.dim for proto in protos]
        rows = max((shape[0].size for shape in shapes if shape), default=0)
        self.check_rows(rows)
        for name, proto in request.inputs.items():
            self._check_size(name, proto, _BYTES.get(proto.dtype, 16))
            if proto.dtype == DataType.DT_STRING:
                longest = _longest_text(name, proto)
                self._check_text(name, longest)
                if len(proto.string_val) != _elements(proto):
                    self._check_size(name, proto, longest)
            elif name in _COUNTS:
                largest = max(_whole_numbers(proto), default=0)
                self._check_count(name, largest)

    def check_arrays(self, inputs: Mapping[str, np.ndarray]) -> None:
        """Checks the inputs of a request whose size is bounded already.

        Args:
            inputs: Arrays by name; strings are object arrays of bytes.

        Raises:
            StatusError: See `check`.
        """
        arrays = inputs.values()
        self.check_rows(max((len(a) for a in arrays if a.ndim), default=0))
        for name, array in inputs.items():
            if array.dtype == object:
                self._check_text(name, max(map(len, array.flat), default=0))
            elif name in _COUNTS:
                self._check_count(name, array.max(initial=0))

    def check_rows(self, rows: int) -> None:
        """Checks a number of rows, before anything is made of them.

        Raises:
            StatusError: See `check`. The message is TF Serving's.
        """
        if rows > self.max_rows:
            raise invalid_argument(
                f"Task size {rows} is larger than maximum input batch size "
                f"{self.max_rows}"
            )

    def _check_text(self, name: str, longest: int) -> None:
        if longest > self.max_text_kb << 10:
            raise invalid_argument(
                f"input {name} has a text of {longest:,} bytes, more than the"
                f" {self.max_text_kb << 10:,} that this server reads"
            )

    def _check_count(self, name: str, largest: int) -> None:
        if largest > self.max_k:
            raise invalid_argument(
                f"{name} is {largest}, more than the {self.max_k} that this"
                " server allows"
            )

    def _check_size(self, name: str, proto: TensorProto, each: int) -> None:
        """Checks the size of the tensor that a message describes.

        A message may have fewer values than its shape has elements: the last
        value then counts for all others.
        """
        elements = _elements(proto)
        if elements * each > self.max_message_mb << 20:
            raise invalid_argument(
                f"input {name} is a tensor of {elements:,} elements, more"
                f" than fit into the {self.max_message_mb} MiB of a request"
            )


def _elements(proto: TensorProto) -> int:
    return math.prod(dim.size for dim in proto.tensor_shape.dim)


def _longest_text(name: str, proto: TensorProto) -> int:
    """Returns the number of bytes of the longest text of an input."""
    if proto.string_val:
        return max(map(len, proto.string_val))
    lengths = _lengths(name, proto.tensor_content)
    return max(islice(lengths, max(_elements(proto), 0)), default=0)


def _lengths(name: str, content: bytes) -> Iterator[int]:
    """Yields the lengths of texts in `tensor_content`.

    TensorFlow writes all lengths first, as varints, and then the texts. The
    number of texts is in the shape; here the lengths end where the texts
    begin, which is where the sum of the lengths fills the rest.
    """
    position, total = 0, 0
    while position + total < len(content):
        length, shift = 0, 0
        while True:
            if position == len(content) or shift > 63:
                raise invalid_argument(f"tensor parsing error: {name}")
            byte = content[position]
            position += 1
            length |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        total += length
        yield length


def _whole_numbers(proto: TensorProto) -> list[int]:
    """Returns the values of an int32 or int64 input, in either form."""
    if proto.tensor_content:
        wide = proto.dtype == DataType.DT_INT64
        size = 8 if wide else 4
        content = proto.tensor_content
        content = content[: len(content) // size * size]
        return np.frombuffer(content, np.int64 if wide else np.int32).tolist()
    return [*proto.int_val, *proto.int64_val]


_BYTES = {
    number: tf.as_dtype(number).size
    for number in DataType.values()
    if 0 < number < 100 and tf.as_dtype(number).size
}
