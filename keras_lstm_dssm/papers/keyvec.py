"""Declares Tables 1 and 2 of Bi and Ma 2017: rows, columns and notes."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from keras_lstm_dssm.evaluation.clustering import CLUSTER_MEASURES
from keras_lstm_dssm.evaluation.task import CLUSTER, DOCUMENT_MEASURES, RETRIEVE
from keras_lstm_dssm.models import KEYVEC_PRESETS
from keras_lstm_dssm.pages import Table
from keras_lstm_dssm.papers.baseline_rows import Baseline
from keras_lstm_dssm.papers.neural_rows import Neural
from keras_lstm_dssm.papers.report import (
    PaperTable,
    Summary,
    SystemResults,
    measure_table,
)
from keras_lstm_dssm.papers.run_systems import Row


def _row(label: str, name: str, **options: Any) -> Row:
    return Row(label, Neural(KEYVEC_PRESETS[name], **options))


KEYVEC_ROWS: dict[str, Row] = {
    "random": Row("Random order, random clusters", Baseline()),
    "random_vectors": Row("Random vectors", Baseline(seeded=True)),
    "bm25": Row("BM25", Baseline(), vectors=False),
    "tfidf": Row("TF-IDF", Baseline()),
    "lsa": Row("TF-IDF, SVD 100", Baseline(seeded=True)),
    "word2vec": Row("Averaged word2vec, own corpus", Baseline(seeded=True)),
    "doc2vec": Row("Paragraph Vector", Baseline(seeded=True)),
    "doc2vec_classes": Row(
        "Paragraph Vector, trained with classes", Baseline(seeded=True)
    ),
    "keyvec_untrained": _row("KeyVec, untrained", "keyvec", trained=False),
    "keyvec_without_read": _row("KeyVec without L_read", "keyvec_without_read"),
    "keyvec_without_words": _row(
        "KeyVec without L_enc", "keyvec_without_words"
    ),
    "keyvec_mean": _row("KeyVec with p = 1", "keyvec_mean"),
    "keyvec_lead": _row(
        "KeyVec, first sentences as key sentences", "keyvec", salience="lead"
    ),
    "keyvec_printed": _row(
        "KeyVec, loss as printed, whole documents",
        "keyvec_printed",
        tuned=False,
    ),
    "keyvec": _row("KeyVec", "keyvec"),
    "keyvec_document": _row(
        "KeyVec, key words of all the text", "keyvec_document"
    ),
    "keyvec_document_without_read": Row(
        "KeyVec, key words of all the text, without L_read",
        Neural(KEYVEC_PRESETS["keyvec_document"].replace(read_weight=0.0)),
    ),
}
"""The rows by name: baselines, variants of KeyVec, and KeyVec itself."""


class Published(NamedTuple):
    """Metrics published by Bi and Ma 2017, from 0 to 1, on their data."""

    retrieval: tuple[float, float, float]  # P@10, MAP and MRR of Table 1
    clustering: tuple[float, float, float]  # F1, V and ARI of Table 2


PUBLISHED: dict[str, Published] = {
    "word2vec": Published((0.223, 0.193, 0.546), (0.079, 0.548, 0.066)),
    "doc2vec": Published((0.227, 0.177, 0.495), (0.083, 0.553, 0.070)),
    "keyvec": Published((0.279, 0.232, 0.619), (0.090, 0.597, 0.079)),
}
"""Published metrics by name of the row. The paper's row of public word2vec
vectors is left out, because these vectors need a download."""

_RECALL = "recall@10"
_PAPER_COLUMNS = {RETRIEVE: ("p@10", "map", "mrr"), CLUSTER: ("f1", "v", "ari")}
_KEY_SENTENCES = {
    "salience_average_precision": "Average precision of p",
    "salience_order_average_precision": "Average precision of sentence order",
    "salience_precision": "R-precision of p",
    "salience_base_rate": "Share of key sentences",
}
"""Name of a metric in `result.json` -> heading of the metric's column."""


def _add_further(
    summary: Summary, results: Mapping[str, SystemResults]
) -> None:
    summary["published"] = {
        name: PUBLISHED[name]._asdict() for name in results if name in PUBLISHED
    }
    systems = summary["systems"]
    for name, result in results.items():
        systems[name]["key_sentences"] = {
            key: result.mean_of(key) for key in _KEY_SENTENCES
        }


def _tables(summary: Summary) -> list[Table]:
    tables = []
    if RETRIEVE in summary["random"]:
        differences = {RETRIEVE: "MRR@10", _RECALL: _RECALL.upper()}
        tables += [
            _results_table(summary, RETRIEVE, "Table 1: retrieval"),
            measure_table(
                summary,
                "Differences of retrieval",
                RETRIEVE,
                (),
                names=None if summary["references"] else (),
                differences=differences,
            ),
        ]
    if CLUSTER in summary["random"]:
        tables.append(_results_table(summary, CLUSTER, "Table 2: clusters"))
    return [*tables, _key_sentence_table(summary)]


def _results_table(summary: Summary, mode: str, title: str) -> Table:
    systems = summary["systems"]
    return measure_table(
        summary,
        f"{title} on {summary['settings']['data']}",
        mode,
        CLUSTER_MEASURES if mode == CLUSTER else DOCUMENT_MEASURES,
        names=[name for name in systems if mode in systems[name]["test"]],
        published=[f"paper's {name.upper()}" for name in _PAPER_COLUMNS[mode]],
        published_of=lambda name: _published_cells(name, mode),
    )


def _published_cells(name: str, mode: str) -> Sequence[str]:
    if name not in PUBLISHED:
        return ()
    metrics = PUBLISHED[name]
    values = metrics.clustering if mode == CLUSTER else metrics.retrieval
    return [f"{100 * value:.1f}" for value in values]


def _key_sentence_table(summary: Summary) -> Table:
    rows = []
    for system in summary["systems"].values():
        values = [system["key_sentences"][name] for name in _KEY_SENTENCES]
        if None not in values:
            rows.append([system["label"], *(f"{100 * v:.2f}" for v in values)])
    header = ["System", *_KEY_SENTENCES.values()]
    return Table(header, rows, "Key sentences of the test documents")


KEYVEC_TABLE = PaperTable(
    title="Tables 1 and 2 of Bi and Ma 2017",
    rows=KEYVEC_ROWS,
    references=lambda results: ["word2vec", "doc2vec", "lsa", "keyvec"],
    tables=_tables,
    notes="keyvec.jinja",
    speed=("titles_per_second", "Documents encoded/s"),
    compared={_RECALL: RETRIEVE},
    further=_add_further,
)
