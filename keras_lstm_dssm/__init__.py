"""LSTM-DSSM: trains query and document encoders on click logs.

    import keras_lstm_dssm as dssm

Importing the package registers its Keras classes, so that
`keras.saving.load_model` finds the classes. The programs of the package import
`lstm_dssm_programs` before the package. In a program, the package imports
TensorFlow and registers the classes later: when the program calls
`load_package`, or at the first use of a public name. Therefore the program
parses its flags quickly.
"""

import sys
from typing import TYPE_CHECKING, Any

from keras_lstm_dssm.version import __version__ as __version__

if TYPE_CHECKING or "lstm_dssm_programs" not in sys.modules:
    from keras_lstm_dssm.public import *  # noqa: F403
    from keras_lstm_dssm.public import __all__ as __all__
else:
    from importlib import import_module
    from importlib.util import find_spec

    def __getattr__(name: str) -> Any:
        """Imports all public names, and with them TensorFlow."""
        is_public = not name.startswith("_") or name == "__all__"
        if not is_public or find_spec(f"{__name__}.{name}"):
            raise AttributeError(f"module {__name__} has no attribute {name}")
        public = import_module(f"{__name__}.public")
        values = {n: getattr(public, n) for n in public.__all__}
        globals().update(values, __all__=public.__all__)
        if name not in globals():
            raise AttributeError(f"module {__name__} has no attribute {name}")
        return globals()[name]

    def __dir__() -> list[str]:
        """Imports the public names, and lists all names."""
        return sorted({*__getattr__("__all__"), *globals()})
