"""Optional packages: imported when used, and named when missing."""

import importlib
from types import ModuleType

from keras_lstm_dssm.errors import InputError


def import_optional(module: str, extra: str) -> ModuleType:
    """Imports a module of an optional package.

    Args:
        module: Dotted name.
        extra: The extra of this package that brings it, as in setup.py.

    Raises:
        InputError: The package is not installed; with the pip line.

    Example:
    >>> sparse = import_optional("scipy.sparse", "baselines")
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise InputError(
            f"{error.name} is not installed: pip install"
            f' "keras-lstm-dssm[{extra}]"'
        ) from error
