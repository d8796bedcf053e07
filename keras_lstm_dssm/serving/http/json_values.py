"""Converts single JSON values of a request to the dtype of an input.

Source: https://www.tensorflow.org/tfx/serving/api_rest and
`tensorflow_serving/util/json_tensor.cc`.
"""

import math
import re
from base64 import b64decode
from collections.abc import Callable
from typing import Any

import numpy as np

from keras_lstm_dssm.serving.http.json_request import JsonError, excerpt

NUMPY_DTYPES: dict[str, Any] = {
    "float": np.float32,
    "double": np.float64,
    "int8": np.int8,
    "int16": np.int16,
    "int32": np.int32,
    "int64": np.int64,
    "uint8": np.uint8,
    "uint16": np.uint16,
    "uint32": np.uint32,
    "uint64": np.uint64,
    "bool": np.bool_,
    "string": object,
}
"""NumPy's dtypes by TensorFlow's names; strings are objects, bytes."""


def converter(dtype: str) -> Callable[[Any], Any]:
    """Returns the function from a JSON value to one of the dtype.

    Args:
        dtype: TensorFlow's name of the dtype, a key of `NUMPY_DTYPES`.

    Returns:
        A function that raises `JsonError` for a value of another type, or one
        that the dtype cannot represent.

    Raises:
        JsonError: The dtype is no key of `NUMPY_DTYPES`.

    Example:
    >>> converter("string")({"b64": "YQ"})
    b'a'
    """
    if dtype == "string":
        return _bytes
    if dtype == "bool":
        return _bool
    if dtype in ("float", "double"):
        return lambda value: _decimal(value, dtype)
    if dtype not in NUMPY_DTYPES:
        raise JsonError(f"Conversion of JSON Value to type: {dtype}")
    limits = np.iinfo(NUMPY_DTYPES[dtype])
    least, most = int(limits.min), int(limits.max)

    def integer(value: Any) -> int:
        if type(value) is not int or not least <= value <= most:
            raise _type_error(value, dtype)
        return value

    return integer


def _bytes(value: Any) -> bytes:
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError as error:
            raise JsonError(
                "JSON Parse error: The surrogate pair in string is invalid."
            ) from error
    if not isinstance(value, dict):
        raise _type_error(value, "string")
    if not is_base64(value):
        raise JsonError(
            f"JSON Value: {excerpt(value)} not formatted correctly for base64 "
            "data"
        )
    digits = re.sub(r"\s+", "", value["b64"]).rstrip("=")
    try:
        return b64decode(digits + "=" * (-len(digits) % 4), validate=True)
    except ValueError as error:
        raise JsonError("Unable to base64 decode") from error


def is_base64(value: Any) -> bool:
    """Returns whether a value stands for bytes, as `{"b64": "YQ=="}` does."""
    return (
        isinstance(value, dict)
        and len(value) == 1
        and isinstance(value.get("b64"), str)
    )


def _bool(value: Any) -> bool:
    if type(value) is not bool:
        raise _type_error(value, "bool")
    return value


def _decimal(value: Any, dtype: str) -> float:
    if type(value) is not int and type(value) is not float:
        raise _type_error(value, dtype)
    if isinstance(value, float) and not math.isfinite(value):
        return value
    limits = np.finfo(NUMPY_DTYPES[dtype])
    # Integers below 2^64 must be exact, others are decimals.
    exact = isinstance(value, int) and abs(value) < 2**64
    most: float = 2 ** (limits.nmant + 1) - 1
    if not exact:
        # The largest float32 is above itself when nine digits are written.
        most = float(limits.max) * (1 + 2.0 ** -(limits.nmant + 2))
    if abs(value) > most:
        raise JsonError(
            f"Cannot convert JSON value: {excerpt(value)} to {dtype} without "
            "loss of precision."
        )
    return float(value)


def _type_error(value: Any, dtype: str) -> JsonError:
    kind = {
        type(None): "Null",
        bool: str(value),
        dict: "Object",
        list: "Array",
        str: "String",
    }.get(type(value), "Number")
    return JsonError(
        f"JSON Value: {excerpt(value)} Type: {kind} is not of expected type: "
        f"{dtype}"
    )
