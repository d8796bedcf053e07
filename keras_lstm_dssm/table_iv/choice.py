"""Choices on dev: a small search, written down trial by trial."""

import time
from pathlib import Path
from typing import Any

from keras_lstm_dssm.files import read_json, write_json
from keras_lstm_dssm.table_iv.baselines import baseline_options, train_baseline
from keras_lstm_dssm.table_iv.dataset import DataSet
from keras_lstm_dssm.table_iv.rows import ROWS
from keras_lstm_dssm.table_iv.settings import Settings
from keras_lstm_dssm.table_iv.towers import tower_options, train_towers
from keras_lstm_dssm.table_iv.trained import Options, Trained


def choose(name: str, data: DataSet, settings: Settings, path: Path) -> Options:
    """Returns the options with the best figure on dev; the first of equals.

    Towers are trained for a share of the epochs (`settings.search`), with
    seed 0. A search that was interrupted goes on with the next trial.

    Args:
        name: The system.
        data: What to train on, and dev.
        settings: What is tried.
        path: JSON: `options`, `measure`, and `tried`, each with its `dev`.
    """
    tower = ROWS[name].preset is not None
    grid = tower_options(settings) if tower else baseline_options(name)
    if len(grid) == 1:
        return grid[0]
    epochs = max(1, round(settings.search * settings.epochs))
    found = read_json(path)["tried"] if path.exists() else []
    for options in grid[len(found) :]:
        start = time.perf_counter()
        trained = train(name, options, 0, data, settings, epochs)
        seconds = time.perf_counter() - start
        found.append({**options, "dev": trained.dev, "seconds": seconds})
        _write(path, found, grid, data.dev_measure)
    return read_json(path)["options"]


def train(
    name: str,
    options: Options,
    seed: int,
    data: DataSet,
    settings: Settings,
    epochs: int,
) -> Trained:
    """Trains a system of either kind; `epochs` are for towers."""
    row = ROWS[name]
    if row.preset is None:
        return train_baseline(name, options, seed, data, settings)
    return train_towers(row, options, seed, data, settings, epochs)


def _write(
    path: Path, tried: list[dict[str, Any]], grid: list[Options], measure: str
) -> None:
    best = max(range(len(tried)), key=lambda i: tried[i]["dev"])
    write_json(
        path,
        {"options": grid[best], "measure": f"dev {measure}", "tried": tried},
    )
