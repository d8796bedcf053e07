"""The finished results of a table: read back, averaged over seeds, compared."""

import datetime
import os
import platform
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_lstm_dssm.evaluation import MEASURES
from keras_lstm_dssm.evaluation.significance import holm, randomisation_test
from keras_lstm_dssm.files import read_csv, read_json
from keras_lstm_dssm.tables.dataset import DEV_MEASURES, DataSet, describe_words
from keras_lstm_dssm.tables.job import seed_folders
from keras_lstm_dssm.tables.rows import ROWS, Row


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


Summary = dict[str, Any]
"""The content of `table.json`."""


def summarise(
    output: Path,
    data: DataSet,
    results: Mapping[str, Results],
    failed: Mapping[str, str],
) -> Summary:
    """Collects every figure, with each system's significance.

    Systems are compared query by query, by the mean over seeds of NDCG@10
    (rerank) or MRR@10 (retrieve), with BM25 and with the CLSM that is best
    on dev among those trained with the paper's negatives. `p` is that of
    `randomisation_test`, `p_holm` is corrected for all comparisons with the
    same system.

    Args:
        output: Folder of the table.
        data: What the systems were measured on.
        results: System -> what was measured, in the table's order.
        failed: System -> why there is no result.
    """
    references = [
        name for name in ("bm25", _best_clsm(results)) if name in results
    ]
    systems = {}
    for name, found in results.items():
        systems[name] = {
            "label": found.row.label,
            "kind": found.row.kind,
            "paper": found.row.paper,
            "parameters": found.seeds[0]["parameters"],
            "options": found.seeds[0]["options"],
            "seeds": len(found.seeds),
            "epochs": [seed["epoch"] for seed in found.seeds],
            "dev": found.dev,
            "train_seconds": found.mean_of("train_seconds"),
            "titles_per_second": found.mean_of("titles_per_second"),
            "test": _figures(found),
            "misspelled": {
                rate: _figures(found, float(rate))
                for rate in found.seeds[0]["misspelled"]
            },
            "significance": {mode: {} for mode in found.modes},
        }  # fmt: skip
    for reference in references:
        for mode in results[reference].modes:
            for name, test in _compare(results, mode, reference).items():
                systems[name]["significance"][mode][reference] = test
    settings = read_json(output / "settings.json")
    for name in ("data", "paragraphs"):  # names only, not paths of a machine
        settings[name] = settings[name] and Path(settings[name]).name
    return {
        "date": datetime.date.today().isoformat(),
        "machine": f"{platform.platform()}, {os.cpu_count()} cores",
        "settings": settings,
        "words": describe_words(data),
        "references": references,
        "random": {mode: task.random() for mode, task in data.tests.items()},
        "systems": systems,
        "failed": dict(failed),
    }


def _figures(
    found: Results, rate: float = 0.0
) -> dict[str, dict[str, dict[str, float]]]:
    return {
        mode: {
            name: found.figure(mode, name, rate)._asdict() for name in MEASURES
        }
        for mode in found.modes
    }


def _best_clsm(results: Mapping[str, Results]) -> str:
    """Returns the name of the best on dev, "" where there is none."""
    clsm = {
        name: found.dev
        for name, found in results.items()
        if name.startswith("clsm") and found.row.recipe.negatives == "random"
    }
    return max(clsm, key=clsm.__getitem__, default="")


def _compare(
    results: Mapping[str, Results], mode: str, reference: str
) -> dict[str, dict[str, float]]:
    """Tests every other system against the reference."""
    measure = DEV_MEASURES[mode]
    base = results[reference].queries(mode, measure)
    names = [name for name in results if name != reference]
    if not names:
        return {}
    values = [results[name].queries(mode, measure) for name in names]
    differences = np.array([[v[q] - base[q] for v in values] for q in base])
    p_values = randomisation_test(differences)
    return {
        name: {"difference": float(d), "p": float(p), "p_holm": float(h)}
        for name, d, p, h in zip(
            names, differences.mean(axis=0), p_values, holm(p_values),
            strict=True,
        )
    }  # fmt: skip
