"""`WorkerRun` resumes a run of the same settings only."""

import pathlib
from typing import Any

import pytest

from keras_lstm_dssm.distributed.collectives import JointError
from keras_lstm_dssm.distributed.worker import WorkerRun
from keras_lstm_dssm.files import write_json
from keras_lstm_dssm.models import PRESETS
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.training import WorkerSettings
from tests.distributed.threads import run_workers

SETTINGS = WorkerSettings.make("clicks.tsv", PRESETS["dssm"], seed=3)


def opened(
    folder: pathlib.Path, settings: WorkerSettings | None, **changes: Any
) -> list[Any]:
    """Lets two workers open a run that has `SETTINGS` with `changes`."""
    config = {
        **SETTINGS.data, "init": None, "seed": SETTINGS.seed,
        "recipe": SETTINGS.recipe, "pairs": 5, "bad_lines": 0, "workers": 2,
        **changes,
    }  # fmt: skip
    config = {name: value for name, value in config.items() if value != ""}
    write_json(folder / "config.json", config)
    run = RunFolder(folder)
    return run_workers(2, lambda workers: WorkerRun(workers, run, settings))


@pytest.mark.parametrize("settings", [None, SETTINGS])
def test_a_run_of_an_earlier_version_is_resumed(
    settings: WorkerSettings | None, tmp_path: pathlib.Path
) -> None:
    """A setting that its `config.json` lacks gets its default value."""
    recipe = dict(SETTINGS.recipe)
    del recipe["mine_clusters"]
    runs = opened(tmp_path, settings, recipe=recipe, replay="")
    for run in runs:
        assert run.resumed and run.settings == SETTINGS
        assert run.recipe == PRESETS["dssm"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"workers": 3}, "started with workers 3, not 2: start with the same"),
        ({"seed": 4}, "started with seed 4, not 3: start with the same"),
        ({"seed": ""}, "'seed' is missing, expected the settings of a run"),
    ],
)
def test_what_is_wrong_is_raised_by_all(
    changes: dict[str, Any], message: str, tmp_path: pathlib.Path
) -> None:
    for error in opened(tmp_path, SETTINGS, **changes):
        assert isinstance(error, JointError) and message in str(error)
