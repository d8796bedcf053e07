"""What lstm-dssm-train learns from beside clicks, and what it warns of."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.distillation.teacher_vectors import teach
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
def small_presets(monkeypatch) -> None:
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


def test_pairs_of_titles_beside_the_clicks(collection_folder, tmp_path, capsys):
    output = tmp_path / "run"
    config = run(collection_folder, output, title_pairs=2)
    pairs = (output / "title_pairs.tsv").read_text().splitlines()
    # Each of the six titles, not one of a single word, twice.
    assert len(pairs) == 12
    for query, title in (line.split("\t") for line in pairs):
        assert 0 < len(query.split()) < len(title.split())
    assert config["pairs"] == 120 + 12
    assert "132 pairs" in capsys.readouterr().out
    # Made again, the same, when the run is taken up again.
    (output / "title_pairs.tsv").unlink()
    succeed(train, resume=True, output=output)
    assert "already finished" in capsys.readouterr().out


def test_the_preset_of_a_teacher_without_one_is_warned_of(
    collection_folder, tmp_path, monkeypatch, capsys
):
    monkeypatch.setitem(dssm.PRESETS, "taught", QUICK)
    (tmp_path / "encoder_of_lengths.py").write_text(
        "def encode(texts):\n    return [[len(text), 1] for text in texts]\n"
    )
    monkeypatch.chdir(tmp_path)
    encoder = "encoder_of_lengths:encode"
    teach(str(collection_folder), encoder, tmp_path / "TEACH")
    for name, flags, warnings in (
        ("alone", {}, 1),
        ("alone", {"resume": True}, 0),
        ("taught", {"teacher": "TEACH"}, 0),
    ):
        output = tmp_path / name
        config = run(collection_folder, output, preset="taught", **flags)
        lines = capsys.readouterr().err.splitlines()
        found = [line for line in lines if line.startswith("warning: ")]
        assert len(found) == warnings, flags
        assert all("--preset=best is the recipe wi" in line for line in found)
    # Its path is absolute: a run may be resumed from another folder.
    assert config["teacher"] == str(tmp_path / "TEACH")


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


def test_a_ranker_has_the_options_of_its_flags(ranker_run):
    config = json.loads((ranker_run / "config.json").read_text())
    assert (config["seed"], config["select"]) == (3, "ndcg@3")
    assert config["ranker"]["options"]["patience"] == 2


def write_texts(path: Path, texts: dict[str, str]) -> None:
    rows = ({"_id": name, "text": text} for name, text in texts.items())
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def lists(tmp_path) -> Path:
    """Writes a collection without clicks, whose grades each test adds."""
    folder = tmp_path / "lists"
    (folder / "qrels").mkdir(parents=True)
    write_texts(folder / "corpus.jsonl", DOCUMENTS)
    queries = {f"q-{name}": query for name, (query, _) in TOPICS.items()}
    write_texts(folder / "queries.jsonl", queries)
    return folder


def judge(lists: Path, *rows: str) -> None:
    text = "".join(row.replace(" ", "\t") + "\n" for row in rows)
    (lists / "qrels/train.tsv").write_text(text)


@pytest.mark.parametrize(
    ("rows", "more", "message"),
    [
        (["q-lamp bolt 0", "q-lamp glue 0"], {},
         "found no query with a positive and a negative among 1"),
        (["q-lamp bolt 1", "q-bolt glue 0"], {},
         "found no query with a positive and a negative among 2"),
        (["q-lamp bolt 1", "q-lamp rope 0"], {}, "train.tsv:2: found document"),
        (["q-lamp bolt 1", "q-rope bolt 0"], {}, "train.tsv:2: found query"),
        (["q-lamp bolt 1", "q-lamp glue 0"], {"x": " "},
         "corpus.jsonl:7: found an empty title"),
    ],
    ids=["no positive", "none with both", "no document", "no query", "empty"],
)  # fmt: skip
def test_lists_that_are_wrong(rows, more, message, lists, tmp_path, refused):
    judge(lists, *rows)
    write_texts(lists / "corpus.jsonl", {**DOCUMENTS, **more})
    flags = [f"--data={lists}", f"--output={tmp_path}/run"]
    refused(train.run(["train", "--preset=mv_lstm_tensor", *flags]), message)
    assert not (tmp_path / "run").exists()


def test_texts_of_any_length_and_lists_without_negatives(
    lists, tmp_path, capsys
):
    """Reads a collection without judged negatives as clicks, and warns.

    Its titles have one word, no known word, or 10,000 words, of which 50 are
    read.
    """
    words = [f"w{number % 97}" for number in range(10_000)]
    words[50] = "bolt"  # the first one that is not read
    texts = {"long": " ".join(words), "one": "zinc"}
    write_texts(lists / "corpus.jsonl", {**DOCUMENTS, **texts})
    judge(lists, "q-lamp long 1", "q-lamp one 1", "q-bolt bolt 1")
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


def test_wrong_recipes_and_towers_of_a_scorer(clicks):
    for changes, message in (
        ({"learning_rate": float("nan")}, "learning_rate is nan: expected"),
        ({"matcher": "MVLTSM"}, "matcher is 'MVLTSM': expected one of"),
        ({"matcher_config": {"gamma": 3}}, "expected arguments of MVLSTM"),
    ):
        with pytest.raises(dssm.InputError, match=message):
            QUICK_SCORER.replace(**changes)
    with pytest.raises(dssm.InputError, match="'mv_lstm'.*mv_lstm_tensor"):
        dssm.train(clicks, "mv_lstm", verbose=0)
    best = dssm.TwoTower.from_preset("best")
    with pytest.raises(dssm.InputError, match="has not been adapted"):
        dssm.train(clicks, QUICK_SCORER, verbose=0, negatives_from=best)
