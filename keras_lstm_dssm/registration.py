"""One name under which every Keras class of this package is registered."""

from collections.abc import Callable
from typing import TypeVar

import keras

PACKAGE = "keras_lstm_dssm"

T = TypeVar("T")


def register(cls: T) -> T:
    """Registers a class with Keras, so that saved models find it again.

    Loading in a fresh process needs `import keras_lstm_dssm` and no
    `custom_objects`.
    """
    decorate: Callable[[T], T] = keras.saving.register_keras_serializable(
        package=PACKAGE
    )
    return decorate(cls)
