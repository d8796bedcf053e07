"""All settings of a Keras layer as bytes, for a fingerprint."""

import json
from collections.abc import Container, Mapping
from types import CodeType, FunctionType
from typing import Any

import keras

from keras_lstm_dssm.private_api import all_layers

_LEFT_OUT = frozenset((
    "build_config",  # shapes, which the weights have, too
    "compile_config",  # for training
    "module",  # "__main__" in one process and a package in another one
    "shared_object_id",  # an address in memory
    "trainable",
))  # fmt: skip


def layer_settings(layer: keras.layers.Layer) -> bytes:
    """Returns all settings of a layer and of those inside, as canonical JSON.

    They are what `keras.saving.serialize_keras_object` returns, without what
    does not change the vectors, and without names of layers: Keras numbers
    names, and a copy of a model has other numbers. If Keras cannot serialise
    the layer, they are those of the layers inside that it can serialise.
    """
    layers = all_layers(layer)
    serialised = _serialised(layer)
    if serialised is None:
        serialised = [_serialised(each) for each in layers]
    names = frozenset(each.name for each in layers)
    lambdas = [
        _code(each.function.__code__)
        for each in layers
        if isinstance(each, keras.layers.Lambda)
        and isinstance(each.function, FunctionType)
    ]
    return json.dumps(
        [_plain(serialised, names, {}), lambdas],
        sort_keys=True,
        default=_name_of,
    ).encode()


def _serialised(layer: keras.layers.Layer) -> Any:
    """Returns a layer's settings, `None` if Keras cannot serialise it."""
    try:
        return keras.saving.serialize_keras_object(layer)
    except (NotImplementedError, TypeError, ValueError, AttributeError):
        return None


def _plain(
    value: Any, names: Container[str], numbers: Mapping[str, int]
) -> Any:
    """Returns settings without names of layers.

    `numbers` are the places in a functional model of its layers and
    operations, by which its connections name them.
    """
    if isinstance(value, Mapping):
        if "input_layers" in value and "layers" in value:
            numbers = {
                each["name"]: place
                for place, each in enumerate(value["layers"])
            }
        if value.get("class_name") == "__lambda__":
            rest = {k: v for k, v in value["config"].items() if k != "code"}
            return _plain(rest, names, numbers)
        return {
            str(key): _plain(each, names, numbers)
            for key, each in value.items()
            if key not in _LEFT_OUT
            and not (
                key == "name"
                and isinstance(each, str)
                and (each in names or each in numbers)
            )
        }
    if isinstance(value, list | tuple):
        match value:
            # A connection: the layer, its call and the place of the result.
            case [str(name), int(), int()] if name in numbers:
                return [numbers[name], *value[1:]]
        return [_plain(each, names, numbers) for each in value]
    return value


def _code(code: CodeType) -> list[Any]:
    """Describes the byte code of a function, equally in each process.

    The bytes that Keras stores of a lambda differ between processes.
    """
    constants = [
        _code(each)
        if isinstance(each, CodeType)
        else sorted(map(repr, each))
        if isinstance(each, frozenset)
        else repr(each)
        for each in code.co_consts
    ]
    return [code.co_code.hex(), constants, code.co_names, code.co_varnames]


def _name_of(value: Any) -> str:
    """Returns the name of a function, or of the type of another value."""
    return getattr(value, "__qualname__", type(value).__qualname__)
