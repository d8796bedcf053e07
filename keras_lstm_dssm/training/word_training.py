"""The training of the preset `word_sum`: a fit to a teacher's vectors."""

import os
from collections.abc import Sequence
from typing import Any

from keras_lstm_dssm.distillation.word_fit import fit_words
from keras_lstm_dssm.model_cards.record import record_training
from keras_lstm_dssm.models.two_tower import TwoTower
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.settings.recipes import Recipe
from keras_lstm_dssm.settings.training import TrainingConfig
from keras_lstm_dssm.version import __version__


def with_fitted_words(
    recipe: Recipe, teacher: str | os.PathLike[str], seed: int
) -> Any:
    """Builds towers whose encoders have vectors of words fitted to a teacher.

    Args:
        recipe: A recipe that `has_word_sum`.
        teacher: The folder of `teach`.
        seed: Seed of all other weights.

    Raises:
        InputError: The folder is damaged.
    """
    hashing = recipe.build(seed).query_encoder.trigrams
    fitted = fit_words(teacher, hashing)
    model: Any = recipe.build(seed, **fitted.config)
    for tower in dict.fromkeys(model.towers):
        fitted.write_to(tower.word_rows)
    return model


def fit_word_sum(
    config: TrainingConfig,
    run: RunFolder,
    stored: None,
    callbacks: Sequence[Any],
    verbose: Any,
    saved: bool,
) -> TwoTower:
    """Fits two towers of a `WordSumEncoder` to the vectors of a teacher.

    Args:
        config: The options; the texts are those of `teacher`.
        run: The run folder, which is locked.
        stored: Not used, as `callbacks`: there are no epochs to go on with.
        callbacks: Not used.
        verbose: 0 to print nothing.
        saved: Whether the run is written to its folder.

    Raises:
        InputError: The teacher's folder is damaged.
    """
    model = with_fitted_words(config.recipe, config.teacher, config.seed)
    layer = model.query_encoder.word_rows
    if verbose:
        print(
            f"vectors of {layer.words:,} words and {layer.trigrams:,} trigrams"
        )
    if saved:
        settings = config.to_dict()
        settings["data"] = os.path.abspath(config.teacher)
        run.create({"version": __version__, **settings}, model)
        run.save(model, run.model)
        run.add_metrics("train", {"words": layer.words})
        record_training(run.path)
    return model
