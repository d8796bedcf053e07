"""Measure a trained model, and BM25 and random order for comparison.

Reranks the judged documents of each query (`--mode=rerank`), or retrieves
documents from the whole corpus (`--mode=retrieve`), and prints NDCG, MRR, MAP,
precision and recall in percent. By default BM25 splits words as the model
does. The results are also stored in the run's `metrics.json`, under split and
mode, such as "test/rerank"; those of the latest evaluation also under "test".

Example:
    lstm-dssm-evaluate --run=RUN --data=api --split=test --mode=retrieve
    lstm-dssm-evaluate --run=RUN --data=FOLDER --mode=rerank --json=out.json
"""

import sys
from typing import Any

from keras_lstm_dssm.baselines import TOKENIZERS, BM25System
from keras_lstm_dssm.data import Collection, open_collection
from keras_lstm_dssm.evaluation import (
    Task,
    evaluate_systems,
    format_table,
    system_of,
)
from keras_lstm_dssm.evaluation.task import MODES, holds_click_counts
from keras_lstm_dssm.files import check_writable
from keras_lstm_dssm.models import PairScorer
from keras_lstm_dssm.tools.program import definers, new_flags, program
from keras_lstm_dssm.training import RunFolder

FLAGS = new_flags()
define = definers(FLAGS)

define.string("run", None, "Folder of the training run.")
define.string("data", None, "`api`, or a BEIR folder.")
define.string("split", "test", "Split of the data whose queries are evaluated.")
define.enum(
    "mode", "rerank", MODES,
    "Rerank the judged documents, or retrieve from the whole corpus.",
)  # fmt: skip
define.integer(
    "min_relevant", 1, "Grade from which a document is relevant.", lower_bound=1
)
define.integer(
    "depth", 1000, "Number of documents retrieved for each query.",
    lower_bound=1,
)  # fmt: skip
define.string(
    "run_file", None, "Also write the model's rankings to this TREC run file."
)
define.enum(
    "bm25_words", "model", ["model", *TOKENIZERS],
    "The words of BM25: as the model reads them; separated by white space; "
    "runs of letters and digits; or stems of such runs, without stop words.",
)  # fmt: skip
define.integer(
    "batch_size", 2048, "Number of texts encoded at once.", lower_bound=1
)

_WORDS = {
    "space": "separated by white space",
    "alphanumeric": "runs of letters and digits",
    "stemmed": "English stems, without stop words",
}


def main(argv: list[str]) -> dict[str, Any]:
    """Loads model and data; returns the mode and each system's measures."""
    if FLAGS.run_file:
        check_writable(FLAGS.run_file)
    folder = RunFolder(FLAGS.run)
    folder.read_metrics()  # reports a damaged file early
    model = folder.load_model()
    results = evaluate_model(model, open_collection(FLAGS.data))
    measured = {"mode": FLAGS.mode, **results[FLAGS.split]}
    if FLAGS.split != "train":  # "train" holds the results of the training
        folder.add_metrics(FLAGS.split, measured)
    folder.add_metrics(f"{FLAGS.split}/{FLAGS.mode}", measured)
    return {FLAGS.split: measured}


def evaluate_model(model: Any, collection: Collection) -> dict[str, Any]:
    """Measures a model and BM25 according to the flags; prints the results.

    Args:
        model: The `TwoTower` or `PairScorer` to evaluate.
        collection: The data with the split to evaluate on.

    Returns:
        Split -> system -> measure -> value from 0 to 1; in addition,
        `bm25_words` is the name of BM25's tokenizer.
    """
    task = Task.from_collection(
        collection, FLAGS.split, FLAGS.mode, FLAGS.min_relevant, FLAGS.depth
    )
    is_scorer = isinstance(model, PairScorer)
    reader = model.words if is_scorer else model.document_encoder.trigrams
    split = reader.split
    words = split if FLAGS.bm25_words == "model" else FLAGS.bm25_words
    print(
        f"{FLAGS.split}, {FLAGS.mode}: {len(task.queries)} queries,"
        f" {len(task.documents)} documents in the corpus"
    )
    if holds_click_counts(collection):
        print("grades: 0 to 4, computed from the numbers of clicks")
    print(
        f"words of bm25: {_WORDS[words]}"
        f" ({'as' if words == split else 'not as'} the model reads them)"
    )
    bm25 = BM25System(tokenizer=TOKENIZERS[words])
    if is_scorer and FLAGS.mode == "retrieve":
        print(f"the model reorders the {FLAGS.depth:,} first of bm25")
    results = evaluate_systems(
        task,
        {
            "model": system_of(
                model,
                bm25,
                batch_size=FLAGS.batch_size,
                progress=sys.stderr.isatty(),
            ),
            "bm25": bm25,
        },
        {"model": FLAGS.run_file} if FLAGS.run_file else None,
    )
    print(format_table(results))
    return {FLAGS.split: {"bm25_words": words, **results}}


run = program(main, FLAGS, __doc__, required=["run", "data"])

if __name__ == "__main__":
    sys.exit(run())
