"""One way to search in one fresh process: `python -m ... WAY FOLDER QUERIES`.

A process of its own, because memory is the process's. FOLDER holds
`titles.npy`, `queries.txt` and `models/`, as `retriever_suite` makes them.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from keras_lstm_dssm.benchmarks.measure import memory_megabytes, percentiles
from keras_lstm_dssm.serving.saved_models import SavedEncoder, SavedRetriever

SIZES = (1, 32)
"""Queries at once."""

K = 10
_LARGEST = 512
_FEWEST_CALLS = 20


def measure_way(way: str, folder: Path, count: int) -> dict[str, Any]:
    """Times searches for the ten best, text to rows.

    Args:
        way: `float32` or `int8`, the retriever, or `numpy`: the exported
            encoder, the plain matrix product and `argpartition`.
        folder: See above.
        count: Queries of a measurement, one a call; larger batches hold as
            many together, but make 20 calls or more.

    Returns:
        `batch_1` and `batch_32`, each with `p50_ms` and `p99_ms` of a call;
        `resident_megabytes`, by which memory grew when encoder, vectors and
        ids were loaded and used; `peak_megabytes`, the same at its highest,
        when 512 queries were answered at once.
    """
    queries = (folder / "queries.txt").read_text("utf-8").splitlines()
    before = memory_megabytes("VmRSS")
    search = _numpy(folder) if way == "numpy" else _saved(folder, way)
    batches = {
        size: [
            [queries[(start + i) % len(queries)] for i in range(size)]
            for start in range(0, max(count, _FEWEST_CALLS * size), size)
        ]
        for size in SIZES
    }
    found: dict[str, Any] = {}
    for size, texts in batches.items():
        percentiles(search, texts[:3])  # the first calls allocate
        p50, p99 = percentiles(search, texts)
        found[f"batch_{size}"] = {"p50_ms": p50, "p99_ms": p99}
    found["resident_megabytes"] = memory_megabytes("VmRSS") - before
    search([queries[i % len(queries)] for i in range(_LARGEST)])
    return found | {"peak_megabytes": memory_megabytes("VmHWM") - before}


def numpy_search(
    vectors: np.ndarray, titles: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Finds the k best rows of each vector by one matrix product.

    Args:
        vectors: Queries, `[batch, d]`.
        titles: `[n, d]`.
        k: n at most.

    Returns:
        Scores `[batch, k]`, descending, and rows.
    """
    scores = vectors @ titles.T
    rows = np.argpartition(scores, -k, axis=1)[:, -k:]
    best = np.take_along_axis(scores, rows, axis=1)
    order = np.argsort(-best, axis=1)
    return (
        np.take_along_axis(best, order, axis=1),
        np.take_along_axis(rows, order, axis=1),
    )


def _numpy(folder: Path) -> Callable[[list[str]], Any]:
    encoder = SavedEncoder(folder / "models" / "query_encoder")
    titles = np.load(folder / "titles.npy")
    return lambda texts: numpy_search(encoder.encode(texts), titles, K)


def _saved(folder: Path, kind: str) -> Callable[[list[str]], Any]:
    retriever = SavedRetriever(folder / "models" / kind)
    return lambda texts: retriever.search(texts, K)


if __name__ == "__main__":
    way, folder, count = sys.argv[1:]
    print(json.dumps(measure_way(way, Path(folder), int(count))))
