"""The page: tables and pictures in one HTML file, for a phone as well."""

import base64
import html
from collections.abc import Sequence
from pathlib import Path

from keras_lstm_dssm.tables.sheets import Sheet

_STYLE = """
:root { color-scheme: light; }
body { margin: 0 auto; padding: 1rem; max-width: 70rem; background: #fff;
  color: #111; font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .875rem; white-space: nowrap;
  font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .6rem; text-align: right;
  border-bottom: 1px solid #ddd; }
thead th { border-bottom: 2px solid #111; }
th:first-child { position: sticky; left: 0; background: #fff;
  text-align: left; font-weight: 600; max-width: 9rem; white-space: normal; }
@media (min-width: 50rem) {
  th:first-child { max-width: none; white-space: nowrap; } }
img { max-width: 100%; height: auto; }
li { margin: .4rem 0; font-size: .875rem; }
"""


def page(
    title: str,
    sheets: Sequence[Sheet],
    pictures: Sequence[tuple[str, Path]],
    remarks: Sequence[str],
) -> str:
    """Builds the page, which needs no other file.

    Args:
        title: Its heading.
        sheets: The tables.
        pictures: Captions and PNG files, embedded.
        remarks: The notes below.
    """
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head>",
        f"<body><h1>{html.escape(title)}</h1>",
        *map(_table, sheets),
        *(_picture(caption, path) for caption, path in pictures),
        "<h2>Notes</h2><ul>",
        *(f"<li>{html.escape(remark)}</li>" for remark in remarks),
        "</ul></body></html>",
    ]
    return "\n".join(parts) + "\n"


def _table(sheet: Sheet) -> str:
    head = "".join(
        f'<th scope="col">{html.escape(c)}</th>' for c in sheet.header
    )
    body = "\n".join(
        f'<tr><th scope="row">{html.escape(row[0])}</th>'
        + "".join(f"<td>{html.escape(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in sheet.rows
    )
    return (
        f"<h2>{html.escape(sheet.title)}</h2>\n"
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def _picture(caption: str, path: Path) -> str:
    data = base64.b64encode(path.read_bytes()).decode()
    text = html.escape(caption)
    return (
        f"<h2>{text}</h2>\n"
        f'<img alt="{text}" src="data:image/png;base64,{data}">'
    )
