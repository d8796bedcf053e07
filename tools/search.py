"""Searches documents with an exported retriever or a run, in this process.

This is the work of the program lstm-dssm-search. Its help and its flags are in
`tools/flags/search.py`, which is imported first and without TensorFlow.
"""

import sys
from typing import Any

from keras_lstm_dssm.analysis.evaluate import (
    MODEL,
    load_titles_model,
    open_system,
    required_weights,
    words_of,
)
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import Hit, Mixture, system_of
from keras_lstm_dssm.evaluation.bm25 import TOKENIZERS, BM25System
from keras_lstm_dssm.export.bulk.documents import read_documents
from keras_lstm_dssm.export.publish.versions import model_folder
from keras_lstm_dssm.serving import SavedRetriever
from keras_lstm_dssm.tools.flags.search import COMMAND_LINE, FLAGS
from keras_lstm_dssm.tools.query import print_hits

_FOR_RUNS = ("documents", "mix", "mix_weights", "bm25_words")


def main(queries: list[str]) -> dict[str, Any]:
    """Prints and returns the best documents of each query."""
    if not queries:
        raise InputError('no query; give one or more, such as "angle bracket"')
    if FLAGS.run:
        return print_hits(queries, _search_run(queries))
    if not FLAGS.models:
        raise InputError(
            "--models is missing: the folder that lstm-dssm-export wrote; or"
            " give --run and --documents"
        )
    for name in _FOR_RUNS:
        if FLAGS[name].present:
            raise InputError(f"--{name} is for --run, not for --models")
    retriever = SavedRetriever(model_folder(FLAGS.models, FLAGS.model))
    hits = retriever.search(queries, FLAGS.k, FLAGS.tags)
    return print_hits(queries, hits)


def _search_run(queries: list[str]) -> list[list[Hit]]:
    """Returns the best documents of each query, by a run and --mix."""
    for name in ("models", "model", "tags"):
        if FLAGS[name].present:
            raise InputError(f"--{name} and --run are given: leave one out")
    if not FLAGS.documents:
        raise InputError(f"--documents is missing: {FLAGS['documents'].help}")
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


run = COMMAND_LINE.program(main)

if __name__ == "__main__":
    sys.exit(run())
