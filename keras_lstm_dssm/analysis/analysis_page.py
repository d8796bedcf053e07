"""The report's HTML: one file, for a wide screen, a phone and paper."""

import base64
import html
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

_STYLE = """
:root { color-scheme: light; }
body { margin: 0 auto; padding: 1rem; max-width: 60rem; background: #fff;
  color: #111; font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
h3 { font-size: .95rem; margin: 1rem 0 .3rem; }
p { margin: .4rem 0; max-width: 45rem; overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
.wide img { display: block; height: auto; max-width: 100%; }
table { border-collapse: collapse; font-size: .875rem;
  font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .6rem; text-align: right; vertical-align: top;
  border-bottom: 1px solid #ddd; }
thead th { border-bottom: 2px solid #111; }
th:first-child, .left { text-align: left; }
th[scope=row] { font-weight: 400; max-width: 16rem;
  overflow-wrap: break-word; }
.bar { white-space: nowrap; }
.bar span { display: inline-block; height: .7rem; background: #0072b2; }
@media (max-width: 30rem) { th, td { padding: .25rem .3rem; } }
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; }
  h2, h3, h2 + p { break-after: avoid; } p, img, tr { break-inside: avoid; }
  .wide { overflow: visible; } .wide img { min-width: 0 !important; }
  .bar span { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""

_LEFT = ' class="left"'


class Html(str):
    """Text that is HTML already."""


class Section(NamedTuple):
    """A part of the page: a heading, what to look for, and what there is."""

    title: str
    text: str
    body: Sequence[Html]


def page(title: str, lead: str, sections: Sequence[Section]) -> str:
    """Builds the page, which needs no other file.

    Args:
        title: Its heading.
        lead: What it is about.
        sections: Its parts.

    Returns:
        The whole document.
    """
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        # An empty icon, or a browser asks the server for one.
        '<link rel="icon" href="data:,">',
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head>",
        f"<body><h1>{html.escape(title)}</h1>",
        f"<p>{html.escape(lead)}</p>",
        *(
            "\n".join(
                [
                    f"<section><h2>{html.escape(section.title)}</h2>",
                    f"<p>{html.escape(section.text)}</p>",
                    *section.body,
                    "</section>",
                ]
            )
            for section in sections
        ),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def heading(text: str) -> Html:
    """A heading within a section."""
    return Html(f"<h3>{html.escape(text)}</h3>")


def strong(text: str) -> Html:
    """Text in bold."""
    return Html(f"<strong>{html.escape(text)}</strong>")


def words(text: str) -> Html:
    """A cell of words, which stand to the left; numbers to the right."""
    return Html(f"<td{_LEFT}>{_inner(text)}</td>")


def bar(value: float, most: float) -> Html:
    """A cell: a number with a bar as long as its share of `most`."""
    share = max(0.0, value) / most if most > 0 else 0.0
    return Html(
        '<td class="left bar"><span style="width:'
        f'calc({share:.3f} * min(5rem, 14vw))"></span> {value:.3f}</td>'
    )


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Html:
    """A table; the first column names the rows.

    Args:
        header: Names of the columns.
        rows: Their cells; `Html` is taken as it is.
    """
    left = [cell.startswith("<td") for cell in rows[0]] if rows else []
    left += [False] * (len(header) - len(left))
    head = "".join(
        f'<th scope="col"{_LEFT * at}>{html.escape(name)}</th>'
        for name, at in zip(header, left, strict=True)
    )
    body = "\n".join(
        f'<tr><th scope="row">{_inner(row[0])}</th>'
        + "".join(map(_cell, row[1:]))
        + "</tr>"
        for row in rows
    )
    return Html(
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def picture(caption: str, path: Path) -> Html:
    """A PNG, embedded."""
    content = path.read_bytes()
    # Its width, from the header: a picture of 150 dots an inch, shown at 96.
    # A small screen shrinks it to half at most: its letters shall be read.
    width = int.from_bytes(content[16:20], "big") * 96 // 150
    data = base64.b64encode(content).decode()
    return Html(
        f'<div class="wide"><img width="{width}" '
        f'style="min-width:{width // 2}px" alt="{html.escape(caption)}" '
        f'src="data:image/png;base64,{data}"></div>'
    )


def _cell(text: str) -> str:
    inner = _inner(text)
    return inner if inner.startswith("<td") else f"<td>{inner}</td>"


def _inner(text: str) -> str:
    return text if isinstance(text, Html) else html.escape(text)
