"""Cost of a pair in the whole recipe of a preset, such as `best`.

`best` mines negatives between epochs and trains on synthetic pairs, too; both
are counted here, beside the training steps.
"""

import tempfile
import time

from keras_lstm_dssm.benchmarks.measurement import (
    fit_seconds,
    memory_megabytes,
)
from keras_lstm_dssm.models import PRESETS
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.settings.training import TrainingConfig
from keras_lstm_dssm.training.tower_training import TowerTraining


def measure_recipe(
    path: str, preset: str, steps: int, mine_clusters: int = 0
) -> dict[str, float]:
    """Prepare a training, mine once, and time training steps.

    Args:
        path: A click file.
        preset: Name of the recipe.
        steps: Number of training steps to time.
        mine_clusters: As in `Recipe`. Default 0: mining is exact, of a sample
            of a large log.

    Returns:
        `prepare_seconds`, to count the log, to adapt the model and to write
        the synthetic pairs; `mining_seconds`, of one mining;
        `step_microseconds_per_pair`; `microseconds_per_pair`, in an epoch of
        the recipe, with its share of preparation and mining; and
        `peak_gigabytes` of resident memory. Pairs are clicks and synthetic
        ones.

    Example:
    >>> costs = measure_recipe("clicks.tsv", "best", steps=30)
    >>> costs["microseconds_per_pair"] > costs["step_microseconds_per_pair"]
    True
    """
    recipe = PRESETS[preset].replace(mine_clusters=mine_clusters)
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        config = TrainingConfig(path, recipe)
        training = TowerTraining(config, RunFolder(folder))
        model = training.new_model()
        training.prepare(model)
        # The first epoch that begins with mining; the log is counted here.
        first = recipe.mine_every * training.steps_per_epoch
        prepared = time.perf_counter()
        batches, _ = training.batches_of_fit(first, model)
        mined = time.perf_counter()
        step = fit_seconds(model, batches, steps) / recipe.batch_size
    prepare_seconds, mining_seconds = prepared - start, mined - prepared
    in_an_epoch = (
        mining_seconds / recipe.mine_every + prepare_seconds / recipe.epochs
    )
    return {
        "prepare_seconds": prepare_seconds,
        "mining_seconds": mining_seconds,
        "step_microseconds_per_pair": 1e6 * step,
        "microseconds_per_pair": 1e6 * (step + in_an_epoch / training.examples),
        "peak_gigabytes": memory_megabytes("VmHWM") / 1000,
    }
