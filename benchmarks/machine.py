"""The machine: its name, its versions and its limits."""

import datetime
import importlib.metadata
import os
import pathlib
import platform
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.benchmarks.measure import seconds

_PACKAGES = ("keras-lstm-dssm", "tensorflow", "keras", "numpy", "torch")
_SIDE = 2048
_COPIED = 1 << 26
_TRIES = 10


def describe_machine() -> dict[str, Any]:
    """Names the machine and measures its limits.

    Returns:
        `cpu`, `cores`, `memory_gigabytes`, `load` (before the benchmark: a
        figure means little when others use the machine), `date`, `system`,
        `python`, `versions`, and the two limits: `gemm_flops`, floating
        point operations a second in TensorFlow's float32 matrix product, and
        `copy_bytes`, bytes read and written a second in a copy by all cores.
        Both are the best of several tries: the machine can do that much.
    """
    cores = os.cpu_count() or 1
    load = os.getloadavg()[0]
    rates = {
        "gemm_flops": max(gemm_rate() for _ in range(_TRIES)),
        "copy_bytes": max(copy_rate(cores) for _ in range(_TRIES)),
    }
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cpu": _cpu(),
        "cores": cores,
        "memory_gigabytes": round(pages / 1e9, 1),
        "load": load,
        "date": datetime.date.today().isoformat(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": _versions(),
        **rates,
    }


def gemm_rate() -> float:
    """Floating point operations a second in a large float32 product."""
    a = tf.random.uniform([_SIDE, _SIDE])
    return 2 * _SIDE**3 / seconds(lambda: tf.matmul(a, a).numpy())


def copy_rate(threads: int) -> float:
    """Bytes read and written a second when all threads copy arrays."""
    source = [np.ones(_COPIED, np.uint8) for _ in range(threads)]
    target = [np.zeros_like(array) for array in source]
    with ThreadPoolExecutor(threads) as pool:
        taken = seconds(lambda: list(pool.map(np.copyto, target, source)))
    return 2 * threads * _COPIED / taken


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _cpu() -> str:
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":")[1] for line in lines if "model name" in line]
    return names[0].strip() if names else platform.machine()
