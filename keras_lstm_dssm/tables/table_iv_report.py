"""The report of Table IV: columns, notes, charts."""

from collections.abc import Mapping
from pathlib import Path

from keras_lstm_dssm.models import Recipe
from keras_lstm_dssm.tables.base_data import BaseTableData
from keras_lstm_dssm.tables.charts import draw_dev_curves
from keras_lstm_dssm.tables.figure_7 import FIGURE_7_CAPTION, draw_figure_7
from keras_lstm_dssm.tables.report import (
    choices_table,
    closing_notes,
    data_notes,
    difference_cells,
    difference_header,
    measure_cells,
    significance_note,
    write_report_files,
)
from keras_lstm_dssm.tables.summary import Summary, summarise
from keras_lstm_dssm.tables.system_results import SystemResults
from keras_lstm_dssm.tables.text_table import MODE_TITLES, TextTable

_COLUMNS = {
    "rerank": ("ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "map"),
    "retrieve": ("ndcg@10", "mrr@10", "recall@10", "recall@100"),
}
_PAPER_COLUMNS = ("ndcg@1", "ndcg@3", "ndcg@10")
_DEV_CURVES = (
    "dssm_in_batch", "clsm_win3_in_batch", "lstm_96", "lstm_96_in_batch",
    "best",
)  # fmt: skip


def write_report(
    output: Path,
    data: BaseTableData,
    results: Mapping[str, SystemResults],
    failed: Mapping[str, str],
    costs: Mapping[str, SystemResults],
    pictures: Mapping[str, Path],
) -> Summary:
    """Writes the table, the charts and the page.

    The files are those of `write_report_files`, and `figure_7.png` and `.csv`
    (if there are costs), `dev.png` and `.csv` (with neural systems). Systems
    are compared with BM25, and with the CLSM that is best on dev among those
    trained with the paper's negatives.

    Args:
        output: Folder of the table.
        data: The data that the systems were measured on.
        results: System -> its results, at least one, in the table's order.
        failed: System -> reason why it has no result.
        costs: System -> results, from `figure_7.train_with_one_gamma`.
        pictures: Caption -> further PNG for the page.

    Returns:
        The content of `table.json`.

    Example:
    >>> from keras_lstm_dssm.tables import open_data, read_results, run_system
    >>> from keras_lstm_dssm.tables import Row, TableSettings
    >>> settings, output = TableSettings("parts"), Path("report")
    >>> rows = {"bm25": Row("BM25", seeded=False)}
    >>> run_system(output, "bm25", rows["bm25"], settings, seeds=1)
    bm25, seed 0: ... s, dev ndcg@10 100.00
    >>> data = open_data(settings, output)
    >>> results = read_results(output, rows, seeds=1)
    >>> settings.record(output, data.sizes)
    >>> summary = write_report(output, data, results, {}, {}, {})
    >>> "BM25" in (output / "table.md").read_text()
    True
    """
    references = ["bm25", _best_clsm(results)]
    summary = summarise(output, data, results, failed, references)
    charts = {}
    if picture := draw_figure_7(output, costs):
        charts[FIGURE_7_CAPTION] = picture
    shown = {name: results[name] for name in _DEV_CURVES if name in results}
    charts |= draw_dev_curves(output, shown, data.dev_measure)
    write_report_files(
        output,
        f"Table IV on {summary['settings']['data']}",
        summary,
        [
            *(mode_table(summary, mode) for mode in data.tests),
            choices_table(summary, "titles_per_second", "Titles encoded/s"),
        ],
        _notes(summary),
        {**charts, **pictures},
    )
    return summary


def _best_clsm(results: Mapping[str, SystemResults]) -> str:
    """Returns the name of the CLSM that is best on dev, or "" without one."""
    clsm = {
        name: result.dev
        for name, result in results.items()
        if isinstance(recipe := result.row.recipe, Recipe)
        and recipe.encoder == "CLSMEncoder"
        and recipe.negatives == "random"
    }
    return max(clsm, key=clsm.__getitem__, default="")


def mode_table(summary: Summary, mode: str) -> TextTable:
    """Returns the table of a mode, with the paper's values if rows have any.

    Args:
        summary: The results.
        mode: `"rerank"` or `"retrieve"`.
    """
    published = mode == "rerank" and any(
        system["paper"] for system in summary["systems"].values()
    )
    header = ["System", *(name.upper() for name in _COLUMNS[mode])]
    header += difference_header(summary)
    if published:
        header += [f"paper's {name.upper()}" for name in _PAPER_COLUMNS]
    rows = []
    for system in summary["systems"].values():
        row = [system["label"], *measure_cells(system, mode, _COLUMNS[mode])]
        row += difference_cells(summary, system, mode)
        if published:
            row += [f"{p:.1f}" for p in system["paper"] or []] or ["-"] * 3
        rows.append(row)
    return TextTable(MODE_TITLES[mode], header, rows)


def _notes(summary: Summary) -> list[str]:
    """Returns sentences that state how the results were measured."""
    settings = summary["settings"]
    notes = [
        *data_notes(summary, "titles", "clicks"),
        "Values are in percent, on the test split: means and standard"
        " deviations over seeds. NDCG has gain 2^grade - 1 and discount"
        " log2(rank + 1); click counts are turned into grades 0 to 4 first."
        " Ties are broken by a fixed hash. The paper's values were measured on"
        " its own, private log.",
        "The values of random order are exact expectations, so it has no run"
        " file.",
        f"{significance_note(summary)} The CLSM is the one that is best on"
        " dev.",
        f"Neural systems: {settings['epochs']} epochs, batches of"
        f" {settings['batch_size']}, Nesterov momentum 0.9/0.995/0.9, both"
        " towers start from the same random weights; learning rate from"
        f" {settings['learning_rates']} and gamma from {settings['gammas']},"
        " chosen on dev, first the learning rate (with the first gamma), with"
        f" one seed and {settings['search']:g} of the epochs, equal for all."
        f" Of {settings['dev_evaluations']} evaluations on dev, the best epoch"
        " is measured on test. n = 4 random negatives unless stated."
        " Parameters are those of one of the two towers.",
        "PLSA and Doc2Vec learn from the titles of the corpus, in which BM25"
        " and ULM count words. Skip-Thought is trained here, on"
        f" {settings['paragraphs'] or 'docstrings of installed packages'}, as"
        " the published weights need a download.",
    ]
    if k := settings.get("judged_negatives"):
        notes.append(
            f"Neural systems also learn from {k} negatives for each click,"
            " titles that were judged not relevant for its query; Best has"
            " these in place of mined ones."
        )
    if "rerank" not in summary["random"]:
        notes.append(
            "Nothing is reranked: all judged titles of a query have the same"
            " grade, so that every order is right."
        )
    return notes + closing_notes(summary)
