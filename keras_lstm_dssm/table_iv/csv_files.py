"""Rows as CSV files with a header, and back."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_lstm_dssm.files import replacing


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes rows with the same keys, one at least; None is an empty cell."""
    with (
        replacing(path) as partial,
        partial.open("w", newline="", encoding="utf-8") as file,
    ):
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def read_csv(path: Path) -> list[dict[str, str]]:
    """Reads what `write_csv` wrote."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
