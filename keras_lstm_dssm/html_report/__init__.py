"""HTML reports: one page with tables and pictures, without other files."""

from keras_lstm_dssm.html_report.html_blocks import (
    Bar,
    Cell,
    HtmlList,
    HtmlPicture,
    HtmlSection,
    HtmlTable,
    Shaded,
    Strong,
)
from keras_lstm_dssm.html_report.rendering import write_html_report

__all__ = [
    "Bar",
    "Cell",
    "HtmlList",
    "HtmlPicture",
    "HtmlSection",
    "HtmlTable",
    "Shaded",
    "Strong",
    "write_html_report",
]
