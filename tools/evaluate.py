"""Evaluates a trained model and BM25 by NDCG, MRR, MAP, P@k and recall@k.

This is the work of the program lstm-dssm-evaluate. Its help and its
flags are in `tools/flags/evaluate.py`, which is imported first and without
TensorFlow.
"""

import sys
from typing import Any

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data import Collection, open_collection, open_documents
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import Task, format_table, system_of
from keras_lstm_dssm.evaluation.bm25 import TOKENIZERS, BM25System
from keras_lstm_dssm.evaluation.measures import QueryMeasures, mean
from keras_lstm_dssm.evaluation.task import means, measure_systems
from keras_lstm_dssm.files import check_writable
from keras_lstm_dssm.model_cards.record import record_evaluation
from keras_lstm_dssm.models import KeyVec, PairScorer
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.tensorflow_start import use_one_intra_op_thread
from keras_lstm_dssm.tools.document_measures import measure_documents
from keras_lstm_dssm.tools.flags.evaluate import COMMAND_LINE, FLAGS
from keras_lstm_dssm.tools.mixture_flags import MIXTURE, MODEL
from keras_lstm_dssm.tools.mixture_on_dev import mix_on_dev
from keras_lstm_dssm.tools.mixture_systems import check_mixture_flags, words_of

_FOR_TITLES = (
    "mode", "depth", "run_file", "bm25_words", "batch_size", "mix",
    "mix_weights", "dev", "select",
)  # fmt: skip
"""Flags that are not supported for a KeyVec."""

_WORDS = {
    "space": "separated by white space",
    "alphanumeric": "runs of letters and digits",
    "stemmed": "English stems, without stop words",
}


def main(argv: list[str]) -> dict[str, Any]:
    """Loads model and data; returns the mode and each system's measures."""
    use_one_intra_op_thread()
    if FLAGS.run_file:
        check_writable(FLAGS.run_file)
    check_mixture_flags(FLAGS)
    folder = RunFolder(FLAGS.run)
    folder.read_metrics()  # reports a damaged file early
    model = folder.load_model()
    if isinstance(model, KeyVec):
        return _evaluate_keyvec(model, folder)
    results, per_query, documents = _measure(model, open_collection(FLAGS.data))
    measured = {"mode": FLAGS.mode, **results[FLAGS.split]}
    record_evaluation(
        folder.path,
        f"{FLAGS.split}/{FLAGS.mode}",
        FLAGS.data,
        per_query,
        documents,
    )
    if FLAGS.split != "train":  # "train" holds the results of the training
        folder.add_metrics(FLAGS.split, measured)
    folder.add_metrics(f"{FLAGS.split}/{FLAGS.mode}", measured)
    return {FLAGS.split: measured}


def _evaluate_keyvec(model: KeyVec, folder: RunFolder) -> dict[str, Any]:
    """Measures a KeyVec on documents; returns split -> task -> results."""
    for name in _FOR_TITLES:
        if FLAGS[name].present:
            raise InputError(
                f"--{name} is about rankings of titles: leave it out for the "
                f"KeyVec in {folder.path}"
            )
    documents = open_documents(
        FLAGS.data,
        folder.read_config().get("max_bad_lines", 0),
        model.max_sentences,
    )
    tasks, measured = measure_documents(
        model, documents, FLAGS.split, FLAGS.min_relevant, sys.stderr.isatty()
    )
    results = {name: means(of_task) for name, of_task in measured.items()}
    if FLAGS.split != "train":
        folder.add_metrics(FLAGS.split, results)
    for name, of_task in results.items():
        folder.add_metrics(f"{FLAGS.split}/{name}", of_task)
        record_evaluation(
            folder.path,
            f"{FLAGS.split}/{name}",
            FLAGS.data,
            measured[name],
            len(tasks[name].documents),
        )
    return {FLAGS.split: results}


def evaluate_model(model: Any, collection: Collection) -> dict[str, Any]:
    """Measures a model and BM25 according to the flags; prints the results.

    Args:
        model: The `TwoTower`, `PairScorer` or `Ranker` to evaluate.
        collection: The data with the split to evaluate on.

    Returns:
        Split -> system -> measure -> value from 0 to 1; in addition,
        `bm25_words` is the name of BM25's tokenizer, and with --mix,
        `mixture_weights` are the weights and `mixture_dev` the values of
        the measure on dev that chose them.
    """
    return _measure(model, collection)[0]


def _measure(
    model: Any, collection: Collection
) -> tuple[dict[str, Any], dict[str, QueryMeasures], int]:
    """Does the work of `evaluate_model`.

    Returns:
        The results, the measures of each query by system, and the number of
        documents.
    """
    task = Task.from_collection(
        collection, FLAGS.split, FLAGS.mode, FLAGS.min_relevant, FLAGS.depth
    )
    split = words_of(model)
    words = split if FLAGS.bm25_words == "model" else FLAGS.bm25_words
    print(
        f"{FLAGS.split}, {FLAGS.mode}: {len(task.queries)} queries,"
        f" {len(task.documents)} documents in the corpus"
    )
    if collection.has_click_counts:
        print("grades: 0 to 4, computed from the numbers of clicks")
    print(
        f"words of bm25: {_WORDS[words]}"
        f" ({'as' if words == split else 'not as'} the model reads them)"
    )
    bm25 = BM25System(tokenizer=TOKENIZERS[words])
    if isinstance(model, dssm.Ranker) and FLAGS.mode == "retrieve":
        first = "bm25" if model.towers is None else "its first towers"
        candidates = min(FLAGS.depth, model.candidates)
        print(f"the model reorders the {candidates:,} first of {first}")
    if isinstance(model, PairScorer) and FLAGS.mode == "retrieve":
        print(f"the model reorders the {FLAGS.depth:,} first of bm25")
    options = {
        "batch_size": FLAGS.batch_size,
        "progress": sys.stderr.isatty(),
    }
    systems: dict[str, Any] = {
        MODEL: system_of(model, bm25, **options), "bm25": bm25,
    }  # fmt: skip
    about: dict[str, Any] = {"bm25_words": words}
    if FLAGS.mix:
        mixture, parts, chosen = mix_on_dev(
            FLAGS, systems[MODEL], bm25, collection, **options
        )
        systems |= parts | {MIXTURE: mixture}
        about |= chosen
    ranked = MIXTURE if FLAGS.mix else MODEL
    per_query = measure_systems(
        task, systems, {ranked: FLAGS.run_file} if FLAGS.run_file else None
    )
    results = {
        name: mean(values, task.measures) for name, values in per_query.items()
    }
    print(format_table(results))
    return {FLAGS.split: {**about, **results}}, per_query, len(task.documents)


run = COMMAND_LINE.program(main)

if __name__ == "__main__":
    sys.exit(run())
