r"""Build a faiss index over exported vectors and measure its recall.

With tens of millions of documents, an index is faster than an exported
retriever, but misses some of the nearest documents. Needs
pip install "keras-lstm-dssm[faiss]".

Example:
  lstm-dssm-encode --saved_model=MODELS/document_encoder \
      --input=titles.txt --output=titles.npy --ids=titles.ids
  lstm-dssm-encode --saved_model=MODELS/query_encoder \
      --input=queries.txt --output=queries.npy
  lstm-dssm-index --vectors=titles.npy --queries=queries.npy \
      --factory=HNSW32 --search=efSearch=128 --output=titles.faiss

--vectors can also be a folder of parts that lstm-dssm-encode --shard has
written: they are read one at a time, and their ids are written to OUTPUT.ids;
their tags, if they have any, to OUTPUT.tags.

Prints the index's size and the time to build it and, with --queries, its
recall compared with exact search and the milliseconds for a query. Row i of
the vectors is document i of the index.
"""

import sys
import time
from pathlib import Path
from typing import Any

from keras_lstm_dssm.command_line import Program
from keras_lstm_dssm.errors import InputError, import_optional
from keras_lstm_dssm.files import check_writable

program = Program(__doc__, required=["vectors", "output"])
FLAGS = program.flags
program.string(
    "vectors", None, "The documents' vectors, .npy, or a folder of parts."
)
program.string(
    "queries", None, "Vectors of queries to measure the recall with, .npy."
)
program.string(
    "factory", "HNSW32",
    "Kind of index, as faiss.index_factory takes it: HNSW32, IVF1024,Flat.",
)  # fmt: skip
program.string(
    "search", "",
    "Search parameters of the index: efSearch=128 (HNSW), nprobe=16 (IVF). "
    "Larger values raise the recall and the time for a query.",
)  # fmt: skip
program.string("output", None, "File of the index to write.")


_RECALL_AT = (10, 100)


def main(_: list[str]) -> dict[str, Any]:
    """Builds, writes and measures the index; returns the results."""
    import numpy as np

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

    check_writable(FLAGS.output)
    import_optional("faiss", "faiss")  # fails before the work if missing
    vectors: np.ndarray | EncodedParts
    if has_parts(FLAGS.vectors):
        vectors = EncodedParts(FLAGS.vectors)
        rows, width = vectors.rows, vectors.dimension
    else:
        vectors = read_vectors(FLAGS.vectors)
        rows, width = vectors.shape
    queries = read_vectors(FLAGS.queries) if FLAGS.queries else None
    if queries is not None and queries.shape[1] != width:
        raise InputError(
            f"{FLAGS.queries}: found vectors of {queries.shape[1]} numbers, "
            f"expected {width} as in {FLAGS.vectors}"
        )
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


run = program.main(main)

if __name__ == "__main__":
    sys.exit(run())
