"""The decorator that registers every Keras class of this package."""

from collections.abc import Callable
from typing import TypeVar

import keras

PACKAGE = "keras_lstm_dssm"

T = TypeVar("T")


def register(cls: T) -> T:
    """Register a class with Keras under the name of this package.

    A fresh process that has imported `keras_lstm_dssm` can then load saved
    models without `custom_objects`.
    """
    decorate: Callable[[T], T] = keras.saving.register_keras_serializable(
        package=PACKAGE
    )
    return decorate(cls)
