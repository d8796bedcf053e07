"""Describes the machine, and estimates the minimum time of a training step."""

import datetime
import importlib.metadata
import os
import pathlib
import platform
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from benchmarks.clocks import seconds
from keras_lstm_dssm.text import WordBatch

_PACKAGES = ("keras-lstm-dssm", "tensorflow", "keras", "numpy", "torch", "jax")
_SIDE = 2048  # number of rows and of columns of the multiplied matrices
_COPIED = 1 << 26  # number of bytes that each thread copies
_TRIES = 10
_FLOAT_BYTES = 4


def describe_machine() -> dict[str, Any]:
    """Describes the machine, and the FLOP/s and bytes/s of all its cores."""
    cores = os.cpu_count() or 1
    load = os.getloadavg()[0]  # read before the measurements add to it
    rates = {
        "gemm_flops": max(gemm_rate(cores) for _ in range(_TRIES)),
        "copy_bytes": max(copy_rate(cores) for _ in range(_TRIES)),
    }
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cpu": _cpu(),
        "cores": cores,
        "memory_gigabytes": round(memory / 1e9, 1),
        "load": load,
        "date": datetime.date.today().isoformat(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": _versions(),
        **rates,
    }


def gemm_rate(threads: int) -> float:
    """Returns the FLOP/s of float32 matrix products in `threads` threads."""
    a = tf.random.uniform([_SIDE, _SIDE])

    def product(_: int) -> None:
        tf.matmul(a, a).numpy()

    # Products run in a pool: TensorFlow may use a single thread for a product.
    with ThreadPoolExecutor(threads) as pool:
        taken = seconds(lambda: list(pool.map(product, range(threads))))
    return 2 * threads * _SIDE**3 / taken


def copy_rate(threads: int) -> float:
    """Returns the bytes read and written per second by `threads` threads."""
    source = [np.ones(_COPIED, np.uint8) for _ in range(threads)]
    target = [np.zeros_like(array) for array in source]
    with ThreadPoolExecutor(threads) as pool:
        taken = seconds(lambda: list(pool.map(np.copyto, target, source)))
    return 2 * threads * _COPIED / taken


def _versions() -> dict[str, str]:
    versions = {}
    for package in _PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    return versions


def _cpu() -> str:
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":")[1] for line in lines if "model name" in line]
    return names[0].strip() if names else platform.machine()


class StepWork(NamedTuple):
    """The estimated minimum work of a tower or of a training step."""

    flops: int  # floating point operations in matrix products
    bytes: int  # bytes read and written

    def seconds(self, gemm_flops: float, copy_bytes: float) -> float:
        """Returns the time for the operations plus the time for the bytes."""
        return self.flops / gemm_flops + self.bytes / copy_bytes


def tower_work(words: WordBatch, cells: int, gates: int) -> StepWork:
    """Estimates the work of one tower for one batch, forward and backward.

    Each element of an array is counted as written once and read once.
    """
    steps = int(tf.reduce_sum(words.lengths))
    distinct = int(tf.reduce_max(words.words)) + 1
    rows = int(tf.size(words.trigrams))
    width = gates * cells
    floats = (
        6 * rows * width  # rows of weights, momentum and gradients
        + 4 * distinct * width  # gates' inputs for each word, and the gradients
        + 4 * steps * width  # gates' inputs for each step, and the gradients
        + 2 * steps * (width + 2 * cells)  # gates, cell states and outputs
    )
    # y: outputs of the LSTM; W_rec: recurrent weights; dz: gradients of the
    # gates' inputs. Each of the products y(t-1) W_rec, dz W_rec^T and y^T dz
    # takes 2 * steps * cells * width operations.
    return StepWork(6 * steps * cells * width, _FLOAT_BYTES * floats)


def step_work(
    query: WordBatch, document: WordBatch, cells: int, gates: int
) -> StepWork:
    """Estimates the work of a training step with in-batch negatives."""
    towers = [tower_work(words, cells, gates) for words in (query, document)]
    # 1 matrix product for cosines, 2 for gradients of vectors. Cosines, softmax
    # values and gradients of cosines are each written once and read once.
    cosines = int(tf.size(query.text_index)) * int(tf.size(document.lengths))
    return StepWork(
        sum(work.flops for work in towers) + 6 * cosines * cells,
        sum(work.bytes for work in towers) + 6 * cosines * _FLOAT_BYTES,
    )
