"""The report of Table IV: summary, text, charts and the HTML page."""

import datetime
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_lstm_dssm.files import read_json, write_json
from keras_lstm_dssm.html_report import (
    HtmlList,
    HtmlPicture,
    HtmlSection,
    HtmlTable,
    write_html_report,
)
from keras_lstm_dssm.tables.charts import (
    DEV_CAPTION,
    bar_chart,
    draw_dev_curves,
)
from keras_lstm_dssm.tables.figure_7 import FIGURE_7_CAPTION, draw_figure_7
from keras_lstm_dssm.tables.robustness import (
    ROBUSTNESS_CAPTION,
    ROBUSTNESS_NOTE,
    write_robustness,
)
from keras_lstm_dssm.tables.system_results import SystemResults, compare_with
from keras_lstm_dssm.tables.table_data import (
    DEV_MEASURES,
    TableData,
    describe_words,
)
from keras_lstm_dssm.tables.text_table import (
    MODE_TITLES,
    TextTable,
    percent,
    write_markdown,
)

Summary = dict[str, Any]
"""The content of `table.json`."""

_COLUMNS = {
    "rerank": ("ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "map"),
    "retrieve": ("ndcg@10", "mrr@10", "recall@10", "recall@100"),
}
_PAPER_COLUMNS = ("ndcg@1", "ndcg@3", "ndcg@10")
_SIGNIFICANCE_LEVEL = 0.05
_DEV_CURVES = (
    "dssm_in_batch", "clsm_win3_in_batch", "lstm_96", "lstm_96_in_batch",
    "best",
)  # fmt: skip


def write_report(
    output: Path,
    data: TableData,
    results: Mapping[str, SystemResults],
    failed: Mapping[str, str],
    costs: Mapping[str, SystemResults],
    pictures: Mapping[str, Path],
) -> Summary:
    """Writes the table, the charts and the page.

    The files are `table.json`, `table.md`, `table.html`, `chart.png`,
    `figure_7.png` and `.csv` (if there are costs), `dev.png` and `.csv` (with
    neural systems), `robustness.md`, `.json` and `.png` (with misspelled
    queries).

    Args:
        output: Folder of the table.
        data: The data that the systems were measured on.
        results: System -> its results, at least one, in the table's order.
        failed: System -> reason why it has no result.
        costs: System -> results, from `figure_7.train_with_one_gamma`.
        pictures: Caption -> further PNG for the page.

    Returns:
        The content of `table.json`.
    """
    summary = summarise(output, data, results, failed)
    tables, notes = _tables(summary), _notes(summary)
    write_json(output / "table.json", summary)
    write_markdown(output / "table.md", tables, notes)
    charts = {"Every system and random order": output / "chart.png"}
    bar_chart(output / "chart.png", summary)
    if picture := draw_figure_7(output, costs):
        charts[FIGURE_7_CAPTION] = picture
    shown = {name: results[name] for name in _DEV_CURVES if name in results}
    if picture := draw_dev_curves(output, shown, data.dev_measure):
        charts[DEV_CAPTION] = picture
    if robustness := write_robustness(output, summary):
        charts[ROBUSTNESS_CAPTION] = output / "robustness.png"
        notes.append(ROBUSTNESS_NOTE)
    sections = [
        *(
            HtmlSection(table.title, [HtmlTable(table.header, table.rows)])
            for table in (*tables, *robustness)
        ),
        *(
            HtmlSection(caption, [HtmlPicture(caption, path)])
            for caption, path in (charts | dict(pictures)).items()
        ),
        HtmlSection("Notes", [HtmlList(notes)]),
    ]
    title = f"Table IV on {summary['settings']['data']}"
    write_html_report(output / "table.html", title, sections)
    return summary


def summarise(
    output: Path,
    data: TableData,
    results: Mapping[str, SystemResults],
    failed: Mapping[str, str],
) -> Summary:
    """Collects all results, and tests differences for significance.

    Systems are compared with BM25, and with the CLSM that is best on dev
    among those trained with the paper's negatives; see `compare_with`. For
    the arguments see `write_report`.
    """
    references = [
        name for name in ("bm25", _best_clsm(results)) if name in results
    ]
    systems = {
        name: {
            "label": result.row.label,
            "kind": result.row.kind,
            "paper": result.row.paper,
            "parameters": result.seeds[0]["parameters"],
            "options": result.seeds[0]["options"],
            "seeds": len(result.seeds),
            "epochs": [seed["epoch"] for seed in result.seeds],
            "dev": result.dev,
            "train_seconds": result.mean_of("train_seconds"),
            "titles_per_second": result.mean_of("titles_per_second"),
            "test": result.values(),
            "misspelled": {
                rate: result.values(float(rate))
                for rate in result.seeds[0]["misspelled"]
            },
            "significance": {},
            "recipe": None
            if result.row.tuned or result.row.recipe is None
            else result.row.recipe.to_dict(),
        }
        for name, result in results.items()
    }
    for mode in data.tests:
        for name, tests in compare_with(references, results, mode).items():
            systems[name]["significance"][mode] = tests
    settings = read_json(output / "settings.json")
    for name in ("data", "paragraphs"):  # without the folders of a machine
        settings[name] = settings[name] and Path(settings[name]).name
    return {
        "date": datetime.date.today().isoformat(),
        "machine": f"{platform.platform()}, {os.cpu_count()} cores",
        "settings": settings,
        "words": describe_words(data),
        "references": references,
        "random": {mode: task.random() for mode, task in data.tests.items()},
        "systems": systems,
        "failed": dict(failed),
    }


def _best_clsm(results: Mapping[str, SystemResults]) -> str:
    """Returns the name of the CLSM that is best on dev, or "" without one."""
    clsm = {
        name: result.dev
        for name, result in results.items()
        if (recipe := result.row.recipe)
        and recipe.encoder == "CLSMEncoder"
        and recipe.negatives == "random"
    }
    return max(clsm, key=clsm.__getitem__, default="")


def _tables(summary: Summary) -> list[TextTable]:
    """Returns a table for each mode, and one of choices and speed."""
    systems: dict[str, dict[str, Any]] = summary["systems"]
    modes = next(iter(systems.values()))["test"]
    rows = [
        [
            s["label"],
            f"{s['parameters']:,}",
            ", ".join(f"{k} {v}" for k, v in s["options"].items()) or "-",
            ", ".join(str(e) for e in s["epochs"] if e) or "-",
            f"{100 * s['dev']:.2f}",
            f"{s['train_seconds']:,.0f}",
            f"{s['titles_per_second']:,.0f}" if s["titles_per_second"] else "-",
        ]
        for s in systems.values()
    ]
    header = [
        "System", "Parameters", "Chosen on dev", "Best epoch on dev",
        "Dev value", "Training, s", "Titles encoded/s",
    ]  # fmt: skip
    return [
        *(_mode_table(summary, mode) for mode in modes),
        TextTable("Parameters, choices and speed", header, rows),
    ]


def _mode_table(summary: Summary, mode: str) -> TextTable:
    systems = summary["systems"]
    references = summary["references"]
    header = ["System", *(name.upper() for name in _COLUMNS[mode])]
    header += [f"against {systems[r]['label']}" for r in references]
    if mode == "rerank":
        header += [f"paper's {name.upper()}" for name in _PAPER_COLUMNS]
    rows = []
    for system in systems.values():
        row = [system["label"]]
        for name in _COLUMNS[mode]:
            value = system["test"][mode][name]
            row.append(percent(value, system["seeds"] > 1))
        for reference in references:
            row.append(_difference(system["significance"][mode].get(reference)))
        if mode == "rerank":
            row += [f"{p:.1f}" for p in system["paper"] or []] or ["-"] * 3
        rows.append(row)
    return TextTable(MODE_TITLES[mode], header, rows)


def _difference(test: dict[str, float] | None) -> str:
    if test is None:
        return "-"
    star = " *" if test["p_holm"] < _SIGNIFICANCE_LEVEL else ""
    return f"{100 * test['difference']:+.2f}{star}"


def _notes(summary: Summary) -> list[str]:
    """Returns sentences that state how the results were measured."""
    settings, systems = summary["settings"], summary["systems"]
    words = summary["words"]
    modes = next(iter(systems.values()))["test"]
    notes = [
        f"Data: {settings['titles']:,} titles, {settings['clicks']:,} clicks;"
        f" {settings['dev_queries']:,} queries to choose on; "
        + ", ".join(f"{settings[f'{m}_queries']:,} to {m}" for m in modes)
        + f". {summary['date']}, {summary['machine']}.",
        f"Words: {words['query_words']:.1f} in a test query,"
        f" {words['title_words']:.1f} in a title; {words['overlap']:.0%} of a"
        " query's words are in its relevant title,"
        f" {words['seen']:.0%} in some training query;"
        f" {words['clicks_per_title']:.1f} clicks for each clicked title.",
        "Values are in percent, on the test split: means and standard"
        " deviations over seeds. NDCG has gain 2^grade - 1 and discount"
        " log2(rank + 1); click counts are turned into grades 0 to 4 first."
        " Ties are broken by a fixed hash. The paper's values were measured on"
        " its own, private log.",
        "The values of random order are exact expectations, so it has no run"
        " file.",
        "* differs significantly: paired randomisation test over queries on"
        f" {' or '.join(f'{DEV_MEASURES[m].upper()} ({m})' for m in modes)},"
        " averaged over seeds, two-sided, 100,000 random signs, Holm-corrected"
        f" over the column, p < {_SIGNIFICANCE_LEVEL}. The CLSM is the one that"
        " is best on dev.",
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
    notes += [
        f"{system['label']}: trained by its own recipe; only the epoch is"
        " chosen on this data: "
        + ", ".join(f"{k} {v}" for k, v in system["recipe"].items())
        + "."
        for system in systems.values()
        if system["recipe"]
    ]
    if "rerank" not in modes:
        notes.append(
            "Nothing is reranked: all judged titles of a query have the same"
            " grade, so that every order is right."
        )
    notes += [
        f"{name} failed: {reason}" for name, reason in summary["failed"].items()
    ]
    return notes
