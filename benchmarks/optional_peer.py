"""optional_peer: leaves out peers whose library is not installed."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

_PEERS = {"torch": ("PyTorch", "torch==2.13.0"), "jax": ("JAX", "jax==0.10.2")}


@contextmanager
def optional_peer(library: str) -> Iterator[None]:
    """Leave out a peer, in a `with` block, if its library is not installed.

    One line on standard error then says how to install the library. An error
    about any other module is raised.

    Args:
        library: `"torch"` or `"jax"`.

    Example:
    >>> with optional_peer("torch"):
    ...     from keras_lstm_dssm.benchmarks.torch_towers import TorchTowers
    ...
    ...     peers["torch"] = TorchTowers()
    """
    name, requirement = _PEERS[library]
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != library:
            raise
        print(
            f"no {name} peer: pip install {requirement}, into this Python",
            file=sys.stderr,
        )
