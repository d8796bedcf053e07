"""The training of the preset `word_sum`: a fit to a teacher's vectors."""

import os
from typing import Any

from keras_lstm_dssm.distillation.word_fit import fit_words
from keras_lstm_dssm.model_cards.record import record_training
from keras_lstm_dssm.models.two_tower import TwoTower
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.settings.training import TrainingConfig
from keras_lstm_dssm.version import __version__


def fit_word_sum(
    config: TrainingConfig, run: RunFolder, verbose: Any, saved: bool
) -> TwoTower:
    """Fits two towers of a `WordSumEncoder` to the vectors of a teacher.

    Args:
        config: The options; the texts are those of `teacher`.
        run: The run folder, which is locked.
        verbose: 0 to print nothing.
        saved: Whether the run is written to its folder.

    Raises:
        InputError: The teacher's folder is damaged.
    """
    recipe = config.recipe
    encoder: Any = recipe.build().query_encoder
    fitted = fit_words(config.teacher, encoder.trigrams)
    model: TwoTower = recipe.build(**fitted.config)
    for tower in dict.fromkeys(model.towers):
        fitted.write_to(tower.word_rows)
    if verbose:
        print(
            f"vectors of {len(fitted.words):,} words and"
            f" {len(fitted.trigrams):,} trigrams"
        )
    if saved:
        settings = config.to_dict()
        settings["data"] = os.path.abspath(config.teacher)
        run.create({"version": __version__, **settings}, model)
        run.save(model, run.model)
        run.add_metrics("train", {"words": len(fitted.words)})
        record_training(run.path)
    return model
