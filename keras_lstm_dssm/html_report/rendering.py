"""Write the sections of a report as one HTML page, with Jinja."""

import os
from collections.abc import Sequence

from keras_lstm_dssm.errors import import_optional
from keras_lstm_dssm.files import replacing
from keras_lstm_dssm.html_report.html_blocks import (
    Bar,
    HtmlSection,
    Shaded,
    Strong,
)


def write_html_report(
    path: str | os.PathLike[str],
    title: str,
    sections: Sequence[HtmlSection],
    lead: str = "",
) -> None:
    """Write a report as one HTML page that loads nothing else.

    A table or picture wider than the screen scrolls by itself, and is shown
    whole in print. Every text is escaped.

    Args:
        path: The HTML file. An existing file is replaced only when the new
            one is complete.
        title: The heading of the page.
        sections: Its sections, in order.
        lead: A paragraph below the heading; by default none.

    Raises:
        InputError: jinja2 is not installed.
        OSError: The file cannot be written.

    Example:
    >>> table = HtmlTable(["Preset", "NDCG@10"], [["lstm_96", "33.1"]])
    >>> write_html_report("r.html", "Results", [HtmlSection("Test", [table])])
    """
    jinja2 = import_optional("jinja2", "analysis")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.tests["bar"] = lambda cell: isinstance(cell, Bar)
    environment.tests["shaded"] = lambda cell: isinstance(cell, Shaded)
    environment.tests["strong"] = lambda cell: isinstance(cell, Strong)
    template = environment.get_template("report.html")
    html = template.render(title=title, sections=sections, lead=lead)
    with replacing(path) as partial:
        partial.write_text(html, encoding="utf-8")
