"""`InputError`, and checks that raise it with a one-line message."""

import importlib
import importlib.util
import numbers
from collections.abc import Collection, Iterable
from types import ModuleType
from typing import Any

from lstm_dssm_client.errors import InputError

NOT_FINITE = "the loss is NaN or infinite; lower the learning rate"
"""Message of the `InvalidArgumentError` of `fit` if the loss is not finite."""

PRECISIONS = ("float32", "float64")
"""Allowed dtypes of weights."""


class FailedTraining(InputError):
    """Raised if training has diverged, or the network has stopped learning.

    The message advises a smaller learning rate.

    Example:
    >>> issubclass(FailedTraining, InputError)
    True
    """


def import_optional(module: str, extra: str) -> ModuleType:
    """Imports a module, or raises `InputError` with the extra to install."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise _not_installed(error.name, extra) from error


def check_installed(module: str, extra: str) -> None:
    """Raises `InputError` unless an optional package is installed."""
    if importlib.util.find_spec(module) is None:
        raise _not_installed(module, extra)


def _not_installed(module: str | None, extra: str) -> InputError:
    return InputError(
        f'{module} is not installed: pip install "keras-lstm-dssm[{extra}]"'
    )


def check_at_least(
    least: int, /, optional: bool = False, **values: Any
) -> None:
    """Checks for whole numbers of `least` or more; `optional` allows `None`."""
    for name, value in values.items():
        if optional and value is None:
            continue
        whole = isinstance(value, numbers.Integral) and type(value) is not bool
        if not (whole and value >= least):
            raise InputError(
                f"{name} is {value!r}: expected a whole number of {least} or"
                f" more{', or None' if optional else ''}"
            )


def check_each_at_least(least: int, /, **lists: Iterable[Any]) -> None:
    """Checks that lists have only whole numbers of `least` or more."""
    for name, values in lists.items():
        for value in values:
            check_at_least(least, **{name: value})


def check_choice(choices: Collection[Any], **values: Any) -> None:
    """Checks that each argument has one of the allowed values."""
    for name, value in values.items():
        if value not in choices:
            allowed = ", ".join(map(str, choices))
            raise InputError(f"{name} must be one of {allowed}, not {value!r}")


def check_lists(**values: Any) -> None:
    """Checks that each argument is iterable, and is not a single text."""
    for name, value in values.items():
        if isinstance(value, str | bytes) or not isinstance(value, Iterable):
            raise InputError(
                f"{name} is {value!r:.60}: expected a list of texts"
            )


def check_precision(layer: Any) -> None:
    """Checks that a layer or a model computes in float32 or float64."""
    policy = layer.dtype_policy.name
    if policy not in PRECISIONS:
        raise InputError(
            f"{type(layer).__name__} computes in float32 or float64, not in "
            f"{policy}, in which sums of many table rows lose digits; pass "
            "dtype='float32'"
        )


def check_keras_file(filepath: Any) -> None:
    """Checks that a model is not saved as an HDF5 file."""
    if str(filepath).endswith((".h5", ".hdf5")):
        raise InputError(
            f"{filepath}: HDF5 cannot hold the rows of trigram tables; save "
            "the model as a file that ends in .keras"
        )


def check_export_format(model: Any, format: str) -> None:
    """Checks that the format of a model's `export` is a SavedModel."""
    if format != "tf_saved_model":
        raise InputError(
            f"{type(model).__name__} cannot be exported as {format!r}, which "
            "has no string operations; use format='tf_saved_model'"
        )
