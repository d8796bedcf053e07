"""Send queries to a server over gRPC: TF Serving or lstm-dssm-serve.

Prints the ids of the best documents for each query with their scores. Where
the documents were exported without ids, their ids are their titles. With
`--vectors` it prints the queries' vectors instead, with `--status` the states
of the model's versions.

With the model of a pair scorer the first argument is the query, and the others
are the documents to score: it prints score, tab, document, best first. With the
model of a KeyVec it prints the k key sentences of each text, with their
probabilities, and its k key words.

Example:
  lstm-dssm-query --server=127.0.0.1:8500 --k=3 "angle bracket" "deck screws"
  lstm-dssm-query --tags=steel,zinc "angle bracket"
  lstm-dssm-query --server=db1:8500 --tls_ca=ca.crt --token_file=tokens "bolt"
  lstm-dssm-query --server=127.0.0.1:8500 --model=retriever --status
  lstm-dssm-query --model=scorer "angle bracket" "steel angle" "wood glue"
  lstm-dssm-query --model=keyvec --k=1 "A list is sorted. See below."
"""

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from keras_lstm_dssm.command_line import Program, printable
from keras_lstm_dssm.errors import InputError

if TYPE_CHECKING:
    from lstm_dssm_client.signatures import (
        ExplainedHit,
        Hit,
        KeyParts,
        Signature,
        VersionStatus,
    )

program = Program(
    __doc__, required=["server"], arguments=True, tensorflow=False
)
FLAGS = program.flags


def define_explain(program: Program) -> None:
    """Defines the flag that explains the hits of a hybrid retriever."""
    program.bool(
        "explain", False,
        "Print below each hit of a hybrid retriever what towers, words and "
        "BM25, and each word of the query, add to its score; without --tags.",
    )  # fmt: skip


def check_explain(program: Program) -> None:
    """Raises `InputError` for --explain with --tags, of another signature."""
    if program.flags.explain and program.flags.tags:
        raise InputError(
            "--explain and --tags are given, and a retriever explains the"
            " search of all documents only: leave one out"
        )


program.string("server", "127.0.0.1:8500", "The server's gRPC address.")
program.string(
    "model", None,
    "The model's name on the server; by default retriever, or query_encoder "
    "with --vectors.",
)  # fmt: skip
program.integer(
    "k", 5, "Number of documents for each query, or of key sentences.", 1
)
program.list(
    "tags", [],
    "Only documents that have any of these tags, separated by commas; by "
    "default all.",
)  # fmt: skip
define_explain(program)
program.bool("vectors", False, "Print the queries' vectors instead.")
program.string(
    "model_version", None,
    "The model's version, a number or a label; by default the newest.",
)  # fmt: skip
program.bool(
    "status", False, "Print the states of the model's versions instead."
)
program.float("timeout", 5.0, "Seconds to wait for a reply.", 1e-3)
program.bool(
    "tls", False,
    "Encrypt the connection; the certificate of the server must be of a "
    "known authority. The three flags below set it, too.",
)  # fmt: skip
program.string(
    "tls_ca", None,
    "Authorities in PEM that may have signed the server's certificate, or "
    "this certificate itself.",
)  # fmt: skip
program.string(
    "tls_cert", None,
    "Our own certificate in PEM, for a server that wants one.",
)  # fmt: skip
program.string("tls_key", None, "The private key of --tls_cert in PEM.")
program.string(
    "token_file", None,
    "File whose first token is sent with each request, as that of "
    "lstm-dssm-serve --token_file.",
)  # fmt: skip


def main(queries: list[str]) -> dict[str, Any]:
    """Prints and returns the result of each query, or the states."""
    from lstm_dssm_client.grpc_client import Client
    from lstm_dssm_client.signatures import KEYS

    check_explain(program)
    if FLAGS.status:
        program.check_unused(
            ("explain", "tags", "k", "model_version"),
            "and --status are given: leave one out",
        )
        if queries:
            raise InputError(
                f"found the query {queries[0]!r:.60} and --status: leave one"
                " out"
            )
    elif not queries:
        raise InputError('no query; give one or more, such as "angle bracket"')
    if FLAGS.vectors:
        program.check_unused(
            ("explain", "tags", "k"), "and --vectors are given: leave one out"
        )
    default = "query_encoder" if FLAGS.vectors else "retriever"
    model = FLAGS.model or default
    version = number_or_label(FLAGS.model_version)
    options = _security_options()
    with Client(FLAGS.server, FLAGS.timeout, **options) as client:
        if FLAGS.status:
            return print_status(model, client.status(model))
        if FLAGS.vectors:
            vectors = client.encode(queries, model, version)
            return print_vectors(queries, vectors.tolist())
        signatures = client.signatures(model, version)
        scores = is_scorer(signatures)
        if scores or KEYS in signatures:
            program.check_unused(
                ("explain", "tags", "k") if scores else ("explain", "tags"),
                f"is for a retriever, which {model} is not: leave it out",
            )
        if scores:
            query, *documents = queries
            if not documents:
                raise InputError(
                    f"no document; give the query, here {query!r:.60}, and "
                    f"then the documents that {model} scores"
                )
            values = client.score(query, documents, model, version)
            return print_scores(query, documents, values.tolist())
        if KEYS in signatures:
            parts = client.keys(queries, FLAGS.k, model, version)
            return print_key_parts(queries, parts)
        if FLAGS.explain:
            return print_hits(
                queries, client.explain(queries, FLAGS.k, model, version)
            )
        hits = client.search(queries, FLAGS.k, model, version, FLAGS.tags)
        return print_hits(queries, hits)


def _security_options() -> dict[str, Any]:
    """Returns the arguments `credentials` and `token` of a `Client`."""
    from lstm_dssm_client.grpc_client import tls_credentials
    from lstm_dssm_client.options import read_token

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


def is_scorer(signatures: "Mapping[str, Signature]") -> bool:
    """Returns whether signatures are those of a pair scorer."""
    from lstm_dssm_client.signatures import DEFAULT

    signature = signatures.get(DEFAULT)
    return bool(signature and signature.inputs.keys() == {"query", "document"})


def print_status(
    model: str, versions: "Mapping[int, VersionStatus]"
) -> dict[str, Any]:
    """Prints the state of each version, and returns them for JSON."""
    for version, (state, code, message) in versions.items():
        problem = printable(f"  {code}: {message}") if message else ""
        print(f"{model} version {version}  {state}{problem}")
    return {
        "model": model,
        "versions": {
            str(v): status._asdict() for v, status in versions.items()
        },
    }


def print_hits(
    queries: Sequence[str],
    hits_of_queries: "Sequence[Sequence[Hit | ExplainedHit]]",
) -> dict[str, Any]:
    """Prints each query with its hits below, and returns them for JSON.

    Below a hit that is explained stands why it is.
    """
    results = []
    for query, hits in zip(queries, hits_of_queries, strict=True):
        print(printable(query))
        for rank, hit in enumerate(hits, start=1):
            print(f"{rank:4}  {hit.score:7.4f}  {printable(hit.id)}")
            if why := getattr(hit, "why", ""):
                print(" " * 15 + printable(why))
        results.append(
            {"query": query, "hits": [hit._asdict() for hit in hits]}
        )
    return {"queries": results}


def print_scores(
    query: str, documents: Sequence[str], scores: Sequence[float]
) -> dict[str, Any]:
    """Prints each document with its score, and returns them for JSON."""
    from lstm_dssm_client.signatures import Hit

    hits = sorted(
        map(Hit, documents, scores), key=lambda hit: hit.score, reverse=True
    )
    for hit in hits:
        print(f"{hit.score:.4f}\t{printable(hit.id)}")
    return {"queries": [{"query": query, "hits": [h._asdict() for h in hits]}]}


def print_key_parts(
    documents: Sequence[str], parts_of_documents: "Sequence[KeyParts]"
) -> dict[str, Any]:
    """Prints key sentences and words of documents; returns them for JSON."""
    results = []
    for document, parts in zip(documents, parts_of_documents, strict=True):
        print(printable(document))
        for rank, (sentence, p) in enumerate(parts.sentences, start=1):
            print(f"{rank:4}  {p:7.4f}  {printable(sentence)}")
        print("     ", printable(", ".join(parts.words)))
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
        print(printable(query))
        print("     ", " ".join(f"{value:.4f}" for value in vector))
        results.append({"query": query, "vector": vector})
    return {"queries": results}


run = program.main(main)

if __name__ == "__main__":
    sys.exit(run())
