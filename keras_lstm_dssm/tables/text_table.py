"""Tables of text, in Markdown."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from keras_lstm_dssm.files import write_text

MODE_TITLES = {
    "rerank": "Judged documents of each query, reranked",
    "retrieve": "Documents retrieved from the whole corpus",
    "lists": "Judged lists",
    "cluster": "Clusters compared with classes",
}
"""Mode -> heading of its table and chart."""


class TextTable(NamedTuple):
    """A table of text; the first column names the rows."""

    title: str
    header: list[str]
    rows: list[list[str]]

    def markdown(self) -> str:
        """Formats the table, with numbers aligned to the right."""
        lines = [self.header, ["---"] + ["---:"] * (len(self.header) - 1)]
        body = "\n".join(f"| {' | '.join(row)} |" for row in lines + self.rows)
        return f"## {self.title}\n\n{body}\n"


def percent(value: Mapping[str, float], several: bool) -> str:
    """Formats a mean in percent, with its deviation if `several` seeds."""
    spread = f" ± {100 * value['std']:.2f}" if several else ""
    return f"{100 * value['mean']:.2f}{spread}"


def write_markdown(
    path: Path, tables: Sequence[TextTable], notes: Sequence[str]
) -> None:
    """Writes tables, and a list of notes below them."""
    parts = [table.markdown() for table in tables]
    parts.append("".join(f"- {note}\n" for note in notes))
    write_text(path, "\n".join(parts))
