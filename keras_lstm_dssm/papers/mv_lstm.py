"""Declares Tables 2, 3 and 5 of Wan et al. 2016: rows, columns and notes."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from keras_lstm_dssm.models import SCORER_PRESETS
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


def _row(label: str, name: str, group: str = "recurrent") -> Row:
    return Row(label, Neural(SCORER_PRESETS[name], group))


def _feed_forward(label: str, name: str) -> Row:
    return _row(label, name, "feed-forward")


def _mv_lstm(k: int) -> Row:
    recipe = SCORER_PRESETS["mv_lstm_cosine"].with_matcher(k=k)
    return Row(f"MV-LSTM cosine, k = {k}", Neural(recipe))


MV_LSTM_ROWS: dict[str, Row] = {
    "random": Row("Random order", Baseline()),
    "document_order": Row("Document order", Baseline()),
    "bm25": Row("BM25", Baseline()),
    "skip_gram": Row(
        "Sum of skip-gram vectors, untrained", Baseline(seeded=True)
    ),
    "skip_gram_idf": Row(
        "Sum weighted by IDF, untrained", Baseline(seeded=True)
    ),
    "arc_i": _feed_forward("ARC-I", "arc_i"),
    "arc_i_wan": _feed_forward("ARC-I, small", "arc_i_wan"),
    "cntn": _feed_forward("CNTN", "cntn"),
    "cntn_wan": _feed_forward("CNTN, small", "cntn_wan"),
    "lstm_rnn_50": _row("LSTM-RNN 50", "lstm_rnn_50"),
    "bilstm_rnn_50": _row("Bi-LSTM-RNN 50", "bilstm_rnn_50"),
    "rae": _feed_forward("RAE", "rae"),
    "deep_match": _feed_forward("DeepMatch", "deep_match"),
    "arc_ii": _feed_forward("ARC-II", "arc_ii"),
    "arc_ii_wan": _feed_forward("ARC-II, small", "arc_ii_wan"),
    "multi_gran_cnn": _feed_forward("MultiGranCNN", "multi_gran_cnn"),
    "multi_gran_cnn_wan": _feed_forward(
        "MultiGranCNN, small", "multi_gran_cnn_wan"
    ),
    "mv_lstm_cosine_k1": _mv_lstm(1),
    "mv_lstm_cosine_k3": _mv_lstm(3),
    "mv_lstm_cosine": _mv_lstm(5),
    "mv_lstm_cosine_k10": _mv_lstm(10),
    "mv_lstm_bilinear": _row("MV-LSTM bilinear, k = 5", "mv_lstm_bilinear"),
    "mv_lstm_tensor": _row("MV-LSTM tensor, k = 5", "mv_lstm_tensor"),
}
"""The rows by name, in the paper's order. Models labelled "small" have the
sizes in Wan et al.'s programs. Every other model is as described in the paper
that introduced the model."""

POOLING_ROWS = ("mv_lstm_cosine_k1", "mv_lstm_cosine_k3", "mv_lstm_cosine_k10")
"""The rows of Table 2 that are not in Tables 3 and 5."""

TABLE_2_ROWS = (
    "lstm_rnn_50", "bilstm_rnn_50", "mv_lstm_cosine_k1", "mv_lstm_cosine_k3",
    "mv_lstm_cosine", "mv_lstm_cosine_k10",
)  # fmt: skip


class Published(NamedTuple):
    """Metrics published by Wan et al. 2016, from 0 to 1, on their data."""

    precision: float  # P@1 on question answering, Tables 2 and 3
    reciprocal: float  # MRR on question answering
    confirmed: bool = False  # whether another publication has both values
    # P@1 on sentence completion, Table 5; `None` if in no other publication.
    completion: float | None = None


PUBLISHED: dict[str, Published] = {
    "random": Published(0.200, 0.457, True, 0.200),
    "bm25": Published(0.579, 0.726, True),
    "arc_i": Published(0.581, 0.756, True, 0.475),
    "cntn": Published(0.626, 0.781, True),
    "lstm_rnn_50": Published(0.690, 0.822, True),
    "bilstm_rnn_50": Published(0.702, 0.830),
    "rae": Published(0.398, 0.652, False, 0.258),
    "deep_match": Published(0.452, 0.679, False, 0.325),
    "arc_ii": Published(0.591, 0.765, True, 0.496),
    "multi_gran_cnn": Published(0.725, 0.840),
    "mv_lstm_cosine_k1": Published(0.726, 0.843),
    "mv_lstm_cosine_k3": Published(0.736, 0.849),
    "mv_lstm_cosine": Published(0.739, 0.852),
    "mv_lstm_cosine_k10": Published(0.740, 0.852),
    "mv_lstm_bilinear": Published(0.751, 0.860),
    "mv_lstm_tensor": Published(0.766, 0.869),
}


def published(name: str) -> Published | None:
    """Returns a row's published metrics; the suffix `_wan` has no effect."""
    return PUBLISHED.get(name.removesuffix("_wan"))


_MODE = "lists"
_PAPER_COLUMNS = ("p@1", "mrr")
_FURTHER_COLUMNS = ("map", "ndcg@3", "ndcg@5")
_DEV_CURVES = (
    "arc_ii", "multi_gran_cnn", "lstm_rnn_50", "mv_lstm_cosine",
    "mv_lstm_bilinear", "mv_lstm_tensor",
)  # fmt: skip


def _add_published(
    summary: Summary, results: Mapping[str, SystemResults]
) -> None:
    for name, system in summary["systems"].items():
        system["is_random"] = name != "random" and _is_random(system, summary)
    summary["published"] = {
        name: metrics._asdict()
        for name in results
        if (metrics := published(name))
    }


def _tables(summary: Summary) -> list[Table]:
    """Returns Tables 3 and 5 as one table, and Table 2.

    Table 2 has rows only if the summary has a row of `POOLING_ROWS`.
    """
    data, systems = summary["settings"]["data"], summary["systems"]
    pooling = [name for name in TABLE_2_ROWS if name in systems]
    return [
        measure_table(
            summary,
            f"Tables 3 and 5: the models on {data}",
            _MODE,
            _PAPER_COLUMNS + _FURTHER_COLUMNS,
            names=[name for name in systems if name not in POOLING_ROWS],
            differences={_MODE: ""},
            published=["paper, QA: P@1", "MRR", "paper, SC: P@1"],
            published_of=_published_cells,
            first="Model",
        ),
        measure_table(
            summary,
            f"Table 2: the k of k-max pooling, on {data}",
            _MODE,
            _PAPER_COLUMNS,
            names=pooling if {*pooling} & {*POOLING_ROWS} else (),
            differences={_MODE: ""},
            published=["paper, QA: P@1", "MRR"],
            published_of=lambda name: _published_cells(name)[:2],
            first="Model",
        ),
    ]


def _published_cells(name: str) -> Sequence[str]:
    if not (metrics := published(name)):
        return ()
    dagger = " †" if metrics.confirmed else ""
    answers = metrics.precision, metrics.reciprocal
    completion = metrics.completion
    return [
        *(f"{100 * value:.1f}{dagger}" for value in answers),
        "-" if completion is None else f"{100 * completion:.1f} †",
    ]


def _is_random(system: Mapping[str, Any], summary: Summary) -> bool:
    return all(
        abs(system["test"][_MODE][name]["mean"] - value) < 1e-9
        for name, value in summary["random"][_MODE].items()
    )


MV_LSTM_TABLE = PaperTable(
    title="Tables 2, 3 and 5 of Wan et al. 2016",
    rows=MV_LSTM_ROWS,
    references=lambda results: ["bm25", "lstm_rnn_50", "mv_lstm_cosine"],
    tables=_tables,
    notes="mv_lstm.jinja",
    speed=("pairs_per_second", "Pairs scored/s"),
    curves=lambda results: _DEV_CURVES,
    further=_add_published,
)
