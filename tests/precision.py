"""Default dtypes of Keras, set for the length of a `with` block."""

from collections.abc import Iterator
from contextlib import contextmanager

import keras


@contextmanager
def precision(dtype: str) -> Iterator[None]:
    """Set the default dtype of Keras's variables and layers."""
    floatx, policy = keras.config.floatx(), keras.config.dtype_policy()
    keras.config.set_floatx(dtype)
    keras.config.set_dtype_policy(
        dtype
    )  # follows floatx only until it is first read
    try:
        yield
    finally:
        keras.config.set_floatx(floatx)
        keras.config.set_dtype_policy(policy)
