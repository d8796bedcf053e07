"""The two towers of a table: their search on dev and training."""

import time

import keras

from keras_lstm_dssm.evaluation import DenseSystem
from keras_lstm_dssm.models import Recipe
from keras_lstm_dssm.tables.baseline_rows import Hyperparameters, TrainedSystem
from keras_lstm_dssm.tables.epoch_times import parameters
from keras_lstm_dssm.tables.neural_rows import recipe_of_row, train_on
from keras_lstm_dssm.tables.rows import Row
from keras_lstm_dssm.tables.table_data import TableData
from keras_lstm_dssm.tables.table_settings import TableSettings

_TIMED_TITLES = 20_000


def next_tower_options(
    settings: TableSettings, tried: list[Hyperparameters]
) -> Hyperparameters | None:
    """Returns the next trial on dev, the same for all two towers.

    First each learning rate is tried with the first gamma, then the other
    gammas with the best learning rate; other combinations are not tried.

    Args:
        settings: `learning_rates` and `gammas` are used.
        tried: The trials so far, each with its dev measure, `dev`.

    >>> next_tower_options(TableSettings("api", gammas=(5.0, 10.0)), [])
    {'learning_rate': 0.003, 'gamma': 5.0}
    """
    rates, gammas = settings.learning_rates, settings.gammas
    if len(tried) < len(rates):
        return {"learning_rate": rates[len(tried)], "gamma": gammas[0]}
    later = len(tried) - len(rates) + 1
    if later == len(gammas):
        return None
    best = max(tried, key=lambda trial: trial["dev"])
    return {"learning_rate": best["learning_rate"], "gamma": gammas[later]}


def train_towers(
    row: Row,
    options: Hyperparameters,
    seed: int,
    data: TableData,
    settings: TableSettings,
    epochs: int,
) -> TrainedSystem:
    """Trains two towers with `dssm.train`, and keeps the best epoch on dev.

    Args:
        row: The row of the system.
        options: Learning rate and gamma, see `next_tower_options`.
        seed: Seed of the weights, the order of clicks and the negatives.
        data: The clicks to train on, and the dev task.
        settings: `batch_size`, `dev_evaluations`, `updates_of`,
            `judged_negatives` and, for a row that is taught, `teacher` are
            used.
        epochs: Passes over the clicks of a tuned row; others train for as
            many as their recipe says.
    """
    keras.backend.clear_session()  # frees the towers trained before
    options = {**options, "judged_negatives": settings.judged_negatives}
    recipe = recipe_of_row(row, Recipe, options, epochs, settings)
    recipe = recipe.replace(patience=0)  # the curves show all epochs
    if settings.updates_of is not None:
        recipe = _with_updates_of(settings.updates_of, recipe, data)
    model, results = train_on(
        data.log,
        recipe,
        seed,
        data,
        settings,
        titles=data.titles,
        judged=data.judged,
        teacher=settings.teacher_folder() if row.taught else None,
    )
    system = DenseSystem(
        model.query_encoder.encode, model.document_encoder.encode
    )
    timed = data.titles[:_TIMED_TITLES]
    start = time.perf_counter()
    model.document_encoder.encode(timed)
    return TrainedSystem(
        system=system,
        parameters=parameters(model.document_encoder.trainable_variables),
        titles_per_second=len(timed) / (time.perf_counter() - start),
        model=model if row.saved else None,
        **results,
    )


def _with_updates_of(clicks: int, recipe: Recipe, data: TableData) -> Recipe:
    """Returns a recipe with as many updates on `data` as on `clicks` clicks."""
    synthetic = recipe.title_pairs * sum(
        len(title.split()) > 1 for title in data.titles
    )
    factor = (clicks + synthetic) / (data.log.count() + synthetic)
    return recipe.replace(
        epochs=round(recipe.epochs * factor),
        mine_every=round(recipe.mine_every * factor),
    )
