"""The mixtures of a table: other rows' systems, with weights from dev."""

import time
from pathlib import Path
from typing import Any

import keras

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import (
    DenseSystem,
    Mixture,
    choose_weights,
    system_of,
)
from keras_lstm_dssm.evaluation.remembered_vectors import remembering
from keras_lstm_dssm.files import check_unpacked_size, read_json
from keras_lstm_dssm.tables.baseline_rows import (
    TrainedSystem,
    teacher_system,
    train_baseline,
)
from keras_lstm_dssm.tables.rows import Row
from keras_lstm_dssm.tables.table_data import TableData
from keras_lstm_dssm.tables.table_settings import TableSettings

MODEL_FILE = "model.keras"
"""The file of two towers in the folder of a seed."""

_BM25 = "bm25"


def train_mixture(
    row: Row,
    seed: int,
    data: TableData,
    settings: TableSettings,
    output: Path,
) -> TrainedSystem:
    """Chooses the weights of a mixture on dev; nothing is trained anew.

    Args:
        row: The row of the mixture.
        seed: The seed of the parts that have one.
        data: The dev task and its measure.
        settings: See `train_baseline`.
        output: Folder of the table, where the parts are finished.

    Raises:
        InputError: A part is not finished.
    """
    start = time.perf_counter()
    parts = {
        name: _part(name, seed, data, settings, output / "systems" / name)
        for name in row.parts
    }
    chosen = choose_weights(parts, data.dev, data.dev_measure)
    return TrainedSystem(
        Mixture(parts, chosen.weights),
        0,
        chosen.value,
        time.perf_counter() - start,
        further={f"weight_{n}": w for n, w in chosen.weights.items()},
    )


def _part(
    name: str,
    seed: int,
    data: TableData,
    settings: TableSettings,
    folder: Path,
) -> Any:
    """Returns the system of a part, whose results are in `folder`."""
    if name == "teacher":
        return teacher_system(settings)
    seed_folder = folder / f"seed_{0 if name == _BM25 else seed}"
    if not seed_folder.exists():
        raise InputError(
            f"{folder}: found no results of {name}, a part of this mixture:"
            " name it in --systems, too"
        )
    if name == _BM25:
        options = read_json(seed_folder / "result.json")["options"]
        return train_baseline(name, options, seed, data, settings).system
    check_unpacked_size(seed_folder / MODEL_FILE)
    system = system_of(keras.saving.load_model(seed_folder / MODEL_FILE))
    assert isinstance(system, DenseSystem)
    return remembering(system)
