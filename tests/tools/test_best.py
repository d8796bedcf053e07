"""--preset=best from training to what is exported, as a user runs it."""

import json
import pathlib

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.serving import SavedEncoder
from keras_lstm_dssm.tools import analyze, export, train
from tests.tools.conftest import succeed


@pytest.fixture(scope="module")
def run_folder(collection_folder, tmp_path_factory) -> pathlib.Path:
    """Trains the preset `best` with a smaller encoder."""
    folder = tmp_path_factory.mktemp("best") / "run"
    small = dssm.PRESETS["best"].with_encoder(cells=3, bag=4, sketch=31)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(dssm.PRESETS, "best", small)
        flags = {"data": collection_folder, "preset": "best", "epochs": 2}
        # The batch size that is given replaces the recipe's.
        succeed(train, **flags, batch_size=16, output=folder)
    return folder


def test_the_recipe_belongs_to_the_preset(run_folder):
    config = json.loads((run_folder / "config.json").read_text())
    names = ("towers", "gamma", "negatives", "batch_size", "epochs")
    found = [config["recipe"][name] for name in names]
    assert found == ["equal_start", 16.0, "in_batch", 16, 2]
    model = dssm.load_run(run_folder)
    assert not model.needs_adapt and not model.tied
    norms = [tower.length_norm for tower in model.towers]
    assert norms == [1.0, 0.5]
    # `garden` is in one of six titles.
    idf = np.log(1 + (6 - 1 + 0.5) / (1 + 0.5))
    weights = np.unique(model.query_encoder.word_sketch.word_weight) ** 2
    assert np.isclose(weights, idf).any()
    assert weights.max() == pytest.approx(np.log(1 + 6.5 / 0.5))


def test_what_is_exported_gives_its_vectors(run_folder, tmp_path):
    succeed(export, run=run_folder, output=tmp_path)
    model = dssm.load_run(run_folder)
    texts = ["garden hoses, 50 ft", "", "上海"]
    for name in ("query_encoder", "document_encoder"):
        saved = SavedEncoder(tmp_path / name / "1")
        np.testing.assert_allclose(
            saved.encode(texts), getattr(model, name).encode(texts), atol=1e-6
        )


def test_it_can_be_analysed(run_folder, tmp_path):
    report = tmp_path / "report.html"
    texts = {"query": "garden-hose", "document": "50 ft rubber garden hose"}
    succeed(analyze, run=run_folder, **texts, map="pca", output=report)
    page = report.read_text()
    assert "garden-hose" in page and ">hose<" in page
