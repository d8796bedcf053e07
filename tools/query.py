"""Asks a server, TF Serving or lstm-dssm-serve, over gRPC.

Prints the ids of the best titles of each query with their scores: the ids
given at export, or the titles themselves where their file had no ids. With
`--vectors` it prints the queries' vectors, with `--status` where the versions
of a model stand.

Example:
  lstm-dssm-query --server=127.0.0.1:8500 --k=3 "angle bracket" "deck screws"
  lstm-dssm-query --server=127.0.0.1:8500 --model=retriever --status
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from absl import flags

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.serving.client.calls import Hit, Version, VersionStatus
from keras_lstm_dssm.serving.client.grpc_clients import Client
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
_VERSION = flags.DEFINE_string(
    "version", None, "The model's version or its label, by default the newest.",
    flag_values=FLAGS,
)  # fmt: skip
_STATUS = flags.DEFINE_bool(
    "status", False, "Print the state of each version instead.",
    flag_values=FLAGS,
)  # fmt: skip
_TIMEOUT = flags.DEFINE_float(
    "timeout", 5.0, "Seconds to wait for an answer.", 1e-3, flag_values=FLAGS
)


def main(queries: list[str]) -> dict[str, Any]:
    """Prints and returns the answer to each query."""
    if not queries and not _STATUS.value:
        raise InputError('no query; give one or more, such as "angle bracket"')
    default = "query_encoder" if _VECTORS.value else "retriever"
    model = _MODEL.value or default
    version = _version(_VERSION.value)
    with Client(_SERVER.value, timeout=_TIMEOUT.value) as client:
        if _STATUS.value:
            return print_status(model, client.status(model))
        if _VECTORS.value:
            vectors = client.encode(queries, model, version)
            return print_vectors(queries, vectors.tolist())
        found = client.search(queries, _K.value, model, version)
        return print_hits(queries, found)


def _version(text: str | None) -> Version:
    """A number is a version, anything else a label."""
    number = text and text.isascii() and text.isdecimal()
    return int(text) if text and number else text


def print_status(
    model: str, versions: Mapping[int, VersionStatus]
) -> dict[str, Any]:
    """Prints the state of each version, and returns them for JSON."""
    for version, (state, code, message) in versions.items():
        broken = f"  {code}: {message}" if message else ""
        print(f"{model} version {version}  {state}{broken}")
    return {
        "model": model,
        "versions": {
            str(v): status._asdict() for v, status in versions.items()
        },
    }


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
