"""Choices on dev: a small search, written down trial by trial."""

import time
from pathlib import Path
from typing import Any

from keras_lstm_dssm.files import read_json, write_json
from keras_lstm_dssm.table_iv.baselines import baseline_options, train_baseline
from keras_lstm_dssm.table_iv.dataset import DataSet
from keras_lstm_dssm.table_iv.rows import ROWS
from keras_lstm_dssm.table_iv.settings import Settings
from keras_lstm_dssm.table_iv.towers import next_tower_options, train_towers
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
    epochs = max(1, round(settings.search * settings.epochs))
    found = read_json(path)["tried"] if path.exists() else []
    options = _next_options(name, settings, found)
    if options is not None and not found:
        after = [{**options, "dev": 0.0}]
        if _next_options(name, settings, after) is None:
            return options  # there is nothing to choose from
    while options is not None:
        start = time.perf_counter()
        trained = train(name, options, 0, data, settings, epochs)
        seconds = time.perf_counter() - start
        found.append({**options, "dev": trained.dev, "seconds": seconds})
        _write(path, found, list(options), data.dev_measure)
        options = _next_options(name, settings, found)
    return read_json(path)["options"]


def _next_options(
    name: str, settings: Settings, tried: list[dict[str, Any]]
) -> Options | None:
    row = ROWS[name]
    if row.recipe:
        names = "learning_rate", "gamma"
        return None if tried else {name: row.recipe[name] for name in names}
    if row.preset is not None:
        return next_tower_options(settings, tried)
    grid = baseline_options(name)
    return grid[len(tried)] if len(tried) < len(grid) else None


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
    path: Path, tried: list[dict[str, Any]], names: list[str], measure: str
) -> None:
    best = max(tried, key=lambda trial: trial["dev"])
    options = {name: best[name] for name in names}
    write_json(
        path,
        {"options": options, "measure": f"dev {measure}", "tried": tried},
    )
