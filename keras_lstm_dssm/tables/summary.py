"""summarise: all results of a table as one mapping, for its reports."""

import datetime
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_lstm_dssm.evaluation.document_task import CLUSTER
from keras_lstm_dssm.files import read_json
from keras_lstm_dssm.tables.base_data import BaseTableData
from keras_lstm_dssm.tables.system_results import SystemResults, compare_with

Summary = dict[str, Any]
"""The content of `table.json`."""


def summarise(
    output: Path,
    data: BaseTableData,
    results: Mapping[str, SystemResults],
    failed: Mapping[str, str],
    references: Sequence[str],
) -> Summary:
    """Collects all results, and tests differences for significance.

    Args:
        output: Folder of the table.
        data: The data that the systems were measured on.
        results: System -> its results, at least one, in the table's order.
        failed: System -> reason why it has no result.
        references: The systems to compare with (see `compare_with`); those
            without results are left out.
    """
    references = [name for name in references if name in results]
    systems = {
        name: {
            "label": result.row.label,
            "kind": result.row.kind,
            "paper": result.row.paper,
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
            "recipe": None
            if result.row.tuned or result.row.recipe is None
            else result.row.recipe.to_dict(),
        }
        for name, result in results.items()
    }
    for mode in data.tests:
        if mode == CLUSTER:  # runs of k-means are no sample of queries
            continue
        for name, tests in compare_with(references, results, mode).items():
            systems[name]["significance"][mode] = tests
    settings = read_json(output / "settings.json")
    for name in ("data", "paragraphs", "salience", "teacher"):
        if settings.get(name):  # without the folders of a machine
            settings[name] = Path(settings[name]).name
    return {
        "date": datetime.date.today().isoformat(),
        "machine": f"{platform.platform()}, {os.cpu_count()} cores",
        "settings": settings,
        "dev_measure": data.dev_measure,
        "words": data.words,
        "references": references,
        "random": {mode: task.random() for mode, task in data.tests.items()},
        "systems": systems,
        "failed": dict(failed),
    }
