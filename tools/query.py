"""Sends queries to a server over gRPC and prints its replies.

This is the work of the program lstm-dssm-query. Its help and its flags are in
`tools/flags/query.py`, which is imported first and without TensorFlow.
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.tools.flags.query import COMMAND_LINE, FLAGS
from lstm_dssm_client.grpc_client import Client, tls_credentials
from lstm_dssm_client.options import read_token
from lstm_dssm_client.signatures import (
    DEFAULT,
    KEYS,
    Hit,
    KeyParts,
    Signature,
    VersionStatus,
)


def main(queries: list[str]) -> dict[str, Any]:
    """Prints and returns the result of each query, or the states."""
    if not queries and not FLAGS.status:
        raise InputError('no query; give one or more, such as "angle bracket"')
    default = "query_encoder" if FLAGS.vectors else "retriever"
    model = FLAGS.model or default
    version = number_or_label(FLAGS.version)
    options = _security_options()
    with Client(FLAGS.server, FLAGS.timeout, **options) as client:
        if FLAGS.status:
            return print_status(model, client.status(model))
        if FLAGS.vectors:
            vectors = client.encode(queries, model, version)
            return print_vectors(queries, vectors.tolist())
        signatures = client.signatures(model, version)
        if is_scorer(signatures):
            query, *documents = queries
            if not documents:
                raise InputError(
                    f"no document; give the query, here {query!r:.60}, and "
                    f"then the documents that {model} scores"
                )
            scores = client.score(query, documents, model, version)
            return print_scores(query, documents, scores.tolist())
        if KEYS in signatures:
            parts = client.keys(queries, FLAGS.k, model, version)
            return print_key_parts(queries, parts)
        hits = client.search(queries, FLAGS.k, model, version, FLAGS.tags)
        return print_hits(queries, hits)


def _security_options() -> dict[str, Any]:
    """Returns the arguments `credentials` and `token` of a `Client`."""
    files = (FLAGS.tls_ca, FLAGS.tls_cert, FLAGS.tls_key)
    return {
        "credentials": (
            tls_credentials(*files) if FLAGS.tls or any(files) else None
        ),
        "token": read_token(FLAGS.token_file) if FLAGS.token_file else None,
    }


def number_or_label(text: str | None) -> int | str | None:
    """Returns a version's number where the text is one, or else its label."""
    if text and text.isascii() and text.isdecimal():
        return int(text)
    return text


def is_scorer(signatures: Mapping[str, Signature]) -> bool:
    """Returns whether signatures are those of a pair scorer."""
    signature = signatures.get(DEFAULT)
    return bool(signature and signature.inputs.keys() == {"query", "document"})


def print_status(
    model: str, versions: Mapping[int, VersionStatus]
) -> dict[str, Any]:
    """Prints the state of each version, and returns them for JSON."""
    for version, (state, code, message) in versions.items():
        problem = f"  {code}: {message}" if message else ""
        print(f"{model} version {version}  {state}{problem}")
    return {
        "model": model,
        "versions": {
            str(v): status._asdict() for v, status in versions.items()
        },
    }


def print_hits(
    queries: Sequence[str], hits_of_queries: Sequence[Sequence[Hit]]
) -> dict[str, Any]:
    """Prints each query with its hits below, and returns them for JSON."""
    results = []
    for query, hits in zip(queries, hits_of_queries, strict=True):
        print(query)
        for rank, hit in enumerate(hits, start=1):
            print(f"{rank:4}  {hit.score:7.4f}  {hit.id}")
        results.append(
            {"query": query, "hits": [hit._asdict() for hit in hits]}
        )
    return {"queries": results}


def print_scores(
    query: str, documents: Sequence[str], scores: Sequence[float]
) -> dict[str, Any]:
    """Prints each document with its score, and returns them for JSON."""
    hits = sorted(
        map(Hit, documents, scores), key=lambda hit: hit.score, reverse=True
    )
    for hit in hits:
        print(f"{hit.score:.4f}\t{hit.id}")
    return {"queries": [{"query": query, "hits": [h._asdict() for h in hits]}]}


def print_key_parts(
    documents: Sequence[str], parts_of_documents: Sequence[KeyParts]
) -> dict[str, Any]:
    """Prints key sentences and words of documents; returns them for JSON."""
    results = []
    for document, parts in zip(documents, parts_of_documents, strict=True):
        print(document)
        for rank, (sentence, p) in enumerate(parts.sentences, start=1):
            print(f"{rank:4}  {p:7.4f}  {sentence}")
        print("     ", ", ".join(parts.words))
        results.append(
            {
                "document": document,
                "sentences": [
                    {"sentence": sentence, "probability": p}
                    for sentence, p in parts.sentences
                ],
                "words": parts.words,
            }
        )
    return {"documents": results}


def print_vectors(
    queries: Sequence[str], vectors: Sequence[Sequence[float]]
) -> dict[str, Any]:
    """Prints each query with its vector below, and returns them for JSON."""
    results = []
    for query, vector in zip(queries, vectors, strict=True):
        print(query)
        print("     ", " ".join(f"{value:.4f}" for value in vector))
        results.append({"query": query, "vector": vector})
    return {"queries": results}


run = COMMAND_LINE.program(main)

if __name__ == "__main__":
    sys.exit(run())
