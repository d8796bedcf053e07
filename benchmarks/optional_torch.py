"""optional_torch: a message instead of the peers where there is no PyTorch."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def optional_torch() -> Iterator[None]:
    """Skip the rest of a block when it imports PyTorch without success.

    One line on standard error then says how to install PyTorch. An error
    about any other module is raised.

    Example:
    >>> with optional_torch():
    ...     from keras_lstm_dssm.benchmarks.torch_towers import TorchTowers
    ...
    ...     peers["torch"] = TorchTowers()
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        print(
            "no PyTorch peer: pip install torch==2.13.0, into this Python",
            file=sys.stderr,
        )
