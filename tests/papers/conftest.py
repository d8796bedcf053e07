"""A finished table of three systems, made in this process."""

import dataclasses
import pathlib
from typing import Any

import pytest

from keras_lstm_dssm.models import Recipe
from keras_lstm_dssm.models.kinds import AnyRecipe
from keras_lstm_dssm.papers.run_systems import Row, run_system
from keras_lstm_dssm.papers.table_data import open_data
from keras_lstm_dssm.papers.table_iv import TABLE_IV_ROWS
from keras_lstm_dssm.settings.papers import TableSettings


def with_recipe(row: Row, recipe: AnyRecipe, **changes: Any) -> Row:
    """Returns a neural row that is trained by another recipe."""
    system: Any = row.system
    changed = dataclasses.replace(system, recipe=recipe, **changes)
    return row._replace(system=changed)


SMALL = Recipe("DSSMEncoder", {"units": [8, 4]})
ROWS = {
    "random": TABLE_IV_ROWS["random"],
    "bm25": TABLE_IV_ROWS["bm25"],
    "dssm": with_recipe(TABLE_IV_ROWS["dssm"], SMALL),
}


@pytest.fixture(scope="session")
def settings(collection_folder) -> TableSettings:
    return TableSettings(
        str(collection_folder), epochs=3, batch_size=16, depth=100,
        learning_rates=(0.1,), gammas=(10.0,), dev_evaluations=2,
        misspelled=(0.5, 1.0),
    )  # fmt: skip


@pytest.fixture(scope="session")
def table_folder(settings, tmp_path_factory) -> pathlib.Path:
    output = tmp_path_factory.mktemp("table") / "out"
    settings.record(output, open_data(settings, output).sizes)
    for name, row in ROWS.items():
        run_system(output, name, row, settings, seeds=2)
    return output
