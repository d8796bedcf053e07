"""The table of a teacher, and of mixtures and hybrids with its vectors."""

from keras_lstm_dssm.models import PRESETS
from keras_lstm_dssm.papers.baseline_rows import Baseline, Hybrid, Mixed
from keras_lstm_dssm.papers.neural_rows import Neural
from keras_lstm_dssm.papers.report import (
    PaperTable,
    data_notes,
    significance_note,
)
from keras_lstm_dssm.papers.results import Summary
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


def _notes(summary: Summary) -> list[str]:
    """Returns sentences that state how the results were measured."""
    settings = summary["settings"]
    teacher = settings["teacher"] or "none"
    return [
        *data_notes(summary, "titles", "clicks"),
        "Values are in percent, on the test split: means and standard"
        " deviations over seeds. NDCG has gain 2^grade - 1 and discount"
        " log2(rank + 1). Ties are broken by a fixed hash.",
        significance_note(summary),
        f"The teacher is an encoder that was trained elsewhere ({teacher})."
        " A mixture is the weighted sum of the scores of its parts, with"
        f" weights chosen for each seed by {summary['dev_measure']} of"
        " whole-corpus search on dev, for reranking, too. The parts of a hybrid"
        " are the towers without their sketch, words fitted to the teacher, and"
        " BM25 of stems: it needs no teacher for a query.",
        f"Of {settings['dev_evaluations']} evaluations on dev, the best epoch"
        " is measured on test. Parameters are those of one of the two towers.",
    ]


FEW_CLICKS = PaperTable(
    title="Few clicks",
    rows=FEW_CLICKS_ROWS,
    references=lambda results: ["bm25", "best"],
    tables=mode_tables,
    notes=_notes,
)
