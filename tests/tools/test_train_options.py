"""What lstm-dssm-train learns from beside clicks, and what it warns of."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data import write_collection
from keras_lstm_dssm.tools import train
from tests.conftest import TOPICS
from tests.tools.conftest import succeed
from tests.training.small_trainings import QUICK

QUICK_SCORER = dssm.ScorerRecipe(
    "MVLSTM", {"units": 2, "slices": 2, "hidden": 3}, word_dimension=2,
    epochs=1, batch_size=64, mined_negatives=2, skip_gram=False,
)  # fmt: skip
DOCUMENTS = {name: title for name, (_, title) in TOPICS.items()}


@pytest.fixture(autouse=True)
def small_presets(monkeypatch, eager) -> None:
    """Makes presets quick to train."""
    monkeypatch.setitem(dssm.PRESETS, "dssm", QUICK)
    monkeypatch.setitem(dssm.SCORER_PRESETS, "mv_lstm_tensor", QUICK_SCORER)


def run(data: object, output: Path, **flags: Any) -> dict[str, Any]:
    """Trains one epoch; returns the configuration of the run."""
    given = {"preset": "dssm", "epochs": 1, "batch_size": 16, **flags}
    succeed(train, data=data, output=output, **given)
    return json.loads((output / "config.json").read_text())


@pytest.fixture
def judged_folder(collection_folder, tmp_path) -> Path:
    """Copies the collection, with grades for its training split."""
    folder = shutil.copytree(collection_folder, tmp_path / "judged")
    qrels = folder / "qrels"
    shutil.copy(qrels / "dev.tsv", qrels / "train.tsv")
    return folder


def test_several_sources(collection_folder, judged_folder, tmp_path):
    clicks, output = tmp_path / "clicks.tsv", tmp_path / "run"
    clicks.write_text("rope\tnylon rope\n" * 3)
    for name in ("clicks.train.tsv.gz", "clicks.train.tsv"):
        (judged_folder / name).unlink(missing_ok=True)
    config = run(f"{collection_folder}, {clicks}, {judged_folder}", output)
    # 120 clicks, 3, and the six titles that are judged to be right.
    assert config["pairs"] == 129
    assert (output / "clicks.train3.tsv").exists()


def test_judged_negatives(judged_folder, tmp_path, monkeypatch):
    """Judged negatives replace the mined ones of the preset's recipe."""
    mined = QUICK.replace(negatives="in_batch", hard_negatives=2, mine_every=1)
    monkeypatch.setitem(dssm.PRESETS, "dssm", mined)
    output = tmp_path / "run"
    config = run(judged_folder, output, judged_negatives=2, epochs=2)
    recipe = config["recipe"]
    assert (recipe["hard_negatives"], recipe["judged_negatives"]) == (0, 2)
    assert not (output / "hard_negatives.json.gz").exists()


def test_texts_of_any_length_and_lists_without_negatives(tmp_path, capsys):
    """Reads a collection without judged negatives as clicks, and warns.

    Its titles have one word, no known word, or 10,000 words, of which 50 are
    read.
    """
    words = [f"w{number % 97}" for number in range(10_000)]
    words[50] = "bolt"  # the first one that is not read
    texts = {"long": " ".join(words), "one": "zinc"}
    queries = {name: query for name, (query, _) in TOPICS.items()}
    qrels = {"train": {"lamp": {"long": 1, "one": 1}, "bolt": {"bolt": 1}}}
    lists = tmp_path / "lists"
    write_collection(lists, {**DOCUMENTS, **texts}, queries, qrels, [])
    (lists / "clicks.train.tsv.gz").unlink()
    preset = {"preset": "mv_lstm_tensor", "learning_rate": 1, "batch_size": 1}
    run(lists, tmp_path / "run", **preset)
    printed, warning = capsys.readouterr()
    assert "triples of 2 queries" in printed
    assert warning.count("warning: ") == warning.count("\n") == 1, warning
    assert "no document of the training split is judged not rel" in warning

    model = dssm.load_run(tmp_path / "run")
    cut = [" ".join(words[:count]) for count in (10_000, 50, 49)]
    scores = model.score("zinc", [*cut, "zinc", "", "?!"])
    assert scores[0] == pytest.approx(scores[1], rel=1e-6)
    assert scores[2] != pytest.approx(scores[1], rel=1e-6)
    assert np.isfinite(scores).all()
    assert scores[4] == scores[5]
    assert np.isfinite(model.score(" ".join(words), ["zinc"])).all()
