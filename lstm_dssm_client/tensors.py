"""Converts NumPy arrays to messages `TensorProto`, and back."""

import math
from typing import Any

import numpy as np

from lstm_dssm_client.errors import InputError
from lstm_dssm_client.signatures import dtype_name

_KINDS = {
    "float32": (1, "float_val"),
    "float64": (2, "double_val"),
    "int32": (3, "int_val"),
    "uint8": (4, "int_val"),
    "int16": (5, "int_val"),
    "int8": (6, "int_val"),
    "string": (7, "string_val"),
    "complex64": (8, "scomplex_val"),
    "int64": (9, "int64_val"),
    "bool": (10, "bool_val"),
    "bfloat16": (14, "half_val"),
    "uint16": (17, "int_val"),
    "complex128": (18, "dcomplex_val"),
    "float16": (19, "half_val"),
    "uint32": (22, "uint32_val"),
    "uint64": (23, "uint64_val"),
}
"""Name of a dtype -> its number in TensorFlow's `DataType`, and the field."""

_NAMES = {number: name for name, (number, _) in _KINDS.items()}

_STORED = {
    "half_val": np.uint16,  # the 16 bits of each number
    "scomplex_val": np.float32,  # real and imaginary part in turn
    "dcomplex_val": np.float64,
}
"""Field -> what it holds, where that is not the tensor's own dtype."""


def has_field(values: np.ndarray) -> bool:
    """Returns whether `write_tensor` has a field for an array's dtype."""
    return dtype_name(values) in _KINDS


def write_tensor(values: np.ndarray, proto: Any) -> None:
    """Writes an array into the typed field of its dtype, as TF Serving does.

    Args:
        values: Array of any shape; strings as an object array of bytes.
        proto: An empty message `TensorProto`, of this package or of
            TensorFlow.

    Raises:
        TypeError: The dtype has no counterpart in TensorFlow, or an element
            of an object array is not bytes.
    """
    if not has_field(values):
        raise TypeError(f"there is no tensor of dtype {values.dtype}")
    proto.dtype, field = _KINDS[dtype_name(values)]
    proto.tensor_shape.SetInParent()  # set for a scalar, too
    for size in values.shape:
        proto.tensor_shape.dim.add(size=size)
    flat = values.ravel()
    if field in _STORED:
        flat = flat.astype(flat.dtype.newbyteorder("=")).view(_STORED[field])
    # `tolist` is five times as fast as passing NumPy's own scalars.
    getattr(proto, field).extend(flat.tolist())


def read_tensor(proto: Any) -> np.ndarray:
    """Returns the array that a message holds, in either of its two forms.

    Args:
        proto: A message `TensorProto`, with values in the typed field of its
            dtype, whose last value stands for those that are missing, or as
            bytes in `tensor_content`.

    Returns:
        The array; strings as an object array of bytes.

    Raises:
        InputError: The dtype is none of NumPy's.

    Example:
        >>> proto = message_class("TensorProto")(dtype=1, float_val=[0.5])
        >>> read_tensor(proto)
        array(0.5, dtype=float32)
    """
    name = dtype_of(proto.dtype)
    if name not in _KINDS:
        raise InputError(
            f"found a tensor of {name}, which NumPy does not have; ask for "
            "other outputs"
        )
    shape = [dim.size for dim in proto.tensor_shape.dim]
    field = _KINDS[name][1]
    dtype = np.dtype(object) if name == "string" else _numbers(name)
    if proto.tensor_content:
        values = np.frombuffer(proto.tensor_content, dtype).copy()
    else:
        given = getattr(proto, field)
        values = np.fromiter(given, _STORED.get(field, dtype), len(given))
        values = values.view(dtype)
        missing = math.prod(shape) - len(values)
        if missing > 0:
            last = values[-1] if len(values) else _EMPTY.get(name, 0)
            rest = np.full(missing, last, dtype)
            values = np.concatenate([values, rest])
    return values.reshape(shape)


_EMPTY = {"string": b""}


def _numbers(name: str) -> np.dtype:
    if name == "bfloat16":
        try:
            import ml_dtypes
        except ModuleNotFoundError as error:
            raise InputError(
                "the server replied with bfloat16, which needs: pip install "
                "ml_dtypes"
            ) from error
        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def dtype_of(number: int) -> str:
    """Returns NumPy's name of a number of `DataType`, `string` for texts."""
    return _NAMES.get(number, f"DataType {number}")
