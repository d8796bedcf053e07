"""P@1, MRR and others of judged lists, and the reference systems."""

import re

import numpy as np
import pytest

from keras_lstm_dssm.data import Collection
from keras_lstm_dssm.evaluation import DenseSystem, Task, evaluate_systems, mean
from keras_lstm_dssm.evaluation.bm25 import BM25System
from keras_lstm_dssm.evaluation.measures import expected_queries
from keras_lstm_dssm.evaluation.task import LIST_MEASURES
from keras_lstm_dssm.papers.baseline_rows import DocumentOrder


def list_task(
    queries: dict[str, str],
    documents: dict[str, str],
    qrels: dict[str, dict[str, int]],
) -> Task:
    return Task(
        queries, documents, qrels, measures=LIST_MEASURES, ties="expected"
    )


def ones(texts: list[str]) -> np.ndarray:
    return np.ones((len(texts), 2), np.float32)


FIVE = {f"d{i}": int(i == 2) for i in range(5)}


def measures(scores: list[float]) -> dict[str, float]:
    of_list = dict(zip(FIVE, scores, strict=True))
    return expected_queries({"q": of_list}, {"q": FIVE}, 1, LIST_MEASURES)["q"]


@pytest.mark.parametrize(
    ("scores", "precision", "reciprocal"),
    [
        ([0, 1, 2, 1, 0], 1, 1),
        ([3, 1, 2, 1, 0], 0, 1 / 2),
        ([7, 7, 7, 7, 7], 1 / 5, (1 + 1 / 2 + 1 / 3 + 1 / 4 + 1 / 5) / 5),
        ([2, 0, 2, 0, 0], 1 / 2, (1 + 1 / 2) / 2),
        ([3, 2, 2, 2, 0], 0, (1 / 2 + 1 / 3 + 1 / 4) / 3),
        ([1, 1, 0, 1, 0], 0, (1 / 4 + 1 / 5) / 2),
    ],
)
def test_values_by_hand(scores, precision, reciprocal):
    found = measures(scores)
    assert found["p@1"] == pytest.approx(precision, abs=1e-12)
    assert found["mrr"] == pytest.approx(reciprocal, abs=1e-12)
    assert found["map"] == pytest.approx(reciprocal, abs=1e-12)  # 1 relevant


def test_queries_that_count():
    qrels = {"a": {"x": 1, "y": 0}, "b": {"x": 0}, "c": {"x": 1}}
    found = expected_queries({"a": {"x": 1.0, "y": 1.0}}, qrels)
    assert {q: v["p@1"] for q, v in found.items()} == {"a": 0.5, "c": 0.0}
    assert mean(found)["p@1"] == 0.25
    with pytest.raises(ValueError, match="query a: a score is not finite"):
        expected_queries({"a": {"x": np.nan}}, qrels)


def test_a_constant_scorer_is_random_and_not_document_order():
    """In this data the answers come first, so that document order is perfect.

    Equal scores must not count as that order.
    """
    qrels = {f"q{i}": {"good": 1, **dict.fromkeys("abcd", 0)} for i in range(3)}
    task = list_task(
        dict.fromkeys(qrels, "no such word"),
        {d: d for d in ("good", *"abcd")},
        qrels,
    )

    systems = {
        "dead": DenseSystem(ones, ones),
        "bm25": BM25System(),
        "document order": DocumentOrder(),
    }
    found = evaluate_systems(task, systems)
    assert list(found) == [*systems, "random"]
    for name in ("dead", "bm25", "random"):  # no word of a query matches
        assert found[name]["p@1"] == pytest.approx(0.2)
        assert found[name]["mrr"] == pytest.approx(0.4567, abs=1e-4)
    assert found["document order"] == dict.fromkeys(found["random"], 1.0)


def test_document_order_of_wikiqa_is_the_published_mv_lstm(shared_data):
    """The notebook of MatchZoo 2.2 prints the figures of document order."""
    collection = Collection(shared_data / "wikiqa")
    task = Task.from_collection(collection, "test", "lists")
    found = mean(task.measure(DocumentOrder())[1])
    assert found["map"] == pytest.approx(0.633078259, abs=1e-9)
    assert found["ndcg@3"] == pytest.approx(0.630589628, abs=1e-9)
    assert found["ndcg@5"] == pytest.approx(0.677677302, abs=1e-9)


def ascii_words(text: str) -> list[str]:
    return re.findall("[a-z0-9]+", text.lower())


@pytest.mark.parametrize(
    ("name", "precision", "reciprocal"),
    [("squad", 0.807, 0.888), ("tldr", 0.672, 0.799),
     ("reuters_sc", 0.335, 0.567)],
)  # fmt: skip
def test_bm25_of_lists_of_five(shared_data, name, precision, reciprocal):
    task = Task.from_collection(Collection(shared_data / name), "test", "lists")
    # The published figures were computed with these words.
    system = BM25System(tokenizer=ascii_words)
    found = evaluate_systems(task, {"bm25": system})
    assert found["bm25"]["p@1"] == pytest.approx(precision, abs=6e-4)
    assert found["bm25"]["mrr"] == pytest.approx(reciprocal, abs=6e-4)
    assert found["random"]["p@1"] == pytest.approx(0.2)
    assert found["random"]["mrr"] == pytest.approx(137 / 300)


def test_a_list_task_measures_scores_and_not_their_run():
    """A constant scorer has the measures of random order, exactly."""
    qrels = {"q": {"good": 1, **dict.fromkeys("abcd", 0)}}
    documents = {d: d for d in ("good", *"abcd")}
    task = list_task({"q": "text"}, documents, qrels)
    run, values = task.measure(DenseSystem(ones, ones))
    assert sorted(run["q"]) == sorted(documents)  # strictly ordered
    assert values == task.random_queries()
    assert values["q"]["p@1"] == pytest.approx(1 / 5)
    assert task.random()["mrr"] == pytest.approx(137 / 300)
    first = mean(task.measure(DocumentOrder())[1])
    assert first == dict.fromkeys(task.measures, 1.0)
    assert task._replace(queries={"q": "other"}).measures == LIST_MEASURES
