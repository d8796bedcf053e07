"""What the reports of all kinds of models have: data, losses, the card."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_lstm_dssm.analysis.drawing import Curve, curve_chart
from keras_lstm_dssm.model_cards.record import card_tables
from keras_lstm_dssm.pages import (
    Picture,
    Section,
    Table,
    write_html,
)
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.settings.reports import ReportSettings


class Report(NamedTuple):
    """A report of a model: its page, and the same results as values."""

    title: str  # the heading of the page
    lead: str  # the paragraph below it
    sections: Sequence[Section]  # the sections of the page
    values: dict[str, Any]  # the results, for JSON
    # Reason for skipping lines of the data -> number of lines.
    bad_lines: dict[str, int] = {}
    # Name of a file -> its rows.
    csv: Mapping[str, Sequence[Mapping[str, Any]]] = {}
    # For TensorBoard's projector: what the texts are, the texts, and a function
    # that returns their vectors.
    projected: tuple[str, Sequence[str], Callable[[], np.ndarray]] | None = None

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the page, which needs no other file and no network."""
        write_html(path, self.title, self.sections, self.lead)


def report_data(
    run: RunFolder, settings: ReportSettings
) -> tuple[str, int, int]:
    """Returns the data of the settings or, as training read them, the run's.

    With the data come the largest number of bad lines to skip, and the grade
    from which a document is relevant.
    """
    config = {} if settings.data else run.read_config()
    max_bad_lines = settings.max_bad_lines
    if max_bad_lines is None:
        max_bad_lines = config.get("max_bad_lines", 0)
    data = settings.data or config.get("data", "")
    return data, max_bad_lines, config.get("min_relevant", 1)


def training_sections(
    run: RunFolder,
    picture: Path,
    labels: Mapping[str, str],
    unit: str,
    title: str = "Training, epoch by epoch",
    caption: str = "Loss by epoch",
    text: str = "",
    **scales: Any,
) -> list[Section]:
    """Returns the sections on training: the model card, the loss by epoch.

    A section that the run has nothing for is left out, and so is a curve whose
    column an epoch lacks. `labels` is column of the history -> label of its
    curve.
    """
    tables = card_tables(run.path)
    sections = [card_section(tables)] if tables else []
    history = run.read_history()
    if history:
        epochs = [row["epoch"] for row in history]
        curves = {
            label: Curve(epochs, [row[column] for row in history])
            for column, label in labels.items()
            if all(column in row for row in history)
        }
        curve_chart(picture, curves, "epoch", unit, **scales)
        block = Picture(caption, picture)
        sections.append(Section(title, [block], text))
    return sections


def card_section(tables: Sequence[Table]) -> Section:
    """Returns a section with the model card's tables: training and metrics."""
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
        "From CARD.md of the run, which has the recipe and the limits, too.",
    )
