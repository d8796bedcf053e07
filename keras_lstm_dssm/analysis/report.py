"""The report of a run, and the sections that several kinds of models share."""

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_lstm_dssm.analysis.drawing import Curve, curve_chart
from keras_lstm_dssm.analysis.maps import write_projector
from keras_lstm_dssm.data.collection import Collection
from keras_lstm_dssm.data.statistics import query_clicks
from keras_lstm_dssm.evaluate.failures import (
    compare_with_bm25,
    failure_sections,
    find_failures,
)
from keras_lstm_dssm.evaluate.titles import Measured, measure_titles
from keras_lstm_dssm.files import check_writable, write_csv
from keras_lstm_dssm.model_cards import card_tables
from keras_lstm_dssm.pages import Picture, Section, Table, write_html
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.settings.kinds import kind_of
from keras_lstm_dssm.settings.programs import ReportSettings, TitleSettings


class Report(NamedTuple):
    """The report of a model: a page, and the results as values and files."""

    title: str  # the heading of the page
    lead: str  # the paragraph below the heading
    sections: Sequence[Section]
    values: dict[str, Any]  # the results, for JSON
    bad_lines: dict[str, int] = {}  # numbers of skipped lines by reason
    csv: Mapping[str, Sequence[Mapping[str, Any]]] = {}  # rows by file name
    # For TensorBoard: a noun for the texts, such as "titles"; the texts; and a
    # function that returns the texts' vectors.
    projected: tuple[str, Sequence[str], Callable[[], np.ndarray]] | None = None

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the page, with all pictures, to one HTML file."""
        write_html(path, self.title, self.sections, self.lead)


def report_data(
    run: RunFolder, settings: ReportSettings
) -> tuple[str, int, int]:
    """Returns the data to report on, `max_bad_lines` and `min_relevant`.

    The run gives the values that `settings` lacks. But with `settings.data`,
    `max_bad_lines` is 0 by default, and `min_relevant` is 1.
    """
    config = {} if settings.data else run.read_config()
    max_bad_lines = settings.max_bad_lines
    if max_bad_lines is None:
        max_bad_lines = config.get("max_bad_lines", 0)
    data = settings.data or config.get("data", "")
    return data, max_bad_lines, config.get("min_relevant", 1)


def measured_sections(
    model: Any, collection: Collection, min_relevant: int, depth: int = 1000
) -> tuple[dict[str, Any], list[Section]]:
    """Measures a model and BM25; returns the result of `failing_queries`."""
    split = "test" if "test" in collection.splits else collection.last_split
    settings = TitleSettings(split, min_relevant, depth=depth)
    measured = measure_titles(model, collection, settings)
    return failing_queries(measured, split, query_clicks(collection, split))


def failing_queries(
    measured: Measured, split: str, clicks: Mapping[str, float]
) -> tuple[dict[str, Any], list[Section]]:
    """Returns `verdict` and `failures` (see `evaluate_run`), and sections."""
    verdict = compare_with_bm25(measured)
    failures = find_failures(measured, clicks, TitleSettings.queries)
    first, *others = failure_sections(measured, failures)
    text = f"{verdict['sentence']}. The queries are of the split {split}."
    return {"verdict": verdict, "failures": failures}, [
        replace(first, title="How good it is, beside BM25", text=text),
        *others,
    ]


def training_sections(
    run: RunFolder,
    picture: Path,
    labels: Mapping[str, str],  # column of the history -> label of the curve
    unit: str,  # label of the vertical axis
    title: str = "Training, epoch by epoch",
    caption: str = "Loss by epoch",
    text: str = "",
    **scales: Any,  # properties of the axes
) -> list[Section]:
    """Returns sections on training: the loss by epoch, and the model card."""
    sections = []
    history = run.read_history()
    if history:
        epochs = [row["epoch"] for row in history]
        curves = {
            label: Curve(epochs, [row[column] for row in history])
            for column, label in labels.items()
            if all(column in row for row in history)
        }
        curve_chart(picture, curves, "epoch", unit, **scales)
        sections.append(Section(title, [Picture(caption, picture)], text))
    if tables := card_tables(run.path):
        sections.append(card_section(tables))
    return sections


def card_section(tables: Sequence[Table]) -> Section:
    """Returns a section of a model card's tables, without back-ticks."""
    return Section(
        "What was trained, and how good it is",
        [
            replace(
                table,
                rows=[
                    [str(cell).replace("`", "") for cell in row]
                    for row in table.rows
                ],
                heading=table.heading.replace("`", ""),
            )
            for table in tables
        ],
        "These tables are from the run's CARD.md. The file also has the recipe "
        "and the limits of the model.",
    )


def report_on_run(
    model: Any, run: RunFolder, settings: ReportSettings, pictures: Path
) -> Report:
    """Reports the loss and the model card of a model of any kind."""
    labels = {"loss": "training", "val_loss": "validation"}
    sections = training_sections(run, pictures / "loss.png", labels, "loss")
    noun = kind_of(model).noun
    lead = f"The {noun} in {run.path}: its loss by epoch, and its card."
    return Report(f"What a {noun} was trained on", lead, sections, {})


def analyze_run(
    run: str | os.PathLike[str],
    output: str | os.PathLike[str],
    settings: ReportSettings | None = None,
) -> Report:
    """Writes an HTML page about the model of a run.

    Two towers: Figs. 4 to 7 and Tables I to III of Palangi et al. 2016, made
    for a query and a title; the effect of each word; the nearest titles; a map
    of titles. MV-LSTM: the words of queries and answers that match best.
    KeyVec: key sentences and key words of documents, and a map of documents.
    Other models: the loss by epoch, and the model card.

    Args:
        run: The run folder.
        output: The HTML file to write. The page contains its pictures.
        settings: The texts, the data, the thresholds and the sizes of the
            report. Default: `ReportSettings()`.

    Returns:
        The report; `values` are the results that the page shows. The files of
        the pictures remain only with `settings.pictures`.

    Raises:
        InputError: The run has no model, a setting does not apply to this kind
            of model, the data are wrong, or matplotlib or scikit-learn is not
            installed.

    Example:
    >>> settings = ReportSettings(query="hex bolt", document="steel hex bolt")
    >>> report = analyze_run("RUN", "report.html", settings)
    >>> report.values["query"][0]["word"]
    'hex'
    """
    settings = settings or ReportSettings()
    check_writable(output)
    folder = RunFolder(run)
    model = folder.load_model()
    kind = kind_of(model)
    kind.check_options(settings)
    with tempfile.TemporaryDirectory() as temporary:
        pictures = Path(settings.pictures or temporary)
        report = kind.load("report")(model, folder, settings, pictures)
        report.write(output)
    if settings.csv:
        tables = Path(settings.csv)
        tables.mkdir(parents=True, exist_ok=True)
        for name, rows in report.csv.items():
            write_csv(tables / name, rows)
    if settings.projector and report.projected:
        _, texts, vectors = report.projected
        write_projector(folder.logs, texts, vectors())
    return report
