"""The search on dev for the hyperparameters of a system."""

import time
from pathlib import Path
from typing import Any

from keras_lstm_dssm.errors import FailedTraining
from keras_lstm_dssm.files import read_json, write_json
from keras_lstm_dssm.models import KeyVecRecipe, Recipe, ScorerRecipe
from keras_lstm_dssm.tables.base_data import BaseTableData
from keras_lstm_dssm.tables.baseline_rows import (
    Hyperparameters,
    TrainedSystem,
    baseline_grid,
    train_baseline,
)
from keras_lstm_dssm.tables.document_data import DocumentTableData
from keras_lstm_dssm.tables.document_rows import train_keyvec
from keras_lstm_dssm.tables.mixture_rows import train_mixture
from keras_lstm_dssm.tables.rows import Row
from keras_lstm_dssm.tables.scorer_rows import (
    next_learning_rate,
    train_scorer,
)
from keras_lstm_dssm.tables.table_data import TableData
from keras_lstm_dssm.tables.table_settings import TableSettings
from keras_lstm_dssm.tables.tower_rows import next_tower_options, train_towers


def choose_on_dev(
    name: str,
    row: Row,
    data: BaseTableData,
    settings: TableSettings,
    path: Path,
) -> Hyperparameters:
    """Returns the best hyperparameters on dev; of equals, the first.

    Neural systems are trained with seed 0 and for a share of the epochs
    (`settings.search`). A trial whose training fails, see `FailedTraining`,
    has a measure of 0. A search that was interrupted continues with the next
    trial.

    The JSON file `path` holds the search: `options`, the best
    hyperparameters; `measure`; and `tried`, all trials, each with its `dev`
    measure. It is not written if there is only one choice. For the other
    arguments see `run_systems.run_system`.
    """
    epochs = max(1, round(settings.search * settings.epochs))
    trials = read_json(path)["tried"] if path.exists() else []
    options = _next_trial(name, row, settings, trials)
    if options is not None and not trials:
        after_one = [{**options, "dev": 0.0}]
        if _next_trial(name, row, settings, after_one) is None:
            return options
    while options is not None:
        start = time.perf_counter()
        try:
            trained = train_system(
                name, row, options, 0, data, settings, epochs
            )
            dev = trained.dev
        except FailedTraining:  # as with a learning rate that is too large
            dev = 0.0
        seconds = time.perf_counter() - start
        trials.append({**options, "dev": dev, "seconds": seconds})
        best = max(trials, key=lambda trial: trial["dev"])
        search = {
            "options": {key: best[key] for key in options},
            "measure": f"dev {data.dev_measure}",
            "tried": trials,
        }
        write_json(path, search)
        options = _next_trial(name, row, settings, trials)
    return read_json(path)["options"]


def _next_trial(
    name: str, row: Row, settings: TableSettings, trials: list[dict[str, Any]]
) -> Hyperparameters | None:
    if row.recipe is None:
        grid = baseline_grid(name)
        return grid[len(trials)] if len(trials) < len(grid) else None
    if isinstance(row.recipe, ScorerRecipe | KeyVecRecipe):
        return next_learning_rate(row, settings, trials)
    if row.tuned:
        return next_tower_options(settings, trials)
    if trials:
        return None
    recipe = row.recipe
    assert isinstance(recipe, Recipe)
    return {"learning_rate": recipe.learning_rate, "gamma": recipe.gamma}


def train_system(
    name: str,
    row: Row,
    options: Hyperparameters,
    seed: int,
    data: BaseTableData,
    settings: TableSettings,
    epochs: int,
    output: Path | None = None,
) -> TrainedSystem:
    """Trains a system.

    See `train_baseline`, `train_towers`, `train_scorer`, `train_keyvec`,
    `train_mixture`; `output` is the folder of the table, for the last.
    """
    if row.parts:
        assert isinstance(data, TableData) and output is not None
        return train_mixture(row, seed, data, settings, output)
    if row.recipe is None:
        return train_baseline(name, options, seed, data, settings)
    if isinstance(row.recipe, KeyVecRecipe):
        assert isinstance(data, DocumentTableData)
        return train_keyvec(row, options, seed, data, settings, epochs)
    assert isinstance(data, TableData)
    if isinstance(row.recipe, ScorerRecipe):
        return train_scorer(row, options, seed, data, settings, epochs)
    return train_towers(row, options, seed, data, settings, epochs)
