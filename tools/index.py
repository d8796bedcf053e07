"""Builds a faiss index over exported vectors; measures its recall.

This is the work of the program lstm-dssm-index. Its help and its flags are in
`tools/flags/index.py`, which is imported first and without TensorFlow.
"""

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from keras_lstm_dssm.errors import InputError, import_optional
from keras_lstm_dssm.export.bulk.faiss_index import (
    build_index,
    index_recall,
    write_index,
)
from keras_lstm_dssm.export.bulk.parts import (
    EncodedParts,
    has_parts,
    read_vectors,
)
from keras_lstm_dssm.files import check_writable
from keras_lstm_dssm.tools.flags.index import COMMAND_LINE, FLAGS

_RECALL_AT = (10, 100)


def main(_: list[str]) -> dict[str, Any]:
    """Builds, writes and measures the index; returns the results."""
    check_writable(FLAGS.output)
    import_optional("faiss", "faiss")  # fails before the work if missing
    vectors: np.ndarray | EncodedParts
    if has_parts(FLAGS.vectors):
        vectors = EncodedParts(FLAGS.vectors)
        rows, width = vectors.rows, vectors.dimension
    else:
        vectors = read_vectors(FLAGS.vectors)
        rows, width = vectors.shape
    queries = _queries(width) if FLAGS.queries else None
    start = time.perf_counter()
    index = build_index(vectors, FLAGS.factory, FLAGS.search)
    results: dict[str, Any] = {
        "documents": rows,
        "build_seconds": time.perf_counter() - start,
    }
    write_index(FLAGS.output, index)
    if isinstance(vectors, EncodedParts):
        vectors.write_lines(FLAGS.output)
    results["index_megabytes"] = Path(FLAGS.output).stat().st_size / 1e6
    if queries is not None:
        start = time.perf_counter()
        for query in queries:
            index.search(query[np.newaxis], _RECALL_AT[0])
        seconds = time.perf_counter() - start
        results["query_ms"] = 1000 * seconds / len(queries)
        for k in (k for k in _RECALL_AT if k <= rows):
            results[f"recall@{k}"] = index_recall(index, vectors, queries, k)
    for name, value in results.items():
        print(f"{name:16} {value:,.4g}")
    return results


def _queries(width: int) -> np.ndarray:
    queries = read_vectors(FLAGS.queries)
    if queries.shape[1] != width:
        raise InputError(
            f"{FLAGS.queries}: found vectors of {queries.shape[1]} numbers, "
            f"expected {width} as in {FLAGS.vectors}"
        )
    return queries


run = COMMAND_LINE.program(main)

if __name__ == "__main__":
    sys.exit(run())
