"""Keras in single or double precision for a while."""

from collections.abc import Iterator
from contextlib import contextmanager

import keras


@contextmanager
def precision(dtype: str) -> Iterator[None]:
    """Sets the dtype of Keras's own variables and of layers by default."""
    floatx, policy = keras.config.floatx(), keras.config.dtype_policy()
    keras.config.set_floatx(dtype)
    keras.config.set_dtype_policy(dtype)  # layers' own, once asked for
    try:
        yield
    finally:
        keras.config.set_floatx(floatx)
        keras.config.set_dtype_policy(policy)
