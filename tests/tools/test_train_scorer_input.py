"""Wrong and odd input of a pair scorer's training: one line each."""

import json
import pathlib

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.tools import train
from tests.conftest import TOPICS

QUICK = dssm.ScorerRecipe(
    "MVLSTM", {"units": 2, "slices": 2, "hidden": 3}, word_dimension=2,
    epochs=1, batch_size=64, mined_negatives=2, skip_gram=False,
)  # fmt: skip


DOCUMENTS = {name: title for name, (_, title) in TOPICS.items()}


@pytest.fixture(autouse=True)
def small_preset(monkeypatch) -> None:
    monkeypatch.setitem(dssm.SCORER_PRESETS, "mv_lstm_tensor", QUICK)


def write_texts(path: pathlib.Path, texts: dict[str, str]) -> None:
    rows = ({"_id": name, "text": text} for name, text in texts.items())
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def lists(tmp_path) -> pathlib.Path:
    """Writes a collection without clicks, whose grades each test adds."""
    folder = tmp_path / "lists"
    (folder / "qrels").mkdir(parents=True)
    write_texts(folder / "corpus.jsonl", DOCUMENTS)
    queries = {f"q-{name}": query for name, (query, _) in TOPICS.items()}
    write_texts(folder / "queries.jsonl", queries)
    return folder


@pytest.fixture
def clicks(tmp_path) -> pathlib.Path:
    path = tmp_path / "clicks.tsv"
    path.write_text("".join(f"{q}\t{t}\n" for q, t in TOPICS.values()))
    return path


def judge(lists: pathlib.Path, *rows: str) -> None:
    text = "".join(row.replace(" ", "\t") + "\n" for row in rows)
    (lists / "qrels/train.tsv").write_text(text)


def run(data: object, tmp_path: pathlib.Path, *flags: str) -> int:
    given = ["--preset=mv_lstm_tensor", f"--output={tmp_path}/run", *flags]
    return train.run(["train", f"--data={data}", *given])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            ["q-lamp bolt 0", "q-lamp glue 0"],
            "found no query with a positive and a negative among 1",
        ),
        (
            ["q-lamp bolt 1", "q-bolt glue 0"],
            "found no query with a positive and a negative among 2",
        ),
        (["q-lamp bolt 1", "q-lamp rope 0"], "train.tsv:2: found document"),
        (["q-lamp bolt 1", "q-rope bolt 0"], "train.tsv:2: found query"),
    ],
    ids=["no positive", "none with both", "no document", "no query"],
)
def test_lists_that_are_wrong(rows, message, lists, tmp_path, refused):
    judge(lists, *rows)
    refused(run(lists, tmp_path), message)
    assert not (tmp_path / "run").exists()


def test_an_empty_text(lists, clicks, tmp_path, refused):
    judge(lists, "q-lamp bolt 1", "q-lamp glue 0")
    write_texts(lists / "corpus.jsonl", {**DOCUMENTS, "x": " "})
    refused(run(lists, tmp_path), "corpus.jsonl:7: found an empty title")
    with clicks.open("a") as file:
        file.write("rope\t \n")
    refused(run(clicks, tmp_path), "clicks.tsv:7: found")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--preset=mv_lstm"], "--preset=mv_lstm"),
        (["--gamma=3"], "--gamma is not a flag of --preset=mv_lstm_tensor"),
        (["--learning_rate=nan"], "--learning_rate=nan"),
        (["--margin=inf"], "--margin=inf"),
        (["--negatives_from={tmp}/none"], "none: no model here"),
        (
            ["--negatives_from={towers}", "--preset=lstm_32"],
            "negatives_from is used by pair scorers only: leave it out",
        ),
        (
            ["--negatives_from={towers}", "--data={lists}"],
            "lists has judged ones: leave it out",
        ),
    ],
)
def test_flags_that_are_wrong(
    flags, message, lists, clicks, trained_run, tmp_path, refused
):
    judge(lists, "q-lamp bolt 1", "q-lamp glue 0")
    names = {"tmp": tmp_path, "towers": trained_run, "lists": lists}
    refused(run(clicks, tmp_path, *(f.format(**names) for f in flags)), message)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learning_rate": float("nan")}, "learning_rate is nan: expected"),
        ({"matcher": "MVLTSM"}, "matcher is 'MVLTSM': expected one of"),
        ({"matcher_config": {"gamma": 3}}, "expected arguments of MVLSTM"),
    ],
)
def test_recipes_that_are_wrong(changes, message):
    with pytest.raises(InputError, match=message):
        QUICK.replace(**changes)


def test_presets_and_towers_that_are_wrong(clicks):
    with pytest.raises(InputError, match="'mv_lstm'.*mv_lstm_tensor"):
        dssm.train(clicks, "mv_lstm", verbose=0)
    best = dssm.TwoTower.from_preset("best")
    with pytest.raises(InputError, match="has not been adapted"):
        dssm.train(clicks, QUICK, verbose=0, negatives_from=best)


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
    assert run(lists, tmp_path, "--learning_rate=1", "--batch_size=1") == 0
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
