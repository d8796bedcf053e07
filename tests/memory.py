"""The memory of processes, and what a test process would otherwise keep."""

import ctypes
import gc
import os

GROWTH = 315
"""Megabytes by which a process may grow before its graphs are released."""

_PAGE = os.sysconf("SC_PAGE_SIZE")
_released_at = 0.0


def release_graphs_if_large() -> None:
    """Calls `release_graphs`, which is slow, if the process has grown."""
    global _released_at
    if resident_mb() > _released_at + GROWTH:
        release_graphs()
        _released_at = resident_mb()


def release_graphs() -> None:
    """Frees the graphs of models that no test refers to any more."""
    gc.collect()
    # Give free memory back to the system: TensorFlow's threads allocate in
    # arenas of their own, which otherwise only grow.
    ctypes.CDLL(None).malloc_trim(0)


def resident_mb(pid: int | str = "self") -> float:
    """Returns the memory that a process has now."""
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * _PAGE / 1e6
