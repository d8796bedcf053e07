"""`TrainingConfig` derives and refuses; `TableSettings` are not mixed."""

import os

import keras
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.distributed import worker
from keras_lstm_dssm.distributed.worker import worker_versions
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import write_json
from keras_lstm_dssm.models import PRESETS
from keras_lstm_dssm.plain_files import read_json
from keras_lstm_dssm.settings.programs import TableSettings
from keras_lstm_dssm.settings.training import TrainingConfig


def test_the_recipe_is_best_or_that_of_a_preset():
    assert TrainingConfig("clicks.tsv").recipe == PRESETS["best"]
    config = TrainingConfig("clicks.tsv", "lstm_96", init="RUN")
    assert config.recipe == PRESETS["lstm_96"]
    assert config.to_dict()["init"] == os.path.abspath("RUN")


def test_pair_scorers_are_trained_by_one_process():
    with pytest.raises(InputError, match="several workers train two towers"):
        TrainingConfig("clicks.tsv", "mv_lstm_cosine").check_workers()
    replay = TrainingConfig("new.tsv", init="RUN", recipe="best", replay="o:1")
    with pytest.raises(InputError, match="--replay is not supported by sever"):
        replay.check_workers()


def test_patience_is_that_of_the_recipe_where_epochs_are_evaluated():
    recipe = PRESETS["best"].replace(patience=4)
    for options, expected in (
        ({}, None),
        ({"dev": "api"}, 4),
        ({"dev": "api", "patience": 7}, 7),
    ):
        config = TrainingConfig("clicks.tsv", recipe, **options)
        assert config.patience == expected


def test_what_must_be_equal_on_all_workers(tmp_path, monkeypatch):
    """Versions, and the sources, of linked folders, too."""
    package, linked = tmp_path / "package", tmp_path / "tools"
    for folder in (package, linked):
        folder.mkdir()
        (folder / "module.py").write_text("1\n")
    (package / "tools").symlink_to(linked)
    monkeypatch.setattr(
        worker, "__file__", str(package / "distributed" / "worker.py")
    )
    versions = worker_versions()
    assert versions["keras_lstm_dssm"] == dssm.__version__
    assert versions["Keras"] == keras.__version__

    (package / "notes.txt").write_text("no source\n")
    assert worker_versions() == versions
    (linked / "module.py").write_text("2\n")
    changed = {
        name
        for name, value in worker_versions().items()
        if value != versions[name]
    }
    assert changed == {"keras_lstm_dssm with source files of hash"}


def test_other_settings_are_not_mixed(tmp_path):
    folder = tmp_path / "out"
    settings = TableSettings("api", gammas=(5.0, 10.0))
    settings.record(folder, {"clicks": 7})
    settings.record(folder, {"clicks": 7})
    with pytest.raises(
        InputError, match="with epochs 30, and now it is 5: give"
    ):
        TableSettings("api", epochs=5, gammas=(5.0, 10.0)).record(
            folder, {"clicks": 7}
        )
    with pytest.raises(
        InputError, match="with clicks 7, and now it is 8: give"
    ):
        settings.record(folder, {"clicks": 8})
    recorded = read_json(folder / "settings.json")
    del recorded["clusters_of"]
    write_json(folder / "settings.json", recorded)
    with pytest.raises(InputError, match="s_of None, and now it is test: give"):
        settings.record(folder, {"clicks": 7})
