"""Export a trained model for TF Serving.

Example:
  lstm-dssm-export --run=build/run --documents=titles.txt --output=MODELS
  lstm-dssm-export --run=RUN --documents=titles.txt --portable=shop.safetensors

Writes query_encoder/ and document_encoder/ for two towers, keyvec/ for a KeyVec
or scorer/ for a pair scorer. With --documents, writes retriever/, too. Other
models in MODELS do not change. All exported models get the same new version
number, and a running server of MODELS changes to this version when all models
are complete. If more than 20 % of the ids have changed since the served
version, --yes must be given. docs/serving.md describes the files and how much
accuracy --vectors=int8 costs.

titles.txt has one title a line, or an id, a tab and a title. --documents can
also be a folder of documents, a file of JSON lines (docs/documents.md), or a
folder of parts that lstm-dssm-encode has made with this run's document_encoder.

--portable writes the encoders and the documents of two towers to one file, for
lstm_dssm_client.LocalModel, which needs no TensorFlow.

With --hybrid the retriever ranks by the towers and word vectors of the run, and
by BM25. If the run has no word vectors, they can be fitted to --teacher. The
towers, word vectors and BM25 have the weights that lstm-dssm-evaluate --hybrid
has chosen on dev for the run, or default weights. Without --run the retriever
ranks by BM25; with --teacher it also ranks by word vectors (docs/hybrid.md):
  lstm-dssm-export --hybrid --documents=titles.txt --output=MODELS
"""

import os
import sys
from typing import TYPE_CHECKING, Any

from absl import app

from lstm_dssm_programs import load_package
from keras_lstm_dssm.command_line import Program, printable
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.settings.fields import BM25_TERMS, MAX_K, VECTORS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from keras_lstm_dssm.data.teacher_folder import TeacherVectors
    from keras_lstm_dssm.export.bulk.documents import Documents
    from keras_lstm_dssm.export.bulk.parts import EncodedParts

_SAMPLE = 3  # number of documents to print

program = Program(__doc__)
FLAGS = program.flags
program.string("run", None, "Folder of a run that lstm-dssm-train wrote.")
program.string("output", None, "Folder of the models, created if missing.")
program.string(
    "portable", None,
    "Instead of --output: the .safetensors file to write, for searches without "
    "TensorFlow.",
)  # fmt: skip
program.enum(
    "weights", "int8", list(VECTORS),
    "With --portable: how the numbers in the tables of trigrams are stored, in "
    "4 bytes or rounded to 1 byte.",
)  # fmt: skip
program.string(
    "documents", None,
    "The documents of the retriever: a file of titles (.txt, .tsv, .gz, "
    ".parquet, globs), a folder of documents, a .jsonl file of documents, or "
    "the folder of parts that lstm-dssm-encode wrote. Not for pair scorers. "
    "Without this flag no retriever is exported.",
)  # fmt: skip
program.string(
    "data", None,
    "Instead of --documents: a data folder of lstm-dssm-prepare. All products "
    "are exported, with ids, titles and tags.",
)  # fmt: skip
program.string(
    "teacher", None,
    "For a run of word_sum, or with --hybrid: a folder of lstm-dssm-teach. "
    "Titles in the folder get the folder's vectors; other titles get sums of "
    "word vectors.",
)  # fmt: skip
program.bool(
    "hybrid", False,
    "Rank by BM25, and by the towers and word vectors of the run. Without "
    "--run, rank by BM25, and by word vectors if --teacher is given.",
)  # fmt: skip
program.enum(
    "bm25_words", None, list(BM25_TERMS),
    "With --hybrid: what BM25 compares: English stems without stop words, "
    "words, or letter trigrams. Default: as in the run's hybrid.json; without "
    "this file, by the script of the titles.",
)  # fmt: skip
program.enum(
    "vectors", "float32", list(VECTORS),
    "How the numbers in the documents' vectors are stored: in 4 bytes, or "
    "rounded to 1 byte.",
)  # fmt: skip
program.integer(
    "max_k", MAX_K,
    "Largest number of results for a query. A request for more gets this "
    "many, so that no request can exhaust the server's memory.",
    1, 2**31 - 1,
)  # fmt: skip
program.bool(
    "yes", False,
    "Publish the retriever even if more than 20 % of the ids have changed "
    "since the version that is served.",
)  # fmt: skip


@program.main
def main(_: list[str]) -> dict[str, Any]:
    """Exports the models and returns the folders of their new versions."""
    required = ["run"] * (not FLAGS.hybrid) + ["output"] * (not FLAGS.portable)
    for name in required:
        if not FLAGS[name].value:
            hint = " Or give --hybrid, which needs no run." * (name == "run")
            raise InputError(f"--{name} is missing: {FLAGS[name].help}{hint}")
    if not FLAGS.hybrid:
        program.check_unused(["bm25_words"], "is used with --hybrid only")
    if FLAGS.data:
        program.check_unused(["documents"], "is not used with --data")
        FLAGS.documents = FLAGS.data
    # With --hybrid, `export_models` raises an error if there are no documents.
    if not (FLAGS.documents or FLAGS.hybrid):
        title_flags = ("vectors", "max_k", "teacher", "yes")
        program.check_unused(title_flags, "is used with --documents only")
    load_package()
    from keras_lstm_dssm.export.export_models import export_models
    from keras_lstm_dssm.export.graphs.hybrid import describe_published
    from keras_lstm_dssm.export.publish.server_files import check_ids
    from keras_lstm_dssm.run_folder import RunFolder
    from keras_lstm_dssm.tensorflow_start import use_one_intra_op_thread

    use_one_intra_op_thread()
    if FLAGS.portable:
        return _export_portable()
    program.check_unused(["weights"], "is used with --portable only")
    documents = _read_documents(FLAGS.documents) if FLAGS.documents else None
    if documents and not FLAGS.yes:
        check_ids(
            os.path.join(FLAGS.output, "retriever"), _document_ids(documents)
        )
    teacher = _open_teacher(documents)
    folders = export_models(
        RunFolder(FLAGS.run).load_model() if FLAGS.run else None,
        FLAGS.output,
        documents,
        FLAGS.vectors,
        FLAGS.max_k,
        progress=sys.stderr.isatty(),
        run=FLAGS.run or None,
        teacher=teacher,
        **(_hybrid_options() if FLAGS.hybrid else {}),
    )
    if FLAGS.hybrid:
        print(describe_published(folders[-1]))
    for folder in folders:
        print(f"wrote {folder}")
    names = {folder.parent.name for folder in folders}
    if "query_encoder" in names and "retriever" not in names:
        print(
            "lstm-dssm-search needs a retriever, and none was exported: give"
            " --data or --documents"
        )
    return {"folders": [str(folder) for folder in folders]}


def _hybrid_options() -> dict[str, Any]:
    from keras_lstm_dssm.data.sources import training_queries
    from keras_lstm_dssm.run_folder import RunFolder
    from keras_lstm_dssm.settings.hybrid import HybridSettings

    stored = FLAGS.run and RunFolder(FLAGS.run).read_hybrid()
    config = RunFolder(FLAGS.run).read_config() if FLAGS.run else {}
    queries = training_queries(config)
    settings = stored or HybridSettings()
    if FLAGS.bm25_words:
        settings = settings.replace(bm25_words=FLAGS.bm25_words)
    if settings.hubness and not queries:
        print("hybrid: hubness is left out: there are no training queries")
    return {"hybrid": settings, "queries": queries}


def _export_portable() -> dict[str, Any]:
    from keras_lstm_dssm.export.bulk.documents import Documents
    from keras_lstm_dssm.export.portable import export_portable
    from keras_lstm_dssm.run_folder import RunFolder

    program.check_unused(
        ("output", "max_k", "yes"), "is not used with --portable: leave it out"
    )
    documents = _read_documents(FLAGS.documents) if FLAGS.documents else None
    if not isinstance(documents, Documents | None):
        raise InputError(
            f"{FLAGS.documents}: found encoded titles, expected a file of"
            " titles: name the file"
        )
    teacher = _open_teacher(documents)
    hybrid = export_portable(
        RunFolder(FLAGS.run).load_model() if FLAGS.run else None,
        FLAGS.portable,
        documents,
        FLAGS.weights,
        FLAGS.vectors,
        progress=sys.stderr.isatty(),
        run=FLAGS.run or None,
        teacher=teacher,
        **(_hybrid_options() if FLAGS.hybrid else {}),
    )
    if hybrid is not None:
        parts = [name for name, weight in hybrid.weights.items() if weight]
        print(hybrid.describe(parts))
    size = os.path.getsize(FLAGS.portable)
    print(f"wrote {FLAGS.portable}: {size / 1e6:,.1f} MB")
    return {"file": FLAGS.portable, "bytes": size}


def _open_teacher(documents: Any) -> "TeacherVectors | None":
    from keras_lstm_dssm.data.teacher_folder import TeacherVectors

    if not FLAGS.teacher:
        return None
    titles = getattr(documents, "titles", None)
    if titles is None:
        raise InputError(
            "--teacher has vectors for titles: give a file of titles by"
            " --documents, not parts"
        )
    teacher = TeacherVectors.open(FLAGS.teacher)
    known = int((teacher.rows(titles) >= 0).sum())
    print(
        f"{known:,} titles have the teacher's own vectors,"
        f" {len(titles) - known:,} have sums of word vectors"
    )
    return teacher


def _document_ids(documents: "Documents | EncodedParts") -> "Iterable[str]":
    if isinstance(documents, tuple):
        return documents.ids
    return (document_id for part in documents for document_id in part.ids)


def _read_documents(path: str) -> "Documents | EncodedParts":
    from keras_lstm_dssm.export.bulk.documents import read_documents
    from keras_lstm_dssm.export.bulk.parts import EncodedParts, has_parts
    from keras_lstm_dssm.run_folder import RunFolder

    if has_parts(path):
        parts = EncodedParts(path)
        print(f"{parts.rows:,} encoded titles")
        return parts
    fields = RunFolder(FLAGS.run).read_fields() if FLAGS.run else None
    documents = read_documents(path, fields)
    print(f"{len(documents.ids):,} documents, such as")
    for row in range(min(_SAMPLE, len(documents.ids))):
        tags = ",".join(documents.tags[row]) if documents.tags else ""
        document_id, title = documents.ids[row], documents.shown[row]
        line = f"  {document_id}" + f"  {title}" * (title != document_id)
        print(printable(f"{line:.100}" + f"  [{tags}]" * bool(tags)))
    return documents


if __name__ == "__main__":
    app.run(main, flags_parser=program.parse)
