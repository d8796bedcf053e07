"""The table of towers distilled from a teacher, and of mixtures."""

from keras_lstm_dssm.models import PRESETS
from keras_lstm_dssm.papers.report import (
    choices_table,
    closing_notes,
    data_notes,
    draw_dev_curves,
    significance_note,
    write_report_files,
)
from keras_lstm_dssm.papers.results import Summary, summarise
from keras_lstm_dssm.papers.rows import Row
from keras_lstm_dssm.papers.table import (
    FinishedSystems,
    PaperTable,
    learning_curve,
)
from keras_lstm_dssm.papers.table_iv import mode_table
from keras_lstm_dssm.settings.papers import PAPER_OPTIONS

_BEST = Row("best", None, PRESETS["best"], tuned=False, saved=True)

FEW_CLICKS_ROWS: dict[str, Row] = {
    "random": Row("Random order", seeded=False),
    "bm25": Row("BM25", seeded=False),
    "teacher": Row("The teacher alone", seeded=False),
    "bm25_teacher": Row(
        "BM25 + teacher", seeded=False, parts=("bm25", "teacher")
    ),
    "best": _BEST,
    "taught": _BEST._replace(
        label="taught", recipe=PRESETS["taught"], taught=True
    ),
    "best_taught": _BEST._replace(label="best, taught", taught=True),
    "best_bm25": Row("best + BM25", parts=("best", "bm25")),
    "best_teacher": Row("best + teacher", parts=("best", "teacher")),
    "best_bm25_teacher": Row(
        "best + BM25 + teacher", parts=("best", "bm25", "teacher")
    ),
    "taught_bm25": Row("taught + BM25", parts=("taught", "bm25")),
    "taught_teacher": Row("taught + teacher", parts=("taught", "teacher")),
    "taught_bm25_teacher": Row(
        "taught + BM25 + teacher",
        parts=("taught", "bm25", "teacher"),
    ),
}
"""Name -> row. A mixture comes after its parts."""


def _report(work: FinishedSystems) -> tuple[Summary, dict[str, str]]:
    """Measures the learning curve and writes the report."""
    output, data = work.output, work.data
    pictures, failed = learning_curve(work)
    summary = summarise(output, data, work.results, failed, ["bm25", "best"])
    shown = {n: r for n, r in work.results.items() if r.row.recipe}
    charts = draw_dev_curves(output, shown, data.dev_measure)
    write_report_files(
        output,
        f"Few clicks on {summary['settings']['data']}",
        summary,
        [
            *(mode_table(summary, mode) for mode in data.tests),
            choices_table(summary, "titles_per_second", "Titles encoded/s"),
        ],
        _notes(summary),
        {**charts, **pictures},
    )
    return summary, failed


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
        f"The teacher is an encoder that was trained elsewhere ({teacher});"
        " towers that are taught learn from its vectors of the training"
        " queries and of all titles, and do without it afterwards. A mixture"
        " is the weighted sum of the scores of its parts, with weights chosen"
        f" for each seed by {summary['dev_measure']} of whole-corpus search on"
        " dev, for reranking, too.",
        f"Of {settings['dev_evaluations']} evaluations on dev, the best epoch"
        " is measured on test. Parameters are those of one of the two towers.",
        *closing_notes(summary),
    ]


FEW_CLICKS = PaperTable(
    title="Few clicks",
    rows=FEW_CLICKS_ROWS,
    options=PAPER_OPTIONS["few_clicks"],
    fixed={"dev_mode": "retrieve"},
    report=_report,
)
