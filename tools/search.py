"""Search with an exported retriever, or with the encoders of a run.

Prints the ids of the best documents for each query with their scores. Where
the documents have no ids, their ids are their titles.

With the file that lstm-dssm-export --portable wrote, TensorFlow is not loaded.
With --run and --documents, the documents are encoded first, and no export is
needed.

Example:
  lstm-dssm-search --models=MODELS "angle bracket"
  lstm-dssm-search --models=MODELS --tags=steel,zinc "angle bracket"
  lstm-dssm-search --models=shop.safetensors "angle bracket"
  lstm-dssm-search --models=HYBRID_MODELS --explain "angle bracket"
  lstm-dssm-search --run=RUN --documents=titles.txt "angle bracket"
"""

import os
import sys
from typing import TYPE_CHECKING, Any

from keras_lstm_dssm.command_line import Program
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.tools.query import (
    check_explain,
    define_explain,
    print_hits,
)

if TYPE_CHECKING:
    from keras_lstm_dssm.evaluation import Hit

program = Program(
    __doc__, arguments=True, tensorflow=lambda: not _names_a_file()
)
FLAGS = program.flags
program.string(
    "models", None,
    "Folder that lstm-dssm-export wrote, or file of its --portable.",
)  # fmt: skip
program.string("model", "retriever", "The retriever's name in --models.")
program.integer("k", 5, "Number of documents for each query.", 1)
program.list(
    "tags", [],
    "With --models: only documents that have any of these tags, separated by "
    "commas; by default all.",
)  # fmt: skip
define_explain(program)
program.string(
    "run", None,
    "Instead of --models: folder of a run of lstm-dssm-train, whose encoders "
    "search --documents.",
)  # fmt: skip
program.string(
    "documents", None,
    "With --run: the documents, one title a line, or an id, a tab and a title.",
)  # fmt: skip


def main(queries: list[str]) -> dict[str, Any]:
    """Prints and returns the best documents of each query."""
    if not queries:
        raise InputError('no query; give one or more, such as "angle bracket"')
    check_explain(program)
    if FLAGS.run:
        return print_hits(queries, _search_run(queries))
    if not FLAGS.models:
        raise InputError(
            "--models is missing: the folder that lstm-dssm-export wrote; or"
            " give --run and --documents"
        )
    program.check_unused(["documents"], "is for --run, not for --models")
    if _names_a_file():
        from lstm_dssm_client import LocalModel

        local = LocalModel(FLAGS.models)
        if FLAGS.explain:
            return print_hits(
                queries, local.explain(queries, FLAGS.k, FLAGS.model)
            )
        hits = local.search(queries, FLAGS.k, FLAGS.model, tags=FLAGS.tags)
        return print_hits(queries, hits)
    from keras_lstm_dssm.export.publish.versions import model_folder
    from keras_lstm_dssm.serving import SavedRetriever

    retriever = SavedRetriever(model_folder(FLAGS.models, FLAGS.model))
    if FLAGS.explain:
        return print_hits(queries, retriever.explain(queries, FLAGS.k))
    hits = retriever.search(queries, FLAGS.k, FLAGS.tags)
    return print_hits(queries, hits)


def _names_a_file() -> bool:
    return os.path.isfile(FLAGS.models or "")


def _search_run(queries: list[str]) -> "list[list[Hit]]":
    """Returns the documents nearest to each query by the towers of a run."""
    from keras_lstm_dssm.evaluation import Hit, system_of
    from keras_lstm_dssm.export.bulk.documents import read_documents
    from keras_lstm_dssm.run_folder import RunFolder

    program.check_unused(
        ("models", "model", "tags", "explain"),
        "and --run are given: leave one out",
    )
    if not FLAGS.documents:
        raise InputError(f"--documents is missing: {FLAGS['documents'].help}")
    documents = read_documents(FLAGS.documents)
    towers = RunFolder(FLAGS.run).load_towers()
    system = system_of(towers, progress=sys.stderr.isatty())
    run = system.retrieve(
        # A query may be given twice.
        {f"{number} {query}": query for number, query in enumerate(queries)},
        dict(zip(documents.ids, documents.titles, strict=True)),
        FLAGS.k,
    )
    return [
        [Hit(document_id, score) for document_id, score in ranked.items()]
        for ranked in run.values()
    ]


run = program.main(main)

if __name__ == "__main__":
    sys.exit(run())
