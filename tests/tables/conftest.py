"""A finished table of three systems, made in this process."""

import pathlib
from collections.abc import Iterator

import pytest

from keras_lstm_dssm.models import Recipe
from keras_lstm_dssm.tables import (
    ROWS,
    TableSettings,
    open_table_data,
    run_system,
)

SYSTEMS = ("random", "bm25", "dssm")
SMALL = Recipe("DSSMEncoder", {"units": [8, 4]})


@pytest.fixture(scope="session", autouse=True)
def small_dssm() -> Iterator[None]:
    """Makes the row `dssm` small; `test_rows` sees the others."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(ROWS, "dssm", ROWS["dssm"]._replace(recipe=SMALL))
        yield


@pytest.fixture(scope="session")
def settings(collection_folder: pathlib.Path) -> TableSettings:
    return TableSettings(
        str(collection_folder), epochs=3, batch_size=16, depth=100,
        learning_rates=(0.1,), gammas=(10.0,), dev_evaluations=2,
        misspelled=(0.5, 1.0),
    )  # fmt: skip


@pytest.fixture(scope="session")
def table_folder(
    settings: TableSettings,
    small_dssm: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> pathlib.Path:
    output = tmp_path_factory.mktemp("table") / "out"
    settings.record(output, open_table_data(settings, output).sizes)
    for name in SYSTEMS:
        run_system(output, name, settings, seeds=2)
    return output
