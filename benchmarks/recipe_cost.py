"""Cost of a pair in the whole recipe of a preset, such as `best`.

`best` mines negatives between epochs and trains on synthetic pairs, too; both
are counted here, beside the training steps.
"""

import tempfile
from pathlib import Path

from keras_lstm_dssm.benchmarks.measurement import (
    fit_seconds,
    memory_megabytes,
    seconds,
)
from keras_lstm_dssm.data import ClickLog
from keras_lstm_dssm.models import PRESETS
from keras_lstm_dssm.training.tower_training import TowerTraining


def measure_recipe(path: str, preset: str, steps: int) -> dict[str, float]:
    """Prepare a training, mine once, and time training steps.

    Args:
        path: A click file.
        preset: Name of the recipe.
        steps: Number of training steps to time.

    Returns:
        `prepare_seconds`, to count the log, to adapt the model and to write
        the synthetic pairs; `mining_seconds`, of one mining;
        `step_microseconds_per_pair`; `microseconds_per_pair`, in an epoch of
        the recipe, with its share of preparation and mining; and
        `peak_gigabytes` of resident memory. Pairs are clicks and synthetic
        ones.

    Example:
    >>> costs = measure_recipe("clicks.tsv", "best", steps=30)
    >>> round(costs["mining_seconds"])
    4
    """
    recipe = PRESETS[preset]
    training = TowerTraining(recipe, 0, ClickLog(path), path)
    with tempfile.TemporaryDirectory() as folder:
        made = []

        def prepare() -> None:
            training.log.count()
            model = training.new_model()
            made.append((model, training.plan(Path(folder), model)))

        prepare_seconds = seconds(prepare)
        model, plan = made[0]
        # The first epoch that begins with mining.
        first = recipe.mine_every * plan.steps_per_epoch
        mined = []
        mining_seconds = seconds(
            lambda: mined.append(plan.batches_of_a_fit(first, model))
        )
        batches, _ = mined[0]
        step = fit_seconds(model, batches, steps) / recipe.batch_size
    in_an_epoch = (
        mining_seconds / recipe.mine_every + prepare_seconds / recipe.epochs
    )
    return {
        "prepare_seconds": prepare_seconds,
        "mining_seconds": mining_seconds,
        "step_microseconds_per_pair": 1e6 * step,
        "microseconds_per_pair": 1e6 * (step + in_an_epoch / plan.examples),
        "peak_gigabytes": memory_megabytes("VmHWM") / 1000,
    }
