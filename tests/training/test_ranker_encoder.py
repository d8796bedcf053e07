"""Rankers one of whose features is the cosine of an outside encoder."""

import json
from pathlib import Path

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.distillation.teacher_vectors import teach
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.ranker.overlap_features import NAMES
from tests.ranker.small_ranker import small_trees, write_graded

pytest.importorskip("lightgbm")

NAME = "letter_counts:encode"
PAIRS = (["red hex bolt", "lamp"], ["blue steel hex bolt", "eee"])


@pytest.fixture
def graded(tmp_path, monkeypatch) -> Path:
    """Writes graded titles, and a module with an encoder of others."""
    (tmp_path / "letter_counts.py").write_text(
        "import numpy as np\n"
        "def encode(texts):\n"
        "    return np.array([[t.count('e'), 1.0] for t in texts])\n"
    )
    monkeypatch.chdir(tmp_path)
    return write_graded(tmp_path / "graded")


def train(graded: Path, encoder: str, output: str | None) -> dssm.Ranker:
    return dssm.train_ranker(
        graded, encoder=encoder, output=output, options=small_trees(), verbose=0
    )


def test_a_function_is_named_as_it_is(graded):
    ranker = train(graded, NAME, "run")
    assert ranker.features.names == (*NAMES, NAME)
    assert ranker.trees.trees == 20 and ranker.towers is None
    row = ranker.features(["eee"], ["x"])[0]
    assert row[-1] == pytest.approx(1 / np.sqrt(10), abs=2.0**-13)
    settings = json.loads(Path("run/config.json").read_text())["ranker"]
    assert (settings["encoder"], settings["encoder_digest"]) == (NAME, None)


def test_a_teachers_folder_is_found_from_another_working_directory(
    graded, tmp_path, monkeypatch
):
    Path("clicks.tsv").write_text("red hex bolt\tblue steel hex bolt\n")
    teach("clicks.tsv", NAME, "TEACH")
    ranker = train(graded, "TEACH", "run")
    assert ranker.features.names == (*NAMES, str(tmp_path / "TEACH"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.syspath_prepend(tmp_path)  # of the module
    monkeypatch.chdir(tmp_path / "elsewhere")
    loaded = dssm.load_run(tmp_path / "run")
    np.testing.assert_array_equal(
        loaded.score_pairs(*PAIRS), ranker.score_pairs(*PAIRS)
    )


def test_changed_vectors_are_refused(graded, tmp_path):
    Path("clicks.tsv").write_text("red hex bolt\tblue steel hex bolt\n")
    teach("clicks.tsv", NAME, "TEACH")
    train(graded, "TEACH", "run")

    def refused(message: str) -> None:
        with pytest.raises(InputError, match=message) as error:
            dssm.load_run("run")
        assert str(error.value).startswith(f"{tmp_path / 'TEACH'}: ")
        assert "\n" not in str(error.value)

    block = Path("TEACH/vectors/000000.npy")
    vectors = np.load(block)
    np.save(block, -vectors)
    refused("found other vectors than those the ranker was trained with")
    config = Path("run/config.json")
    content = json.loads(config.read_text())
    digest = content["ranker"].pop("encoder_digest")
    config.write_text(json.dumps(content))
    dssm.load_run("run")  # older files have no digest
    content["ranker"]["encoder_digest"] = digest
    config.write_text(json.dumps(content))
    np.save(block, vectors)
    dssm.load_run("run")
    Path("TEACH").rename("MOVED")
    refused("found no vectors here, expected the folder of lstm-dssm-teach")
