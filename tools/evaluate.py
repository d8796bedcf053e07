"""Measures a trained model, with BM25 and random order beside it.

Orders the judged titles of each query (`--mode=rerank`), or finds titles in
the whole corpus (`--mode=retrieve`), and prints NDCG, MRR, MAP, precision
and recall in percent. The run's `metrics.json` keeps them too: of each mode
as "test/rerank", of the latest as "test".

Example:
    lstm-dssm-evaluate --run=RUN --data=api --split=test --mode=retrieve
    lstm-dssm-evaluate --run=RUN --data=FOLDER --mode=rerank --json=out.json
"""

import sys
from functools import partial
from typing import Any

from absl import flags

from keras_lstm_dssm.baselines import TOKENIZERS, BM25System
from keras_lstm_dssm.data import Collection, open_collection
from keras_lstm_dssm.evaluation import (
    DenseSystem,
    Task,
    evaluate_systems,
    format_table,
)
from keras_lstm_dssm.evaluation.task import MODES
from keras_lstm_dssm.files import check_writable
from keras_lstm_dssm.tools.program import new_flags, program
from keras_lstm_dssm.training import RunFolder

FLAGS = new_flags()

flags.DEFINE_string(
    "run", None, "Folder that training wrote.", flag_values=FLAGS
)
flags.DEFINE_string(
    "data", None, "api, or a folder in BEIR's form.", flag_values=FLAGS
)
flags.DEFINE_string("split", "test", "Which queries.", flag_values=FLAGS)
flags.DEFINE_enum(
    "mode", "rerank", MODES,
    "Order the judged titles, or search the whole corpus.",
    flag_values=FLAGS,
)  # fmt: skip
flags.DEFINE_integer(
    "min_relevant", 1, "Grade from which a title counts as relevant.",
    lower_bound=1, flag_values=FLAGS,
)  # fmt: skip
flags.DEFINE_integer(
    "depth", 1000, "Titles found for each query in retrieve mode.",
    lower_bound=1, flag_values=FLAGS,
)  # fmt: skip
flags.DEFINE_string(
    "run_file", None, "Also write the model's ranking, as a TREC run.",
    flag_values=FLAGS,
)  # fmt: skip
flags.DEFINE_enum(
    "bm25_words", "words", list(TOKENIZERS),
    "What BM25 matches: the model's words, runs of letters and digits, or the"
    " stems of English ones.",
    flag_values=FLAGS,
)  # fmt: skip
flags.DEFINE_integer(
    "batch_size", 2048, "Texts encoded at once.",
    lower_bound=1, flag_values=FLAGS,
)  # fmt: skip


def main(argv: list[str]) -> dict[str, Any]:
    """Loads model and data; returns the mode and each system's measures."""
    if FLAGS.run_file:
        check_writable(FLAGS.run_file)
    folder = RunFolder(FLAGS.run)
    folder.read_metrics()  # a damaged file shows before the work
    model = folder.load_model()
    results = evaluate_model(model, open_collection(FLAGS.data))
    figures = {"mode": FLAGS.mode, **results[FLAGS.split]}
    if FLAGS.split != "train":  # there stand the figures of training
        folder.add_metrics(FLAGS.split, figures)
    folder.add_metrics(f"{FLAGS.split}/{FLAGS.mode}", figures)
    return {FLAGS.split: figures}


def evaluate_model(model: Any, collection: Collection) -> dict[str, Any]:
    """Returns `{split: {system: {measure: value}}}`, as the flags say."""
    task = Task.from_collection(
        collection, FLAGS.split, FLAGS.mode, FLAGS.min_relevant, FLAGS.depth
    )
    print(
        f"{FLAGS.split}, {FLAGS.mode}: {len(task.queries)} queries,"
        f" {len(task.documents)} titles in the corpus"
    )
    options: dict[str, Any] = {
        "batch_size": FLAGS.batch_size,
        "progress": sys.stderr.isatty(),
    }
    results = evaluate_systems(
        task,
        {
            "model": DenseSystem(
                partial(model.query_encoder.encode, **options),
                partial(model.document_encoder.encode, **options),
            ),
            "bm25": BM25System(tokenizer=TOKENIZERS[FLAGS.bm25_words]),
        },
        {"model": FLAGS.run_file} if FLAGS.run_file else None,
    )
    print(format_table(results))
    return {FLAGS.split: results}


run = program(main, FLAGS, __doc__, required=["run", "data"])

if __name__ == "__main__":
    sys.exit(run())
