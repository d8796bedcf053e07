"""What a test process would otherwise keep until its end."""

import ctypes
import gc
import os

from tensorflow.python.framework import ops

GROWTH = 300 << 20
"""Bytes by which a process may grow before its graphs are released."""

_PAGE = os.sysconf("SC_PAGE_SIZE")
_released_at = 0


def release_graphs_if_large() -> None:
    """Calls `release_graphs` if the process has grown since the last call.

    A release searches all objects, which takes as long as several tests.
    """
    global _released_at
    if _resident_bytes() > _released_at + GROWTH:
        release_graphs()
        _released_at = _resident_bytes()


def release_graphs() -> None:
    """Frees the graphs of models that no test refers to any more.

    TensorFlow registers each use of `tf.custom_gradient` in a graph under a
    name of its own, for good, and with it the whole graph: about 20 MB for
    each training function that was traced. The gradients of a training
    function are computed while it is traced and the entries are not needed
    after that.
    """
    registry = ops.gradient_registry._registry
    for name in list(registry):
        if name.startswith("CustomGradient-"):
            del registry[name]
    gc.collect()
    # Give free memory back to the system: TensorFlow's threads allocate in
    # arenas of their own, which otherwise only grow.
    ctypes.CDLL(None).malloc_trim(0)


def _resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * _PAGE
