"""The report of two towers as one HTML page of pictures and tables."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from keras_lstm_dssm.analysis.html import HtmlSection, write_html_report
from keras_lstm_dssm.analysis.tower_report import (
    ReportInput,
    card_section,
    claims_section,
    cost_section,
    map_section,
    nearest_section,
    pair_sections,
    topics_section,
)
from keras_lstm_dssm.encoders.activations import is_recurrent
from keras_lstm_dssm.settings.reports import ReportSettings

_NOT_RECURRENT = (
    " An encoder that reads all words at once has no activations, keywords "
    "and topics by word: an LSTM, a bidirectional LSTM or an RNN has them."
)


def write_analysis_report(
    path: str | os.PathLike[str],
    report_input: ReportInput,
    settings: ReportSettings | None = None,
    pictures: str | os.PathLike[str] | None = None,
) -> None:
    """Write the report, a page that needs no other file and no network.

    It covers section V-A of Palangi et al. 2016. For encoders that are not
    recurrent, it states that the sections about cells are left out.

    Args:
        path: The HTML file to write.
        report_input: The model and the texts to report on.
        settings: Thresholds and sizes, by default those of `ReportSettings`.
        pictures: A folder in which the pictures are kept as PNG files; by
            default they are in the page only.

    Raises:
        InputError: jinja2, matplotlib or scikit-learn is not installed, or
            there are fewer than three titles.

    Example:
    >>> write_analysis_report(
    ...     "report.html",
    ...     ReportInput(model, "hotels in shanghai", "shanghai hotels",
    ...                 queries, titles),
    ... )
    """
    model = report_input.model
    towers = model.query_encoder, model.document_encoder
    names = list(dict.fromkeys(type(tower).__name__ for tower in towers))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(pictures or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        sections = _sections(report_input, settings or ReportSettings(), folder)
        write_html_report(
            path,
            f"What {' and '.join(names)} keep{'s' * (len(names) == 1)} of a "
            "text",
            list(sections),
            f"Query: {report_input.query!r}. Title: {report_input.document!r}."
            + _NOT_RECURRENT * (not is_recurrent(*towers)),
        )


def _sections(
    report_input: ReportInput, settings: ReportSettings, folder: Path
) -> Iterator[HtmlSection]:
    model, titles = report_input.model, report_input.titles
    texts = report_input.query, report_input.document
    yield from pair_sections(model, texts, settings, folder)
    if is_recurrent(model.query_encoder, model.document_encoder):
        yield topics_section(model, report_input.queries, settings)
    yield nearest_section(model, *texts, titles)
    yield map_section(model, titles, settings, folder)
    if report_input.history:
        yield cost_section(report_input.history, folder)
    if report_input.card:
        yield card_section(report_input.card)
    if report_input.claims:
        yield claims_section(report_input.claims)
