"""The training of a table's neural systems: what all kinds have in common."""

from typing import Any, TypeVar

from keras_lstm_dssm.models import (
    AnyRecipe,
    KeyVec,
    KeyVecRecipe,
    PairScorer,
    Recipe,
    ScorerRecipe,
    TwoTower,
)
from keras_lstm_dssm.tables.base_data import BaseTableData
from keras_lstm_dssm.tables.baseline_rows import Hyperparameters
from keras_lstm_dssm.tables.epoch_times import EpochTimes
from keras_lstm_dssm.tables.rows import Row
from keras_lstm_dssm.tables.table_settings import TableSettings
from keras_lstm_dssm.training import train

AnyKind = TypeVar("AnyKind", Recipe, ScorerRecipe, KeyVecRecipe)


def recipe_of_row(
    row: Row,
    kind: type[AnyKind],
    options: Hyperparameters,
    epochs: int,
    settings: TableSettings,
) -> AnyKind:
    """Returns the recipe that a system is trained with.

    Args:
        row: The row of the system.
        kind: The class of its recipe.
        options: Attributes of the recipe to change.
        epochs: Epochs of a tuned row; others keep those of their recipe.
        settings: `batch_size` is that of a tuned row.
    """
    assert isinstance(row.recipe, kind)
    recipe = row.recipe.replace(**options)
    if row.tuned:
        recipe = recipe.replace(epochs=epochs, batch_size=settings.batch_size)
    return recipe


def train_on(
    examples: Any,
    recipe: AnyRecipe,
    seed: int,
    data: BaseTableData,
    settings: TableSettings,
    **options: Any,
) -> tuple[TwoTower | PairScorer | KeyVec, dict[str, Any]]:
    """Trains a model with `dssm.train`, and keeps the best epoch on dev.

    Args:
        examples: The clicks or documents to train on, see `train`.
        recipe: The recipe.
        seed: Seed of the weights and of all random draws.
        data: The dev task and its measure.
        settings: `dev_evaluations` is used.
        **options: Further arguments of `train`.

    Returns:
        The model, with the weights of the best epoch; and the arguments of
        `TrainedSystem` that `EpochTimes` records.
    """
    times = EpochTimes()
    model = train(
        examples,
        recipe,
        seed=seed,
        dev=data.dev,
        select=data.dev_measure,
        every=max(1, round(recipe.epochs / settings.dev_evaluations)),
        callbacks=[times],
        verbose=0,
        **options,
    )
    return model, times.results
