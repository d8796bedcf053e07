"""Tasks of titles, of judged lists and of documents, and systems on them."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from keras_lstm_dssm import data, evaluation
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.bm25 import BM25System, alphanumeric
from keras_lstm_dssm.evaluation.clustering import CLUSTER_MEASURES
from keras_lstm_dssm.evaluation.task import (
    DOCUMENT_MEASURES,
    LIST_MEASURES,
    document_sentences,
    document_tasks,
    document_text,
    means,
)
from keras_lstm_dssm.papers.baseline_rows import DocumentOrder
from keras_lstm_dssm.papers.baselines import TfidfSystem

pytest.importorskip("sklearn")

DOCUMENTS = {"a": "red hat", "b": "blue hat", "c": "red shoe", "d": "sock"}
QUERIES = {"q1": "red hat", "q2": "shoe", "q3": "sock", "q4": "tie"}
QRELS = {
    "q1": {"b": 1, "a": 3}, "q2": {"c": 2, "d": 0, "a": 1}, "q3": {"d": 1},
    "q4": {"a": 0, "b": 0},
}  # fmt: skip
SYSTEMS = {
    "bm25": BM25System(),
    "length": evaluation.DenseSystem(
        lambda texts: np.array([[len(text), 1.0] for text in texts]),
        lambda texts: np.array([[1.0, len(text)] for text in texts]),
    ),
}


@pytest.fixture
def collection(tmp_path) -> data.Collection:
    return data.write_collection(
        tmp_path / "data", DOCUMENTS, QUERIES, {"dev": QRELS}, []
    )


def test_rerank(collection):
    task = evaluation.Task.from_collection(collection, "dev", "rerank")
    assert task.queries == {"q1": "red hat", "q2": "shoe"}
    assert task.depth is None
    run = task.run(SYSTEMS["bm25"])
    assert {q: sorted(ranked) for q, ranked in run.items()} == {
        "q1": ["a", "b"],
        "q2": ["a", "c", "d"],
    }
    assert task.evaluate(run) == evaluation.mean(
        evaluation.evaluate_queries(run, task.qrels)
    )
    assert task.random()["p@1"] == pytest.approx((1 + 2 / 3) / 2)
    high = evaluation.Task.from_collection(
        collection, "dev", "rerank", min_relevant=3
    )
    assert list(high.queries) == ["q1"]
    assert high.random()["mrr@10"] == pytest.approx((1 + 1 / 2) / 2)


def test_retrieve(collection):
    task = evaluation.Task.from_collection(
        collection, "dev", "retrieve", depth=2
    )
    assert list(task.queries) == ["q1", "q2", "q3"]
    run = task.run(SYSTEMS["length"])
    assert [len(ranked) for ranked in run.values()] == [2, 2, 2]
    assert task.random()["recall@10"] == pytest.approx(2 / 4)
    runs: dict[str, evaluation.Run] = {}
    results = evaluation.evaluate_systems(
        task, SYSTEMS, lambda name, run: runs.update({name: run})
    )
    assert list(results) == ["bm25", "length", "random"]
    assert list(runs) == ["bm25", "length"]
    assert results["bm25"] == task.evaluate(runs["bm25"])
    assert results["bm25"]["mrr@10"] == results["bm25"]["ndcg@1"] == 1
    assert results["random"] == task.random()


def test_click_counts_become_grades(collection, tmp_path):
    """As gains of 2^clicks, one title would decide NDCG alone."""
    assert not collection.has_click_counts
    assert collection.graded_qrels("dev") == QRELS
    clicks = {"q1": {"a": 30, "b": 20, "c": 10, "d": 10}}
    few = {"q2": {"a": 3, "b": 1}}  # clicks too, as the other split shows
    splits = {"dev": clicks, "test": few}
    counted = data.write_collection(
        tmp_path / "d", DOCUMENTS, QUERIES, splits, []
    )
    assert counted.has_click_counts
    dev = evaluation.Task.from_collection(counted, "dev", "rerank")
    assert dev.qrels == {"q1": {"a": 4, "b": 3, "c": 3, "d": 3}}
    for first, ndcg in (("a", 1.0), ("b", 0.886)):
        others = [d for d in DOCUMENTS if d != first]
        run = {"q1": {d: -float(i) for i, d in enumerate([first, *others])}}
        assert dev.evaluate(run)["ndcg@10"] == pytest.approx(ndcg, abs=5e-4)
    test = evaluation.Task.from_collection(counted, "test", "rerank")
    assert test.qrels == {"q2": {"a": 4, "b": 3}}


def test_table():
    half = dict.fromkeys(evaluation.MEASURES, 0.5)
    table = evaluation.format_table(
        {"model": half, "b": half | {"map": 0.12345}}
    )
    head, *lines = table.splitlines()
    assert head.split() == list(evaluation.MEASURES)
    assert lines[0].split() == ["model"] + ["50.00"] * len(evaluation.MEASURES)
    assert lines[1].split()[1 + evaluation.MEASURES.index("map")] == "12.35"
    ends = [match.end() for match in re.finditer(r"\S+", head)]
    for line in lines:
        assert [m.end() for m in re.finditer(r"\S+", line)][1:] == ends


@pytest.mark.parametrize(("options", "message"), [
    ({"split": "text"}, "no such split, expected one of dev"),
    ({"mode": "rank"}, "unknown mode 'rank': choose one of rerank, retr"),
    ({"depth": 0, "mode": "retrieve"},
     "depth is 0: expected a whole number of 1 or more"),
    ({"min_relevant": 0}, "min_relevant is 0: expected 1 or more"),
    ({"min_relevant": 4},
     "split 'dev' has no query to rerank: a query needs a document of grade 4"
     " or more and a second judged document"),
])  # fmt: skip
def test_wrong_input(collection, options, message):
    with pytest.raises(InputError, match=message):
        evaluation.Task.from_collection(
            collection, **{"split": "dev", "mode": "rerank"} | options
        )


def constant(texts: list[str]) -> np.ndarray:
    return np.ones((len(texts), 2), np.float32)


def test_a_constant_scorer_is_random_and_not_document_order():
    """In this data the answers come first: document order is perfect."""
    titles = {d: d for d in ("good", *"abcd")}
    qrels = {f"q{i}": {"good": 1, **dict.fromkeys("abcd", 0)} for i in range(3)}
    queries = dict.fromkeys(qrels, "no such word")
    task = evaluation.Task(
        queries, titles, qrels, measures=LIST_MEASURES, ties="expected"
    )
    systems = {
        "dead": evaluation.DenseSystem(constant, constant),
        "bm25": BM25System(),  # no word of a query matches
        "document order": DocumentOrder(),
    }
    found = evaluation.evaluate_systems(task, systems)
    assert list(found) == [*systems, "random"]
    assert found["dead"] == found["bm25"] == found["random"] == task.random()
    assert found["random"]["p@1"] == pytest.approx(1 / 5)
    assert found["random"]["mrr"] == pytest.approx(137 / 300)
    assert found["document order"] == dict.fromkeys(task.measures, 1.0)
    # The scores are measured, and not their run, which is strictly ordered.
    run, values = task.measure(systems["dead"])
    assert all(sorted(run[query]) == sorted(titles) for query in qrels)
    assert values == task.random_queries()
    assert task._replace(queries={"q0": "other"}).measures == LIST_MEASURES


WORDS = {"wear": "hat coat shoe wool", "tools": "hose pump saw nail"}
NAMES = {"lone": "solo", **WORDS}


def row(split: str, name: str, number: int) -> dict[str, Any]:
    words = NAMES[name].split()
    return {
        "_id": f"{split}-{name}{number}",
        "sentences": [f"A {word} of {name}." for word in words[number % 2 :]],
        "class": name,
        "split": split,
    }


ROWS = [
    row(split, name, number)
    for split in ("train", "dev", "test")
    for name in WORDS
    for number in range(6)
] + [row("test", "lone", 0), {**row("test", "lone", 2), "class": None}]


def write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in rows))


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> data.DocumentFolder:
    path = tmp_path_factory.mktemp("task")
    write_lines(path / "documents.jsonl", ROWS)
    texts = {"q1": "hat and wool", "q2": "saw", "q3": "none at all"}
    queries = [{"_id": key, "text": text} for key, text in texts.items()]
    write_lines(path / "queries.jsonl", queries)
    (path / "qrels").mkdir()
    (path / "qrels" / "test.tsv").write_text(
        "".join(f"q1\ttest-wear{n}\t1\n" for n in range(6))
        + "q2\ttest-tools1\t2\nq2\ttest-wear1\t0\nq3\ttest-wear1\t0\n"
    )
    return data.DocumentFolder(path)


def test_retrieval_ranks_the_documents_of_the_split(folder):
    task = evaluation.Task.from_documents(folder)
    assert task.queries == {"q1": "hat and wool", "q2": "saw"}
    assert len(task.documents) == task.depth == 14
    assert task.documents["test-wear1"] == (
        "A coat of wear.\nA shoe of wear.\nA wool of wear."
    )
    assert task.describe() == "2 queries, 14 documents"
    assert task.measures == DOCUMENT_MEASURES
    assert task._replace(min_relevant=2).measures == DOCUMENT_MEASURES
    two = evaluation.Task.from_documents(folder, min_relevant=2)
    assert list(two.queries) == ["q2"]
    with pytest.raises(InputError, match="found no query of split 'test' with"):
        evaluation.Task.from_documents(folder, min_relevant=3)
    with pytest.raises(InputError, match="no such split, expected one of test"):
        evaluation.Task.from_documents(folder, "dev")
    # One relevant document among 14.
    harmonic = [sum(1 / rank for rank in range(1, n + 1)) for n in (14, 10)]
    expected = [1, harmonic[0], harmonic[0], harmonic[1], 10]
    assert list(two.random().values()) == pytest.approx(
        [value / 14 for value in expected]
    )


def test_the_tasks_of_a_folder(folder, tmp_path):
    tasks = document_tasks(folder, seeds=2)
    assert list(tasks) == ["retrieve", "cluster"]
    clustering = tasks["cluster"]
    assert isinstance(clustering, evaluation.ClusterTask)
    assert clustering.describe() == (
        "13 documents in 3 classes (1 with only one document); left out: 1"
        " without a class"
    )
    assert clustering.seeds == 2
    assert list(document_tasks(folder, "dev")) == ["cluster"]
    path = tmp_path / "documents.jsonl"
    write_lines(path, ROWS)
    bare = data.DocumentFolder(tmp_path)
    assert list(document_tasks(bare)) == ["cluster"]
    path.write_text('{"_id": "a", "text": "One.", "split": "dev"}\n')
    with pytest.raises(InputError, match="found no document of split 'test'"):
        document_tasks(bare)
    with pytest.raises(InputError, match="found neither qrels/dev.tsv nor"):
        document_tasks(bare, "dev")


def test_systems_side_by_side(folder):
    tasks = document_tasks(folder, seeds=2)
    train = [document_text(d.sentences) for d in folder.of("train")]
    systems = {
        "bm25": BM25System(tokenizer=alphanumeric),
        "tfidf": TfidfSystem().fit(train),
    }
    measured = {
        name: evaluation.measure_systems(task, systems)
        for name, task in tasks.items()
    }
    assert {task: list(names) for task, names in measured.items()} == {
        "retrieve": ["bm25", "tfidf", "random"],
        "cluster": ["tfidf", "random"],
    }
    assert list(measured["retrieve"]["bm25"]) == ["q1", "q2"]
    assert list(measured["cluster"]["tfidf"]) == ["0", "1"]
    results = {name: means(of_task) for name, of_task in measured.items()}
    assert list(results["cluster"]["tfidf"]) == list(CLUSTER_MEASURES)
    assert results["cluster"]["tfidf"]["f1"] == pytest.approx(1)
    assert results["retrieve"]["random"] == tasks["retrieve"].random()
    p_at_10 = results["retrieve"]["bm25"]["p@10"]
    assert p_at_10 == pytest.approx((6 + 1) / 10 / 2)
    head, *lines = evaluation.format_table(results["retrieve"]).splitlines()
    assert head.split() == list(DOCUMENT_MEASURES)
    assert lines[0].split()[:2] == ["bm25", "35.00"]
    with pytest.raises(InputError, match="BM25System has no encode_document"):
        tasks["cluster"].measure(systems["bm25"])


def test_a_document_model_reads_the_sentences_as_they_are():
    class Recorder:
        """Encodes a document by its number of sentences, as `KeyVec` would."""

        def __init__(self) -> None:
            self.read: list[Any] = []

        def encode(self, documents: list[Any], progress: bool) -> np.ndarray:
            assert progress
            self.read += documents
            return np.ones((len(documents), 2))

    model = Recorder()
    system = evaluation.system_of(model, progress=True)
    system.encode_query(["One query. It is read whole."])
    assert model.read.pop() == "One query. It is read whole."
    sentences = ["See Fig. 3 of Kim. It", "is one sentence."]
    system.encode_document([document_text(sentences), ""])
    assert model.read == [sentences, [""]]
    assert document_sentences(document_text(sentences)) == sentences
