"""Asks a server, TF Serving or lstm-dssm-serve, over gRPC.

Prints the ids of the best titles of each query with their scores: the ids
given at export, or the titles themselves where their file had no ids. With
`--vectors` it prints the queries' vectors.

Example:
  lstm-dssm-query --server=127.0.0.1:8500 --k=3 "angle bracket" "deck screws"
"""

import sys
from collections.abc import Sequence
from typing import Any

from absl import flags

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.client import Client, Hit
from keras_lstm_dssm.tools.program import new_flags, program

FLAGS = new_flags()
_SERVER = flags.DEFINE_string(
    "server", "127.0.0.1:8500", "The server's gRPC address.", flag_values=FLAGS
)
_MODEL = flags.DEFINE_string(
    "model", None,
    "Model on the server; by default retriever, with --vectors query_encoder.",
    flag_values=FLAGS,
)  # fmt: skip
_K = flags.DEFINE_integer(
    "k", 5, "Titles for each query.", 1, flag_values=FLAGS
)
_VECTORS = flags.DEFINE_bool(
    "vectors", False, "Print the queries' vectors instead.", flag_values=FLAGS
)
_TIMEOUT = flags.DEFINE_float(
    "timeout", 5.0, "Seconds to wait for an answer.", 1e-3, flag_values=FLAGS
)


def main(queries: list[str]) -> dict[str, Any]:
    """Prints and returns the answer to each query."""
    if not queries:
        raise InputError('no query; give one or more, such as "angle bracket"')
    with Client(_SERVER.value, timeout=_TIMEOUT.value) as client:
        if _VECTORS.value:
            model = _MODEL.value or "query_encoder"
            return print_vectors(
                queries, client.encode(queries, model).tolist()
            )
        model = _MODEL.value or "retriever"
        return print_hits(queries, client.search(queries, _K.value, model))


def print_hits(
    queries: Sequence[str], found: Sequence[Sequence[Hit]]
) -> dict[str, Any]:
    """Prints the hits of each query below it, and returns them for JSON."""
    results = []
    for query, hits in zip(queries, found, strict=True):
        print(query)
        for rank, hit in enumerate(hits, start=1):
            print(f"{rank:4}  {hit.score:7.4f}  {hit.id}")
        results.append(
            {"query": query, "hits": [hit._asdict() for hit in hits]}
        )
    return {"queries": results}


def print_vectors(
    queries: Sequence[str], vectors: Sequence[Sequence[float]]
) -> dict[str, Any]:
    """Prints the vector of each query below it, and returns them for JSON."""
    results = []
    for query, vector in zip(queries, vectors, strict=True):
        print(query)
        print("     ", " ".join(f"{value:.4f}" for value in vector))
        results.append({"query": query, "vector": vector})
    return {"queries": results}


run = program(main, FLAGS, __doc__, required=["server"], arguments=True)

if __name__ == "__main__":
    sys.exit(run())
