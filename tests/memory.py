"""What a test process would otherwise keep until its end."""

import ctypes
import gc

from tensorflow.python.framework import ops


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
