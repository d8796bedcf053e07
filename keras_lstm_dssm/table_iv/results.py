"""Results of one system, read back: means over seeds, and their spread."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_lstm_dssm.files import read_json
from keras_lstm_dssm.table_iv.csv_files import read_csv
from keras_lstm_dssm.table_iv.job import seed_folders
from keras_lstm_dssm.table_iv.rows import ROWS, Row


class Figure(NamedTuple):
    """A mean over seeds, and their standard deviation (0 for one seed)."""

    mean: float
    std: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Figure":
        """Averages, with n - 1 degrees of freedom."""
        spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
        return cls(float(np.mean(values)), spread)


class Results:
    """All seeds of a system.

    Args:
        name: The system.
        folders: Its finished seeds, one at least.

    Attributes:
        row: What the table knows of it.
        seeds: The content of each `result.json`.
    """

    def __init__(self, name: str, folders: Sequence[Path]) -> None:
        self.name = name
        self.row: Row = ROWS[name]
        self.folders = folders
        self.seeds: list[dict[str, Any]] = [
            read_json(folder / "result.json") for folder in folders
        ]

    @cached_property
    def modes(self) -> list[str]:
        """The modes that were measured."""
        return list(self.seeds[0]["test"])

    def figure(self, mode: str, measure: str, rate: float = 0.0) -> Figure:
        """Returns a test figure, `rate` of the words misspelled."""
        return Figure.of(
            [
                (s["misspelled"][str(rate)] if rate else s["test"])[mode][
                    measure
                ]
                for s in self.seeds
            ]
        )

    @property
    def dev(self) -> float:
        """The mean figure on dev."""
        return float(
            np.mean([v for s in self.seeds for v in s["dev"].values()])
        )

    def mean_of(self, key: str) -> float | None:
        """Returns the mean of one entry of `result.json`, where it is."""
        values = [seed[key] for seed in self.seeds]
        return None if None in values else float(np.mean(values))

    def queries(self, mode: str, measure: str) -> dict[str, float]:
        """Returns query -> test figure, the mean over seeds."""
        found: dict[str, list[float]] = {}
        for folder in self.folders:
            for row in read_csv(folder / f"test.{mode}.queries.csv"):
                value = float(row[measure])
                found.setdefault(row["query"], []).append(value)
        return {key: float(np.mean(values)) for key, values in found.items()}

    def history(self) -> list[list[dict[str, str]]]:
        """Returns each seed's rows of `history.csv`, none for baselines."""
        paths = [folder / "history.csv" for folder in self.folders]
        return [read_csv(path) for path in paths if path.exists()]


def read_results(
    output: Path, names: Sequence[str], seeds: int
) -> dict[str, Results]:
    """Reads what is finished of the named systems, in their order."""
    found = {}
    for name in names:
        folders = seed_folders(output, name, seeds)
        folders = [folder for folder in folders if folder.exists()]
        if folders:
            found[name] = Results(name, folders)
    return found
