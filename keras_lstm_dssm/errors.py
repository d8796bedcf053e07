"""InputError, the one error that users cause and can mend."""

import importlib
from types import ModuleType


class InputError(ValueError):
    """Something the user gave is wrong: a file, a line, a name, a port.

    The message is one line that says what was found, where, what was
    expected and what to do. The programs in `tools/` print it as it is and
    exit with code 1; anything else that is raised is a defect.
    """


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
