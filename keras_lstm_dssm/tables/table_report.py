"""The report: every file beside the results, made of what is finished."""

from collections.abc import Mapping
from pathlib import Path

from keras_lstm_dssm.files import replacing, write_json
from keras_lstm_dssm.html_report import (
    HtmlList,
    HtmlPicture,
    HtmlSection,
    HtmlTable,
    write_html_report,
)
from keras_lstm_dssm.tables import charts, robustness, training_cost
from keras_lstm_dssm.tables.charts import bar_chart
from keras_lstm_dssm.tables.dataset import DataSet
from keras_lstm_dssm.tables.sheets import markdown, notes, result_sheets
from keras_lstm_dssm.tables.summary import Results, Summary, summarise
from keras_lstm_dssm.tables.table_settings import Settings


def write_report(
    output: Path,
    data: DataSet,
    results: Mapping[str, Results],
    failed: Mapping[str, str],
    settings: Settings,
    pictures: Mapping[str, Path],
) -> Summary:
    """Writes the table, the charts and the page.

    `table.json`, `table.md`, `table.html`, `chart.png`, `figure_7.png` and
    `.csv` (with an LSTM or an RNN), `dev.png` and `.csv` (with some towers),
    `robustness.md`, `.json` and `.png` (with misspelled queries).

    Args:
        output: Folder of the table.
        data: What was measured on.
        results: System -> what was measured, one at least.
        failed: System -> why there is no result.
        settings: The table's.
        pictures: Caption -> further PNG for the page.

    Returns:
        The content of `table.json`.
    """
    summary = summarise(output, data, results, failed)
    sheets, remarks = result_sheets(summary), notes(summary)
    write_json(output / "table.json", summary)
    _write(output / "table.md", markdown(sheets, remarks))
    shown = [("Every system beside random order", output / "chart.png")]
    bar_chart(shown[0][1], summary)
    figure_7 = training_cost.draw_cost(output, results, settings, data.sizes)
    if figure_7:
        shown.append((training_cost.CAPTION, figure_7))
    dev = charts.draw_dev(output, results, data.dev_measure)
    if dev:
        shown.append((charts.CAPTION, dev))
    robust = robustness.write_robustness(output, summary)
    if robust:
        shown.append((robustness.CAPTION, output / "robustness.png"))
        remarks = [*remarks, robustness.NOTE]
    title = f"Table IV on {Path(settings.data).name}"
    sections = [
        *(
            HtmlSection(sheet.title, [HtmlTable(sheet.header, sheet.rows)])
            for sheet in (*sheets, *robust)
        ),
        *(
            HtmlSection(caption, [HtmlPicture(caption, path)])
            for caption, path in (*shown, *pictures.items())
        ),
        HtmlSection("Notes", [HtmlList(remarks)]),
    ]
    write_html_report(output / "table.html", title, sections)
    return summary


def _write(path: Path, text: str) -> None:
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")
