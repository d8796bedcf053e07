"""The table as numbers: what `table.json` holds, and all else shows."""

import datetime
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from keras_lstm_dssm.evaluation import MEASURES
from keras_lstm_dssm.evaluation.significance import holm, randomisation_test
from keras_lstm_dssm.files import read_json
from keras_lstm_dssm.table_iv.data_words import describe_words
from keras_lstm_dssm.table_iv.dataset import DEV_MEASURES, DataSet
from keras_lstm_dssm.table_iv.results import Results

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
        if name.startswith("clsm") and found.row.negatives == "random"
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
