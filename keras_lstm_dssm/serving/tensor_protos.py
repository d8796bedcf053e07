"""Converts NumPy arrays to `TensorProto` messages, as TF Serving does."""

import numpy as np
import tensorflow as tf
from tensorflow.core.framework.tensor_pb2 import TensorProto

_FIELDS = {
    tf.bool: "bool_val",
    tf.float16: "half_val",
    tf.bfloat16: "half_val",
    tf.float32: "float_val",
    tf.float64: "double_val",
    tf.int8: "int_val",
    tf.int16: "int_val",
    tf.int32: "int_val",
    tf.int64: "int64_val",
    tf.uint8: "int_val",
    tf.uint16: "int_val",
    tf.uint32: "uint32_val",
    tf.uint64: "uint64_val",
    tf.string: "string_val",
}


def to_proto(
    values: np.ndarray, proto: TensorProto | None = None
) -> TensorProto:
    """Writes an array into the typed field of its dtype.

    TF Serving replies with typed fields, whereas `tf.make_tensor_proto` packs
    numbers into `tensor_content`. With typed fields here, a client that reads
    only one of the two forms behaves in the same way with both servers.
    `tf.make_ndarray` reads either form.

    Args:
        values: Array of any shape; strings as an object array of bytes.
        proto: An empty message to write into, such as an output of a reply;
            by default a new message.

    Returns:
        The message written to.

    Raises:
        TypeError: The dtype has no counterpart in TensorFlow, or an element
            of an object array is not bytes.

    Example:
        >>> to_proto(np.array([0.5], np.float32))
        dtype: DT_FLOAT
        tensor_shape { dim { size: 1 } }
        float_val: 0.5
    """
    proto = TensorProto() if proto is None else proto
    dtype = tf.as_dtype(values.dtype)
    if dtype not in _FIELDS:
        proto.CopyFrom(tf.make_tensor_proto(values))
        return proto
    proto.dtype = dtype.as_datatype_enum
    proto.tensor_shape.SetInParent()  # set for a scalar, too
    for size in values.shape:
        proto.tensor_shape.dim.add(size=size)
    if _FIELDS[dtype] == "half_val":  # holds the 16 bits of each number
        values = values.view(np.uint16)
    # `tolist` is five times as fast as passing NumPy's own scalars.
    getattr(proto, _FIELDS[dtype]).extend(values.ravel().tolist())
    return proto
