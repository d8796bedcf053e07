"""write_overview: the same systems on several data sets, side by side."""

from collections.abc import Mapping
from pathlib import Path

from keras_lstm_dssm.files import write_json
from keras_lstm_dssm.tables.base_data import CHART_MEASURES
from keras_lstm_dssm.tables.report import measure_cells, write_page
from keras_lstm_dssm.tables.summary import Summary
from keras_lstm_dssm.tables.text_table import (
    MODE_TITLES,
    TextTable,
    write_markdown,
)


def write_overview(
    output: Path, title: str, summaries: Mapping[str, Summary]
) -> dict[str, Summary]:
    """Writes `table.md`, `table.json` and `table.html` of several data sets.

    There is a table for each mode, with the `CHART_MEASURES` on each data set
    that has the mode.

    Args:
        output: Folder of the files.
        title: Heading of the page.
        summaries: Data set -> the content of its `table.json`.

    Returns:
        The content of `table.json`, data set -> summary.

    Example:
    >>> from keras_lstm_dssm.tables import PAPERS, make_table, run_system
    >>> from keras_lstm_dssm.tables import Row, TableSettings
    >>> settings, output = TableSettings("parts"), Path("shown/parts")
    >>> rows, paper = {"bm25": Row("BM25", seeded=False)}, PAPERS["table_iv"]
    >>> run_system(output, "bm25", rows["bm25"], settings, seeds=1)
    bm25, seed 0: ... s, dev ndcg@10 100.00
    >>> summary, _ = make_table(output, paper, rows, settings, seeds=1)
    bm25: finished before
    >>> _ = write_overview(Path("shown"), "Two shops", {"parts": summary})
    >>> sorted(path.name for path in Path("shown").glob("table.*"))
    ['table.html', 'table.json', 'table.md']
    """
    tables = [_table(mode, summaries) for mode in MODE_TITLES]
    tables = [table for table in tables if table.rows]
    notes = [
        f"{name}: {name}/table.md has all measures, significance and choices."
        for name in summaries
    ]
    write_json(output / "table.json", summaries)
    write_markdown(output / "table.md", tables, notes)
    write_page(output / "table.html", title, tables, {}, notes)
    return dict(summaries)


def _table(mode: str, summaries: Mapping[str, Summary]) -> TextTable:
    having = {n: s for n, s in summaries.items() if mode in s["random"]}
    names = CHART_MEASURES[mode]
    labels = {
        system: values["label"]
        for summary in having.values()
        for system, values in summary["systems"].items()
    }
    header = ["System"]
    header += [f"{data} {name.upper()}" for data in having for name in names]
    rows = []
    for system, label in labels.items():
        row = [label]
        for summary in having.values():
            if system in summary["systems"]:
                row += measure_cells(summary["systems"][system], mode, names)
            else:
                row += ["-"] * len(names)
        rows.append(row)
    return TextTable(MODE_TITLES[mode], header, rows)
