"""A finished table of three systems, made in this process."""

import pathlib

import pytest

from keras_lstm_dssm.tables import Settings, open_dataset, run_job

SYSTEMS = ("random", "bm25", "dssm")


@pytest.fixture(scope="session")
def settings(collection_folder: pathlib.Path) -> Settings:
    return Settings(
        str(collection_folder), epochs=3, batch_size=16, depth=100,
        learning_rates=(0.1,), gammas=(10.0,), looks=2,
        misspelled=(0.5, 1.0),
    )  # fmt: skip


@pytest.fixture(scope="session")
def table_folder(
    settings: Settings, tmp_path_factory: pytest.TempPathFactory
) -> pathlib.Path:
    output = tmp_path_factory.mktemp("table") / "out"
    settings.record(output, open_dataset(settings, output).sizes)
    for name in SYSTEMS:
        run_job(output, name, settings, seeds=2)
    return output
