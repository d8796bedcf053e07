"""Converts NumPy arrays to `TensorProto` messages, as TF Serving does."""

import numpy as np
import tensorflow as tf
from tensorflow.core.framework.tensor_pb2 import TensorProto

from lstm_dssm_client.tensors import has_field, write_tensor


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
    if has_field(values):
        write_tensor(values, proto)
    else:
        proto.CopyFrom(tf.make_tensor_proto(values))
    return proto
