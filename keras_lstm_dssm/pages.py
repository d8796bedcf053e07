"""Writes reports, tables and cards as HTML and Markdown, from `templates`.

In HTML all texts are escaped. In Markdown only `|` in table cells is escaped.
"""

import base64
import functools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import jinja2
import yaml

from keras_lstm_dssm.files import write_text

DOTS_PER_INCH = 150
"""The resolution of the PNG files."""

_CSS_PIXELS_PER_INCH = 96
_MOST_OPACITY = 0.5


class Strong(str):
    """A table cell with bold text."""

    kind: ClassVar[str] = "strong"


@dataclass(frozen=True)
class Bar:
    """A table cell with a number and a bar, which is full at `maximum`."""

    kind: ClassVar[str] = "bar"
    value: float
    maximum: float

    @property
    def share(self) -> float:
        """The length of the bar, from 0 to 1."""
        if self.maximum <= 0:
            return 0.0
        return min(max(self.value / self.maximum, 0.0), 1.0)


@dataclass(frozen=True)
class Shaded:
    """A table cell with a coloured background."""

    kind: ClassVar[str] = "shaded"
    text: str
    share: float  # strength of the colour, from 0 to 1
    note: str  # shown while the pointer rests on the text

    @property
    def opacity(self) -> float:
        """The opacity of the background, from 0 to 0.5."""
        return _MOST_OPACITY * min(max(self.share, 0.0), 1.0)


Cell = str | int | float | Bar | Shaded | None
"""The content of a table cell."""


@dataclass(frozen=True)
class Table:
    """A table with the names of its rows in the first column."""

    kind: ClassVar[str] = "table"
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    heading: str = ""
    text_columns: Sequence[int] = ()  # left-aligned columns besides column 0


@dataclass(frozen=True)
class Picture:
    """A PNG file embedded in the page; `caption` is its alternative text."""

    kind: ClassVar[str] = "picture"
    caption: str
    path: Path
    heading: str = ""

    @property
    def width(self) -> int:
        """The width on the screen in CSS pixels."""
        with self.path.open("rb") as file:
            header = file.read(20)
        dots = int.from_bytes(header[16:20], "big")
        return dots * _CSS_PIXELS_PER_INCH // DOTS_PER_INCH

    @property
    def base64(self) -> str:
        """The file in base 64, for a `data:` URL."""
        return base64.b64encode(self.path.read_bytes()).decode()


@dataclass(frozen=True)
class BulletList:
    """A bulleted list."""

    kind: ClassVar[str] = "list"
    items: Sequence[str]
    heading: str = ""


@dataclass(frozen=True)
class Section:
    """A section of the page: a heading, a paragraph, and then blocks."""

    title: str
    blocks: Sequence[Table | Picture | BulletList]
    text: str = ""


def write_html(
    path: str | os.PathLike[str],
    title: str,
    sections: Sequence[Section],
    lead: str = "",
) -> None:
    """Writes a report as one HTML page that loads no other files."""
    values = {"title": title, "sections": sections, "lead": lead}
    write_text(path, render("report.html.jinja", **values))


def write_markdown(
    path: str | os.PathLike[str], blocks: Sequence[Table | BulletList]
) -> None:
    """Writes tables and lists, each below its heading, as Markdown."""
    write_text(path, render("blocks.md.jinja", blocks=blocks))


def render(template: str, **values: Any) -> str:
    """Renders a template; a missing value raises `jinja2.UndefinedError`."""
    return _environment().get_template(template).render(values)


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=lambda name: str(name).endswith(".html.jinja"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["markdown_cell"] = lambda cell: str(cell).replace(
        "|", "\\|"
    )
    environment.filters["thousands"] = "{:,}".format
    environment.filters["yaml"] = functools.partial(
        yaml.safe_dump, allow_unicode=True, sort_keys=False, width=float("inf")
    )
    return environment
