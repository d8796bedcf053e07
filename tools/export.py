"""Export a trained model for TF Serving.

Example:
  lstm-dssm-export --run=build/run --documents=titles.txt --output=MODELS

Writes query_encoder/ and document_encoder/, or keyvec/ of the run of a KeyVec,
and, with --documents, retriever/; of the run of a pair scorer, scorer/; of
that of a ranker, ranker/ and, with --documents, two_stage/. MODELS
may have models of another run: they do not change. The exported ones get a new
version of the same number. A running server of MODELS changes to the new
versions of all models when they are complete. titles.txt has one title a line,
or an id, a tab and a title; --documents can also be a folder of documents, or
a file of JSON lines (docs/documents.md). docs/serving.md describes the files
and how much accuracy --vectors=int8 costs.

--documents can also be a folder of parts that lstm-dssm-encode has written with
the document_encoder of the same run. With --update=MODELS/retriever --add=FILE
--delete=IDS, and no --run, only titles that have changed are encoded, and a
whole new version is published (docs/scaling.md).

With --mix=RUN2 --mix_weights=0.6,0.4 the encoders of several runs become one:
the cosine of their vectors, and the score of the retriever, is the weighted
sum of the runs' cosines. docs/mixtures.md says how to choose the weights.
"""

import sys
from typing import Any

from keras_lstm_dssm.cards import write_models_card
from keras_lstm_dssm.data.line_reader import text_lines
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import Mixture
from keras_lstm_dssm.export.document_vectors import VECTORS
from keras_lstm_dssm.export.documents import Documents, read_documents
from keras_lstm_dssm.export.encoded_parts import EncodedParts, has_parts
from keras_lstm_dssm.export.export_models import export_models
from keras_lstm_dssm.export.refresh import refresh_retriever
from keras_lstm_dssm.export.retriever import MAX_K
from keras_lstm_dssm.tools.mixture_flags import (
    MODEL,
    define_mixture_flags,
    required_weights,
)
from keras_lstm_dssm.tools.program import definers, new_flags, program
from keras_lstm_dssm.training import RunFolder

FLAGS = new_flags()
define = definers(FLAGS)
_RUN = define.string("run", None, "Folder of a run that lstm-dssm-train wrote.")
_OUTPUT = define.string(
    "output", None, "Folder of the models, created if missing."
)
_DOCUMENTS = define.string(
    "documents", None,
    "The documents of the retriever, or of the two stages of a ranker: a "
    "file of titles, .txt or .gz, a folder "
    "of documents or a file .jsonl; not for pair scorers. Without it no "
    "retriever is exported.",
)  # fmt: skip
_VECTORS = define.enum(
    "vectors", "float32", list(VECTORS),
    "How the retriever stores the documents' vectors: with 4 bytes a number, "
    "or rounded to 1 byte.",
)  # fmt: skip
_MAX_K = define.integer(
    "max_k", MAX_K,
    "Largest number of results for a query. A request for more gets this "
    "many, so that no request can exhaust the server's memory.",
    1, 2**31 - 1,
)  # fmt: skip
_UPDATE = define.string(
    "update", None,
    "Folder of a retriever, such as MODELS/retriever, to publish anew after "
    "some of its titles have changed; without --run.",
)  # fmt: skip
_ADD = define.string(
    "add", None,
    "With --update: titles to add, as for --documents; one whose id exists "
    "replaces the old title.",
)  # fmt: skip
_DELETE = define.string(
    "delete", None, "With --update: file of ids to remove, one a line."
)
define_mixture_flags(
    define,
    "folders of other runs of two towers",
    ", such as lstm-dssm-evaluate has chosen on dev",
)


def main(_: list[str]) -> dict[str, Any]:
    """Exports the models and returns the folders of their new versions."""
    if _UPDATE.value:
        return _refreshed()
    for flag in (_RUN, _OUTPUT):
        if not flag.value:
            raise InputError(
                f"--{flag.name} is missing: {FLAGS[flag.name].help}"
            )
    for flag in (_ADD, _DELETE):
        if flag.value:
            raise InputError(
                f"--{flag.name} is used with --update=MODELS/retriever only: "
                "leave it out"
            )
    weights = required_weights(FLAGS)
    documents = None
    if _DOCUMENTS.value:
        documents = _documents(_DOCUMENTS.value)
    folders = export_models(
        _load_mixture(weights)
        if FLAGS.mix
        else RunFolder(_RUN.value).load_model(),
        _OUTPUT.value,
        documents,
        _VECTORS.value,
        _MAX_K.value,
        progress=sys.stderr.isatty(),
    )
    write_models_card(
        _OUTPUT.value,
        {folder.parent.name: int(folder.name) for folder in folders},
        [_RUN.value, *FLAGS.mix],
        _rows(documents) if documents else None,
    )
    for folder in folders:
        print(f"wrote {folder}")
    return {"folders": [str(folder) for folder in folders]}


def _documents(path: str) -> Documents | EncodedParts:
    if has_parts(path):
        parts = EncodedParts(path)
        print(f"{parts.rows:,} encoded titles")
        return parts
    documents = read_documents(path)
    print(f"{len(documents.ids):,} documents")
    return documents


def _rows(documents: Documents | EncodedParts) -> int:
    if isinstance(documents, EncodedParts):
        return documents.rows
    return len(documents.ids)


def _refreshed() -> dict[str, Any]:
    """Refreshes the retriever of --update."""
    for name in ("run", "output", "documents", "mix", "vectors", "max_k"):
        if FLAGS[name].present:
            raise InputError(
                f"--{name} is not used with --update, which keeps the model "
                "and its settings: leave it out"
            )
    if not (_ADD.value or _DELETE.value):
        raise InputError("--update needs --add, --delete or both")
    deleted = text_lines(_DELETE.value) if _DELETE.value else ()
    result = refresh_retriever(
        _UPDATE.value,
        read_documents(_ADD.value) if _ADD.value else None,
        [line.strip() for line in deleted if line.strip()],
        progress=sys.stderr.isatty(),
    )
    if result.unknown:
        names = ", ".join(map(repr, result.unknown[:3]))
        print(
            f"--delete: {len(result.unknown):,} ids are not in the retriever: "
            f"{names}" + ", ..." * (len(result.unknown) > 3)
        )
    figures = result._asdict()
    print(
        f"{result.rows:,} titles: {result.encoded:,} encoded, "
        f"{result.deleted:,} removed"
    )
    if result.published:
        print(f"wrote {result.folder}")
    else:
        print(f"{result.folder}: nothing has changed, no new version")
    return {**figures, "folder": str(result.folder)}


def _load_mixture(weights: dict[str, float]) -> Mixture:
    """Loads the towers of --run and --mix."""
    folders = {MODEL: RunFolder(_RUN.value)}
    for name in FLAGS.mix:
        folders[name] = RunFolder(name)
        if not folders[name].path.is_dir():
            raise InputError(
                f"--mix: {name!r} is not the folder of a run: only encoders of"
                " runs can be exported; search with BM25 and with outside"
                " encoders by lstm-dssm-search --run, or from Python"
            )
    return Mixture(
        {name: folder.load_towers() for name, folder in folders.items()},
        weights,
    )


run = program(main, FLAGS, __doc__)

if __name__ == "__main__":
    sys.exit(run())
