"""HTML reports: one page with tables and pictures, without other files."""

from keras_lstm_dssm.html_report.html_blocks import (
    Bar,
    Cell,
    HtmlList,
    HtmlPicture,
    HtmlSection,
    HtmlTable,
    Strong,
)
from keras_lstm_dssm.html_report.rendering import (
    render_html_report,
    write_html_report,
)

__all__ = [
    "Bar",
    "Cell",
    "HtmlList",
    "HtmlPicture",
    "HtmlSection",
    "HtmlTable",
    "Strong",
    "render_html_report",
    "write_html_report",
]
