"""The parts that the reports of all tables have in common."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_lstm_dssm.evaluation.document_task import CLUSTER
from keras_lstm_dssm.files import write_json
from keras_lstm_dssm.html_report import (
    HtmlList,
    HtmlPicture,
    HtmlSection,
    HtmlTable,
    write_html_report,
)
from keras_lstm_dssm.tables.base_data import MAIN_MEASURES
from keras_lstm_dssm.tables.charts import bar_chart
from keras_lstm_dssm.tables.robustness import (
    ROBUSTNESS_CAPTION,
    ROBUSTNESS_NOTE,
    write_robustness,
)
from keras_lstm_dssm.tables.summary import Summary
from keras_lstm_dssm.tables.text_table import (
    TextTable,
    percent,
    write_markdown,
)

_SIGNIFICANCE_LEVEL = 0.05
_USES = {"lists": "test on"}


def write_report_files(
    output: Path,
    title: str,
    summary: Summary,
    tables: Sequence[TextTable],
    notes: Sequence[str],
    charts: Mapping[str, Path],
) -> None:
    """Writes the files of a table.

    They are `table.json`, `table.md`, `table.html` and `chart.png`, and with
    misspelled queries `robustness.md`, `.json` and `.png`.

    Args:
        output: Folder of the table.
        title: Heading of the page.
        summary: The results.
        tables: The tables of text.
        notes: Sentences below the tables.
        charts: Caption -> further picture for the page.
    """
    write_json(output / "table.json", summary)
    write_markdown(output / "table.md", tables, notes)
    bar_chart(output / "chart.png", summary)
    pictures = {"Every system and random order": output / "chart.png", **charts}
    notes = list(notes)
    if robustness := write_robustness(output, summary):
        pictures[ROBUSTNESS_CAPTION] = output / "robustness.png"
        notes.append(ROBUSTNESS_NOTE)
    write_page(
        output / "table.html", title, [*tables, *robustness], pictures, notes
    )


def write_page(
    path: Path,
    title: str,
    tables: Sequence[TextTable],
    pictures: Mapping[str, Path],
    notes: Sequence[str],
) -> None:
    """Writes an HTML page of tables, pictures (by caption) and notes."""
    sections = [
        HtmlSection(table.title, [HtmlTable(table.header, table.rows)])
        for table in tables
    ]
    sections += [
        HtmlSection(caption, [HtmlPicture(caption, picture)])
        for caption, picture in pictures.items()
    ]
    write_html_report(
        path, title, [*sections, HtmlSection("Notes", [HtmlList(notes)])]
    )


def measure_cells(
    system: Mapping[str, Any], mode: str, names: Sequence[str]
) -> list[str]:
    """Formats measures of a system on test; "-" without a result."""
    values = system["test"].get(mode)
    if values is None:
        return ["-"] * len(names)
    return [percent(values[name], system["seeds"] > 1) for name in names]


def difference_cells(
    summary: Summary, system: Mapping[str, Any], mode: str
) -> list[str]:
    """Formats the differences from the references, significant ones with *."""
    cells = []
    for reference in summary["references"]:
        test = system["significance"][mode].get(reference)
        if test is None:
            cells.append("-")
            continue
        star = " *" if test["p_holm"] < _SIGNIFICANCE_LEVEL else ""
        cells.append(f"{100 * test['difference']:+.2f}{star}")
    return cells


def difference_header(summary: Summary) -> list[str]:
    """Returns the headings of the columns of `difference_cells`."""
    systems = summary["systems"]
    return [f"against {systems[r]['label']}" for r in summary["references"]]


def choices_table(summary: Summary, speed: str, heading: str) -> TextTable:
    """Returns the table of parameters, choices on dev and speed.

    Args:
        summary: The results.
        speed: The entry of a system with its speed.
        heading: The heading of that column.
    """
    rows = [
        [
            s["label"],
            f"{s['parameters']:,}",
            ", ".join(f"{k} {v}" for k, v in s["options"].items()) or "-",
            ", ".join(str(e) for e in s["epochs"] if e) or "-",
            f"{100 * s['dev']:.2f}",
            f"{s['train_seconds']:,.0f}",
            f"{s[speed]:,.0f}" if s[speed] else "-",
        ]
        for s in summary["systems"].values()
    ]
    header = [
        "System", "Parameters", "Chosen on dev", "Best epoch on dev",
        "Dev value", "Training, s", heading,
    ]  # fmt: skip
    return TextTable("Parameters, choices and speed", header, rows)


def data_notes(summary: Summary, documents: str, clicks: str) -> list[str]:
    """Returns sentences about the data.

    Args:
        summary: The results.
        documents: What to call the documents.
        clicks: What to call the pairs of a query and a relevant document.
    """
    settings, words = summary["settings"], summary["words"]
    modes = summary["random"]
    one = documents.removesuffix("s")
    return [
        f"Data: {settings['titles']:,} {documents}, {settings['clicks']:,}"
        f" {clicks}; {settings['dev_queries']:,} queries to choose on; "
        + ", ".join(
            f"{settings[f'{mode}_queries']:,} to {_USES.get(mode, mode)}"
            for mode in modes
        )
        + f". {summary['date']}, {summary['machine']}.",
        f"Words: {words['query_words']:.1f} in a test query,"
        f" {words['title_words']:.1f} in a {one}; {words['overlap']:.0%} of a"
        f" query's words are in its relevant {one},"
        f" {words['seen']:.0%} in some training query;"
        f" {words['clicks_per_title']:.1f} {clicks} for each of their"
        f" {documents}.",
    ]


def significance_note(summary: Summary) -> str:
    """Returns the sentence about the test of significance."""
    modes = [mode for mode in summary["random"] if mode != CLUSTER]
    measures = " or ".join(f"{MAIN_MEASURES[m].upper()} ({m})" for m in modes)
    return (
        "* differs significantly: paired randomisation test over queries on"
        f" {measures}, averaged over seeds, two-sided, 100,000 random signs,"
        f" Holm-corrected over the column, p < {_SIGNIFICANCE_LEVEL}."
    )


def closing_notes(summary: Summary) -> list[str]:
    """Returns sentences about rows with their own recipe, and failed ones."""
    notes = [
        f"{system['label']}: trained by its own recipe; only the epoch is"
        " chosen on this data: "
        + ", ".join(f"{k} {v}" for k, v in system["recipe"].items())
        + "."
        for system in summary["systems"].values()
        if system["recipe"]
    ]
    return notes + [
        f"{name} failed: {reason}" for name, reason in summary["failed"].items()
    ]
