"""Registers Keras classes, and reads their constructor arguments."""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import keras

PACKAGE = "keras_lstm_dssm"

T = TypeVar("T")


def register(cls: T) -> T:
    """Registers a class with Keras, for `load_model` in fresh processes."""
    decorate: Callable[[T], T] = keras.saving.register_keras_serializable(
        package=PACKAGE
    )
    return decorate(cls)


def added_arguments(instance: Any, base: type) -> dict[str, Any]:
    """Returns constructor arguments of an instance: name -> value.

    The arguments are from the constructors of `base`, of the instance's class,
    and of the classes between these two.
    """
    names = [
        name
        for cls in reversed(type(instance).__mro__)
        if issubclass(cls, base) and "__init__" in vars(cls)
        for name in inspect.signature(cls).parameters
    ]
    # Keras stores `name` and `dtype`.
    return {
        name: getattr(instance, name)
        for name in names
        if name not in ("name", "dtype") and hasattr(instance, name)
    }


class Configured:
    """Mixin for Keras objects whose config is their constructor arguments."""

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor arguments as a dict, for `from_config`."""
        config = super().get_config()  # type: ignore[misc]
        return {**added_arguments(self, Configured), **config}
