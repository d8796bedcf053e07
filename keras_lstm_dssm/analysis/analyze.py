"""The report of a run: what its model represents, on one page of HTML."""

import os
import tempfile
from pathlib import Path
from typing import Any

from keras_lstm_dssm.analysis.maps import write_projector
from keras_lstm_dssm.analysis.report import Report, training_sections
from keras_lstm_dssm.files import check_writable, write_csv
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.settings.kinds import kind_of
from keras_lstm_dssm.settings.reports import ReportSettings


def report_on_run(
    model: Any, run: RunFolder, settings: ReportSettings, pictures: Path
) -> Report:
    """Reports on a model of a kind that has no report of its own."""
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
    """Writes a page on what the trained model of a run represents.

    Two towers: Figs. 4 to 7 and Tables I to III of Palangi et al. 2016 for a
    query and a title, the effect of each word, the nearest titles and a map of
    titles. MV-LSTM: the words of queries and answers that match best. KeyVec:
    key sentences and key words of documents, and a map of documents. The page
    needs no other file and no network.

    Args:
        run: The run folder.
        output: The HTML file to write.
        settings: What the report is about, with thresholds and sizes; by
            default those of `ReportSettings`.

    Returns:
        The report, whose `values` are the results that the page shows. The
        pictures of its sections are files only with `settings.pictures`.

    Raises:
        InputError: The run has no model, a setting is not about this kind of
            model, the data are wrong, or matplotlib or scikit-learn is not
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
