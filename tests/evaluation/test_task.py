import re

import numpy as np
import pytest

from keras_lstm_dssm.data import Collection, write_collection
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import (
    MEASURES,
    DenseSystem,
    Task,
    evaluate_queries,
    evaluate_systems,
    format_table,
    mean,
    read_run,
)
from keras_lstm_dssm.evaluation.bm25 import BM25System

DOCUMENTS = {"a": "red hat", "b": "blue hat", "c": "red shoe", "d": "sock"}
QUERIES = {"q1": "red hat", "q2": "shoe", "q3": "sock", "q4": "tie"}
QRELS = {
    "q1": {"b": 1, "a": 3},
    "q2": {"c": 2, "d": 0, "a": 1},
    "q3": {"d": 1},
    "q4": {"a": 0, "b": 0},
}
SYSTEMS = {
    "bm25": BM25System(),
    "length": DenseSystem(
        lambda texts: np.array([[len(text), 1.0] for text in texts]),
        lambda texts: np.array([[1.0, len(text)] for text in texts]),
    ),
}


@pytest.fixture
def collection(tmp_path) -> Collection:
    return write_collection(
        tmp_path / "data", DOCUMENTS, QUERIES, {"dev": QRELS}, []
    )


def test_rerank(collection):
    task = Task.from_collection(collection, "dev", "rerank")
    assert task.queries == {"q1": "red hat", "q2": "shoe"}
    assert task.depth is None
    run = task.run(SYSTEMS["bm25"])
    assert {q: sorted(ranked) for q, ranked in run.items()} == {
        "q1": ["a", "b"],
        "q2": ["a", "c", "d"],
    }
    assert task.evaluate(run) == mean(evaluate_queries(run, task.qrels))
    assert task.random()["p@1"] == pytest.approx((1 + 2 / 3) / 2)
    high = Task.from_collection(collection, "dev", "rerank", min_relevant=3)
    assert list(high.queries) == ["q1"]
    assert high.random()["mrr@10"] == pytest.approx((1 + 1 / 2) / 2)


def test_retrieve(collection):
    task = Task.from_collection(collection, "dev", "retrieve", depth=2)
    assert list(task.queries) == ["q1", "q2", "q3"]
    run = task.run(SYSTEMS["length"])
    assert [len(ranked) for ranked in run.values()] == [2, 2, 2]
    assert task.random()["recall@10"] == pytest.approx(2 / 4)
    bm25 = task.evaluate(task.run(SYSTEMS["bm25"]))
    assert bm25["mrr@10"] == bm25["ndcg@1"] == 1


def test_click_counts_become_grades(tmp_path):
    """As gains of 2^clicks, one title would decide NDCG alone."""
    clicks = {"q1": {"a": 30, "b": 20, "c": 10, "d": 10}}
    few = {"q2": {"a": 3, "b": 1}}  # clicks too, as the other split shows
    splits = {"dev": clicks, "test": few}
    collection = write_collection(
        tmp_path / "d", DOCUMENTS, QUERIES, splits, []
    )
    assert collection.has_click_counts
    dev = Task.from_collection(collection, "dev", "rerank")
    assert dev.qrels == {"q1": {"a": 4, "b": 3, "c": 3, "d": 3}}
    for first, ndcg in (("a", 1.0), ("b", 0.886)):
        others = [d for d in DOCUMENTS if d != first]
        run = {"q1": {d: -float(i) for i, d in enumerate([first, *others])}}
        assert dev.evaluate(run)["ndcg@10"] == pytest.approx(ndcg, abs=5e-4)
    test = Task.from_collection(collection, "test", "rerank")
    assert test.qrels == {"q2": {"a": 4, "b": 3}}


def test_grades_stay_as_they_are(collection):
    assert not collection.has_click_counts
    assert collection.graded_qrels("dev") == QRELS


def test_systems_side_by_side(collection, tmp_path):
    task = Task.from_collection(collection, "dev", "retrieve")
    path = tmp_path / "bm25.trec"
    results = evaluate_systems(task, SYSTEMS, {"bm25": path})
    assert list(results) == ["bm25", "length", "random"]
    assert results["bm25"] == task.evaluate(read_run(path))
    assert results["random"] == task.random()
    assert path.read_text().splitlines()[0].endswith(" bm25")


def test_table():
    half = dict.fromkeys(MEASURES, 0.5)
    table = format_table({"model": half, "b": half | {"map": 0.12345}})
    head, *lines = table.splitlines()
    assert head.split() == list(MEASURES)
    assert lines[0].split() == ["model"] + ["50.00"] * len(MEASURES)
    assert lines[1].split()[1 + MEASURES.index("map")] == "12.35"
    ends = [match.end() for match in re.finditer(r"\S+", head)]
    for line in lines:
        assert [m.end() for m in re.finditer(r"\S+", line)][1:] == ends


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split": "text"}, "no such split, expected one of dev"),
        ({"mode": "rank"}, "unknown mode 'rank': choose one of rerank, retr"),
        ({"depth": 0, "mode": "retrieve"}, "depth is 0: expected 1 or more"),
        ({"min_relevant": 0}, "min_relevant is 0: expected 1 or more"),
        (
            {"min_relevant": 4},
            "split 'dev' has no query to rerank: it needs a document of grade 4"
            " or more and a second judged one",
        ),
    ],
)
def test_wrong_input(collection, options, message):
    with pytest.raises(InputError, match=message):
        Task.from_collection(
            collection, **{"split": "dev", "mode": "rerank"} | options
        )
