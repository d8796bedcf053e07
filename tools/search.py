"""Search in an exported retriever, on a server, or with the towers of a run.

Prints the best documents for each query: the score, the id and the title.

--models is the folder or the file that lstm-dssm-export wrote for two towers or
for a hybrid. --server is the address of TF Serving or lstm-dssm-serve. Neither
--models nor --server needs TensorFlow on this machine. With --run and
--documents, the documents are encoded first, and no export is needed.

A server can also have a pair scorer or a KeyVec (--model). For a pair scorer,
the first argument is the query, and all others are documents to score. For a
KeyVec, each argument is a text. For each text, the k best key sentences are
printed with their probabilities, and then k key words.

Example:
  lstm-dssm-search --models=MODELS "angle bracket"
  lstm-dssm-search --models=MODELS --tags=material:steel,stock:true "bracket"
  lstm-dssm-search --models=shop.safetensors "angle bracket"
  lstm-dssm-search --models=HYBRID_MODELS --explain "angle bracket"
  lstm-dssm-search --run=RUN --documents=titles.txt "angle bracket"
  lstm-dssm-search --server=127.0.0.1:8500 --k=3 "angle bracket" "deck screws"
  lstm-dssm-search --server=db1:8500 --tls_ca=ca.crt --token_file=tokens "bolt"
  lstm-dssm-search --server=127.0.0.1:8500 --show=status
  lstm-dssm-search --server=127.0.0.1:8500 --model=scorer "bolt" "steel bolt"
  lstm-dssm-search --server=127.0.0.1:8500 --model=keyvec --k=1 "Sort. Add."
"""

import math
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from absl import app

from lstm_dssm_programs import load_package
from keras_lstm_dssm.command_line import Program, open_retriever, printable
from keras_lstm_dssm.errors import InputError

if TYPE_CHECKING:
    from lstm_dssm_client.grpc_client import Client
    from lstm_dssm_client.signatures import (
        ExplainedHit,
        Hit,
        KeyParts,
        VersionStatus,
    )

program = Program(__doc__, arguments=True)
FLAGS = program.flags
program.string("models", None, "Folder or file that lstm-dssm-export wrote.")
program.string("server", None, "Instead of --models: gRPC server, HOST:PORT.")
program.string(
    "run", None, "Instead of --models: folder of a run, to search --documents."
)
program.string(
    "documents", None,
    "With --run: file of documents. Each line has a title, or an id, a tab and "
    "a title.",
)  # fmt: skip
program.string(
    "model", None,
    "The model's name in --models or on the server; by default retriever, or "
    "query_encoder with --show=vectors.",
)  # fmt: skip
program.integer("k", 5, "Number of documents, or of key sentences.", 1)
program.multi(
    "tags", [],
    "Find only documents with all these tags; of tags NAME:VALUE with the same "
    "NAME, a document needs only one. Tags are separated by commas, or the "
    "flag is repeated. Not with --run.",
)  # fmt: skip
program.bool(
    "explain", False,
    "Below each hit of a hybrid retriever, print what each part of the score "
    "(such as BM25) and each word of the query add to the log-odds of the "
    "score.",
)  # fmt: skip
program.float(
    "min_score", None,
    "Print only hits with at least this score. The score of a hybrid is a "
    "probability; lstm-dssm-evaluate --hybrid prints the probability below "
    "which a match is weak.",
)  # fmt: skip
program.enum(
    "show", "hits", ["hits", "vectors", "status"],
    "What is printed: the hits, the queries' vectors, or the states of the "
    "model's versions.",
)  # fmt: skip
program.string("model_version", None, "Number or label; by default the newest.")
program.float("timeout", 5.0, "Seconds to wait for a server's reply.", 1e-3)
program.bool(
    "tls", False,
    "Encrypt the connection; a known authority must have signed the server's "
    "certificate. --tls_ca, --tls_cert and --tls_key also set this flag.",
)  # fmt: skip
program.string(
    "tls_ca", None,
    "PEM file of the server's certificate, or of trusted authorities.",
)  # fmt: skip
program.string("tls_cert", None, "PEM file of this client's certificate.")
program.string("tls_key", None, "PEM file of the private key of --tls_cert.")
program.string(
    "token_file", None,
    "File of tokens, as for lstm-dssm-serve --token_file; the first token is "
    "sent with each request.",
)  # fmt: skip

_SERVER_FLAGS = (
    "show", "model_version", "timeout", "tls", "tls_ca", "tls_cert",
    "tls_key", "token_file",
)  # fmt: skip


@program.main
def main(argv: list[str]) -> dict[str, Any]:
    """Prints and returns the answers to queries, or the states of versions."""
    from lstm_dssm_client.signatures import EXPLAINED_K

    queries = argv[1:]
    sources = [n for n in ("models", "server", "run") if FLAGS[n].value]
    if len(sources) != 1:
        raise InputError(
            " and ".join(f"--{name}" for name in sources)
            + " are given: leave one out"
            if sources
            else "--models is missing: the folder that lstm-dssm-export wrote;"
            " or give --server, or --run and --documents"
        )
    (source,) = sources
    if source != "server":
        program.check_unused(_SERVER_FLAGS, "is for --server")
    if source != "run":
        program.check_unused(["documents"], f"is for --run, not for --{source}")
    if not queries and FLAGS.show != "status":
        raise InputError('no query; give one or more, such as "angle bracket"')
    if FLAGS.explain and FLAGS.k > EXPLAINED_K:
        raise InputError(
            f"--k={FLAGS.k} with --explain: expected at most {EXPLAINED_K}"
        )
    if source == "server":
        return _ask_server(queries)
    if source == "run":
        return print_hits(queries, _search_run(queries))
    return print_hits(queries, _search_models(queries))


def _search_models(queries: list[str]) -> "Sequence[Sequence[Any]]":
    if os.path.exists(os.path.join(FLAGS.models, "model.keras")):
        raise InputError(
            f"--models={FLAGS.models}: found the folder of a run, expected one"
            " that lstm-dssm-export wrote: export the run, or give --run and"
            " --documents"
        )
    retriever = open_retriever(FLAGS.models, FLAGS.model or "retriever")
    if FLAGS.explain:
        return retriever.explain(queries, FLAGS.k, tags=_tags())
    return retriever.search(queries, FLAGS.k, tags=_tags())


def _tags() -> list[str]:
    return [tag for tags in FLAGS.tags if tags for tag in tags.split(",")]


def _search_run(queries: list[str]) -> "list[list[Hit]]":
    program.check_unused(
        ("model", "tags", "explain"), "and --run are given: leave one out"
    )
    if not FLAGS.documents:
        raise InputError(f"--documents is missing: {FLAGS['documents'].help}")
    load_package()
    from keras_lstm_dssm.evaluation import Hit, system_of
    from keras_lstm_dssm.export.bulk.documents import read_documents
    from keras_lstm_dssm.run_folder import RunFolder

    run_folder = RunFolder(FLAGS.run)
    documents = read_documents(FLAGS.documents, run_folder.read_fields())
    shown = dict(zip(documents.ids, documents.shown, strict=True))
    towers = run_folder.load_model("towers")
    system = system_of(towers, progress=sys.stderr.isatty())
    run = system.retrieve(
        # The number distinguishes equal queries.
        {f"{number} {query}": query for number, query in enumerate(queries)},
        dict(zip(documents.ids, documents.titles, strict=True)),
        FLAGS.k,
    )
    return [
        [Hit(key, score, shown[key]) for key, score in ranked.items()]
        for ranked in run.values()
    ]


def _ask_server(queries: list[str]) -> dict[str, Any]:
    from lstm_dssm_client.grpc_client import Client

    if FLAGS.show != "hits":
        program.check_unused(
            ("explain", "tags", "k"),
            f"and --show={FLAGS.show} are given: leave one out",
        )
    if FLAGS.show == "status":
        program.check_unused(
            ["model_version"], "and --show=status are given: leave one out"
        )
        if queries:
            raise InputError(
                f"found the query {queries[0]!r:.60} and --show=status: leave "
                "one out"
            )
    default = "query_encoder" if FLAGS.show == "vectors" else "retriever"
    model = FLAGS.model or default
    with Client(FLAGS.server, FLAGS.timeout, **_security_options()) as client:
        if FLAGS.show == "status":
            return print_status(model, client.status(model))
        version = FLAGS.model_version
        if version and version.isascii() and version.isdecimal():
            version = int(version)  # otherwise a label
        if FLAGS.show == "vectors":
            vectors = client.encode(queries, model, version)
            return print_vectors(queries, vectors.tolist())
        return _ask_model(client, queries, model, version)


def _ask_model(
    client: "Client", queries: list[str], model: str, version: int | str | None
) -> dict[str, Any]:
    from lstm_dssm_client.signatures import DEFAULT, KEYS, Hit

    signatures = client.signatures(model, version)
    default = signatures.get(DEFAULT)
    is_scorer = default and default.inputs.keys() == {"query", "document"}
    if is_scorer or KEYS in signatures:
        program.check_unused(
            ("explain", "tags", "k") if is_scorer else ("explain", "tags"),
            f"is for a retriever, which {model} is not: leave it out",
        )
    if is_scorer:
        query, *documents = queries
        if not documents:
            raise InputError(
                f"no document; give the query, here {query!r:.60}, and "
                f"then the documents that {model} scores"
            )
        scores = client.score(query, documents, model, version).tolist()
        hits = sorted(
            map(Hit, documents, scores, documents), key=lambda hit: -hit.score
        )
        return print_hits([query], [hits])
    if KEYS in signatures:
        parts = client.keys(queries, FLAGS.k, model, version)
        return print_key_parts(queries, parts)
    search: Any = client.explain if FLAGS.explain else client.search
    hits = search(queries, FLAGS.k, model, version, _tags())
    return print_hits(queries, hits)


def _security_options() -> dict[str, Any]:
    from lstm_dssm_client.grpc_client import tls_credentials
    from lstm_dssm_client.options import read_token

    files = (FLAGS.tls_ca, FLAGS.tls_cert, FLAGS.tls_key)
    return {
        "credentials": (
            tls_credentials(*files) if FLAGS.tls or any(files) else None
        ),
        "token": read_token(FLAGS.token_file) if FLAGS.token_file else None,
    }


def print_status(
    model: str, versions: "Mapping[int, VersionStatus]"
) -> dict[str, Any]:
    """Prints the states of a model's versions; returns them for JSON."""
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
    """Prints the hits that score --min_score or more; returns them for JSON."""
    results = []
    least = -math.inf if FLAGS.min_score is None else FLAGS.min_score
    for query, all_hits in zip(queries, hits_of_queries, strict=True):
        print(printable(query))
        hits = [hit for hit in all_hits if hit.score >= least]
        for rank, hit in enumerate(hits, start=1):
            title = f"  {hit.title}" if hit.title not in ("", hit.id) else ""
            print(f"{rank:4}  {hit.score:7.4f}  {printable(hit.id + title)}")
            if why := getattr(hit, "why", ""):
                print(" " * 15 + printable(why))
        if not hits:
            print("      no hits")
        results.append(
            {"query": query, "hits": [hit._asdict() for hit in hits]}
        )
    return {"queries": results}


def print_key_parts(
    documents: Sequence[str], parts_of_documents: "Sequence[KeyParts]"
) -> dict[str, Any]:
    """Prints key sentences and key words; returns them for JSON."""
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
    """Prints queries and their vectors; returns them for JSON."""
    results = []
    for query, vector in zip(queries, vectors, strict=True):
        print(printable(query))
        print("     ", " ".join(f"{value:.4f}" for value in vector))
        results.append({"query": query, "vector": vector})
    return {"queries": results}


if __name__ == "__main__":
    app.run(main, flags_parser=program.parse)
