"""The table of a teacher, and of mixtures and hybrids with its vectors."""

from keras_lstm_dssm.models import PRESETS
from keras_lstm_dssm.papers.baseline_rows import Baseline, Hybrid, Mixed
from keras_lstm_dssm.papers.neural_rows import Neural
from keras_lstm_dssm.papers.report import (
    PaperTable,
)
from keras_lstm_dssm.papers.run_systems import Row
from keras_lstm_dssm.papers.table_iv import mode_tables


def _mixed(label: str, *parts: str, seeded: bool = True) -> Row:
    return Row(label, Mixed(parts, seeded))


FEW_CLICKS_ROWS: dict[str, Row] = {
    "random": Row("Random order", Baseline()),
    "bm25": Row("BM25", Baseline()),
    "teacher": Row("The teacher alone", Baseline()),
    "bm25_teacher": _mixed("BM25 + teacher", "bm25", "teacher", seeded=False),
    "best": Row("best", Neural(PRESETS["best"], tuned=False, saved=True)),
    "best_bm25": _mixed("best + BM25", "best", "bm25"),
    "best_teacher": _mixed("best + teacher", "best", "teacher"),
    "best_bm25_teacher": _mixed(
        "best + BM25 + teacher", "best", "bm25", "teacher"
    ),
    "words_bm25": Row("hybrid of words and BM25, no clicks", Hybrid()),
    "hybrid": Row("hybrid of best, words and BM25", Hybrid("best")),
}
"""Name -> row. A mixture comes after its parts."""


FEW_CLICKS = PaperTable(
    title="Few clicks",
    rows=FEW_CLICKS_ROWS,
    references=lambda results: ["bm25", "best"],
    tables=mode_tables,
    notes="few_clicks.jinja",
)
