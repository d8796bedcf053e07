"""A run of several workers is resumed with the same settings only."""

import pathlib
from typing import Any

import pytest

from keras_lstm_dssm.distributed.collectives import JointError, on_first
from keras_lstm_dssm.distributed.worker import read_stored
from keras_lstm_dssm.files import write_json
from keras_lstm_dssm.models import PRESETS
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.settings.training import TrainingConfig
from keras_lstm_dssm.training.session import config_of_run
from tests.distributed.threads import run_workers

CONFIG = TrainingConfig("clicks.tsv", PRESETS["dssm"], seed=3)


def opened(
    folder: pathlib.Path, config: TrainingConfig | None, **changes: Any
) -> list[Any]:
    """Lets two workers open a run that has `CONFIG` with `changes`."""
    stored = {
        **CONFIG.to_dict(), "pairs": 5, "bad_lines": 0, "workers": 2,
        **changes,
    }  # fmt: skip
    stored = {name: value for name, value in stored.items() if value != ""}
    write_json(folder / "config.json", stored)
    run = RunFolder(folder)
    return run_workers(
        2,
        lambda workers: on_first(
            workers, lambda: read_stored(run, config, workers.cluster.size)
        ),
    )


@pytest.mark.parametrize("config", [None, CONFIG])
def test_a_run_of_an_earlier_version_is_resumed(config, tmp_path):
    """A setting that its `config.json` lacks gets its default value."""
    recipe = PRESETS["dssm"].to_dict()
    del recipe["mine_clusters"]
    for stored in opened(tmp_path, config, recipe=recipe, replay=""):
        found = config_of_run(RunFolder(tmp_path), stored)
        assert found.to_dict() == CONFIG.to_dict()
        assert found.recipe == PRESETS["dssm"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"workers": 3}, "started with workers 3, not 2: start with the same"),
        ({"seed": 4}, "started with seed 4, not 3: start with the same"),
        ({"seed": ""}, "'seed' is missing, expected the settings of a run"),
    ],
)
def test_what_is_wrong_is_raised_by_all(changes, message, tmp_path):
    for error in opened(tmp_path, CONFIG, **changes):
        assert isinstance(error, JointError) and message in str(error)
