"""Arrays become messages that TensorFlow reads as the same arrays."""

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.serving.servable import to_proto


@pytest.mark.parametrize(
    "dtype",
    [
        "bool", "float16", "bfloat16", "float32", "float64", "int8", "int16",
        "int32", "int64", "uint8", "uint16", "uint32", "uint64", "complex64",
    ],
)  # fmt: skip
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0), (2, 2)])
def test_numbers(dtype: str, shape: tuple[int, ...]) -> None:
    values = np.arange(np.prod(shape)).reshape(shape) + 1
    values = values.astype(tf.as_dtype(dtype).as_numpy_dtype)
    proto = to_proto(values)
    read = tf.make_ndarray(proto)
    assert read.dtype == values.dtype
    np.testing.assert_array_equal(read, values)
    parsed = tf.io.parse_tensor(proto.SerializeToString(), dtype).numpy()
    np.testing.assert_array_equal(np.asarray(parsed), values)
    assert not proto.tensor_content or dtype == "complex64"


def test_strings() -> None:
    values = np.array([[b"a", b""], [b"\xff\0", b"long" * 9]], object)
    read = tf.make_ndarray(to_proto(values))
    assert read.tolist() == values.tolist()


def test_numbers_of_dtypes_without_a_field() -> None:
    """They are in `tensor_content`, where TensorFlow itself reads them."""
    values = np.array([[0.5, -2.0], [1.5, 0.0]])
    values = values.astype(tf.as_dtype("float8_e4m3fn").as_numpy_dtype)
    proto = to_proto(values)
    assert len(proto.tensor_content) == 4
    read = tf.make_ndarray(proto)
    assert read.dtype == values.dtype
    np.testing.assert_array_equal(
        read.astype(np.float32), values.astype(np.float32)
    )
