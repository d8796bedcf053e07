"""Finished results of systems: read, averaged over seeds and compared."""

import datetime
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_lstm_dssm.evaluation.significance import compare_systems
from keras_lstm_dssm.evaluation.task import CLUSTER, MAIN_MEASURES
from keras_lstm_dssm.papers.neural_rows import Neural
from keras_lstm_dssm.papers.run_systems import Row, seed_folders
from keras_lstm_dssm.papers.table_data import TableData
from keras_lstm_dssm.plain_files import read_csv, read_json


class MeanAndSpread(NamedTuple):
    """A mean over seeds and their standard deviation, 0 for one seed."""

    mean: float
    std: float

    @classmethod
    def over(cls, values: Sequence[float]) -> "MeanAndSpread":
        """Averages values; the deviation has n - 1 degrees of freedom."""
        std = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
        return cls(float(np.mean(values)), std)

    @property
    def percent(self) -> "MeanAndSpread":
        """Both numbers times 100."""
        return MeanAndSpread(100 * self.mean, 100 * self.std)


class SystemResults:
    """Reads the results (`result.json`) of all seeds of a system."""

    def __init__(self, row: Row, folders: Sequence[Path]) -> None:
        self.row = row
        self.folders = folders
        self.seeds: list[dict[str, Any]] = [
            read_json(folder / "result.json") for folder in folders
        ]

    def value(
        self, mode: str, measure: str, rate: float = 0.0
    ) -> MeanAndSpread:
        """Averages a measure on test over seeds; `rate` is of misspellings."""
        tests = [
            seed["misspelled"][str(rate)] if rate else seed["test"]
            for seed in self.seeds
        ]
        return MeanAndSpread.over([test[mode][measure] for test in tests])

    def values(
        self, rate: float = 0.0
    ) -> dict[str, dict[str, dict[str, float]]]:
        """Returns mode -> measure -> `value`, as JSON holds it."""
        return {
            mode: {
                name: self.value(mode, name, rate)._asdict() for name in values
            }
            for mode, values in self.seeds[0]["test"].items()
        }

    @property
    def dev(self) -> float:
        """The dev measure, averaged over seeds."""
        return float(
            np.mean([v for s in self.seeds for v in s["dev"].values()])
        )

    def mean_of(self, key: str) -> float | None:
        """Averages an entry of `result.json`; `None` if a seed lacks it."""
        values = [v for seed in self.seeds if (v := seed.get(key)) is not None]
        return (
            float(np.mean(values)) if len(values) == len(self.seeds) else None
        )

    def queries(self, mode: str, measure: str) -> dict[str, float]:
        """Returns query id -> measure on test, the mean over seeds."""
        by_query: dict[str, list[float]] = {}
        for folder in self.folders:
            for row in read_csv(folder / f"test.{mode}.queries.csv"):
                value = float(row[measure])
                by_query.setdefault(row["query"], []).append(value)
        return {key: float(np.mean(v)) for key, v in by_query.items()}

    def by_epoch(self, column: str) -> dict[int, MeanAndSpread]:
        """Averages a column of `history.csv` over seeds: epoch -> mean."""
        histories = [read_csv(f / "history.csv") for f in self.folders]
        return {
            int(rows[0]["epoch"]): MeanAndSpread.over(
                [float(row[column]) for row in rows]
            )
            for rows in zip(*histories, strict=True)
            if rows[0][column]
        }


def read_results(
    output: Path, rows: Mapping[str, Row], seeds: int
) -> dict[str, SystemResults]:
    """Reads the finished results of systems, in the order of `rows`.

    Systems without a finished seed are left out.
    """
    results = {}
    for name, row in rows.items():
        folders = seed_folders(output, name, row, seeds)
        folders = [folder for folder in folders if folder.exists()]
        if folders:
            results[name] = SystemResults(row, folders)
    return results


Summary = dict[str, Any]
"""The content of `table.json`."""


def summarise(
    output: Path,
    data: TableData,
    results: Mapping[str, SystemResults],
    failed: Mapping[str, str],
    references: Sequence[str],
    compared: Mapping[str, str],
) -> Summary:
    """Collects all results, and tests differences for significance.

    They are tested by the measures of `MAIN_MEASURES`, under the name of the
    mode, and by those of `compared` (measure -> mode), under their own. Of the
    systems to compare with, those without results are left out.
    """
    references = [name for name in references if name in results]
    systems = {
        name: {
            "label": result.row.label,
            "kind": result.row.system.group,
            "paper": None,
            "parameters": result.seeds[0]["parameters"],
            "options": result.seeds[0]["options"],
            "seeds": len(result.seeds),
            "epochs": [seed["epoch"] for seed in result.seeds],
            "dev": result.dev,
            "train_seconds": result.mean_of("train_seconds"),
            "titles_per_second": result.mean_of("titles_per_second"),
            "pairs_per_second": result.mean_of("pairs_per_second"),
            "test": result.values(),
            "misspelled": {
                rate: result.values(float(rate))
                for rate in result.seeds[0]["misspelled"]
            },
            "significance": {},
            "recipe": _own_recipe(result.row),
        }
        for name, result in results.items()
    }
    keys = {mode: (mode, MAIN_MEASURES[mode]) for mode in data.tests}
    keys.pop(CLUSTER, None)  # runs of k-means are no sample of queries
    keys |= {m: (mode, m) for m, mode in compared.items() if mode in data.tests}
    for key, (mode, measure) in keys.items():
        by_query = {n: r.queries(mode, measure) for n, r in results.items()}
        for name, tests in compare_systems(by_query, references).items():
            systems[name]["significance"][key] = tests
    settings = read_json(output / "settings.json")
    for name in ("data", "paragraphs", "salience", "teacher"):
        if settings[name]:  # without the folders of a machine
            settings[name] = Path(settings[name]).name
    return {
        "date": datetime.date.today().isoformat(),
        "machine": f"{platform.platform()}, {os.cpu_count()} cores",
        "settings": settings,
        "dev_measure": data.dev_measure,
        "words": data.words(),
        "references": references,
        "random": {mode: task.random() for mode, task in data.tests.items()},
        "systems": systems,
        "failed": dict(failed),
    }


def _own_recipe(row: Row) -> dict[str, Any] | None:
    """Returns the recipe of a neural row that is not tuned."""
    system = row.system
    if isinstance(system, Neural) and not system.tuned:
        return system.recipe.to_dict()
    return None
