"""Exported models in this process: any number of texts, clear refusals."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.models_config import update_models_config
from keras_lstm_dssm.serving import SavedEncoder, SavedRetriever
from tests.serving.tiny_models import TITLES


def test_more_queries_than_one_chunk_holds(tiny_models: Path) -> None:
    retriever = SavedRetriever(tiny_models / "retriever")
    found = retriever.search([*TITLES] * 200, k=2)
    assert len(found) == 600
    assert [hits[0].id for hits in found] == [*TITLES] * 200
    assert found[:3] == found[-3:]
    assert [len(hits) for hits in retriever.search(["bolt"], k=9)] == [3]
    assert retriever.search([], k=2) == []


def test_a_folder_of_versions_stands_for_the_one_that_is_served(
    tiny_models: Path, tmp_path: Path
) -> None:
    base = shutil.copytree(
        tiny_models / "query_encoder", tmp_path / "query_encoder"
    )
    first, second = (
        SavedEncoder(base / version).encode(["a b"]) for version in "12"
    )
    assert np.abs(first - second).max() > 0.01
    np.testing.assert_array_equal(SavedEncoder(base).encode(["a b"]), second)
    update_models_config(
        tmp_path / "models.config", [base.name], {base.name: 1}, "/models"
    )
    np.testing.assert_array_equal(SavedEncoder(base).encode(["a b"]), first)


def test_what_is_refused(tiny_models: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no SavedModel"):
        SavedEncoder(tmp_path)
    with pytest.raises(InputError, match=r"inputs are \['k', 'text'\]"):
        SavedEncoder(tiny_models / "retriever")
    with pytest.raises(InputError, match=r"inputs are \['text'\]"):
        SavedRetriever(tiny_models / "query_encoder")
    retriever = SavedRetriever(tiny_models / "retriever")
    for k in (0, 2**31):
        with pytest.raises(InputError, match=f"k is {k}"):
            retriever.search(["x"], k)
