"""Retrieval and clustering of the documents of a folder."""

import json
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pytest

from keras_lstm_dssm.data import DocumentFolder
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import (
    ClusterTask,
    DenseSystem,
    Task,
    format_table,
    mean,
    measure_systems,
    system_of,
)
from keras_lstm_dssm.evaluation.bm25 import BM25System, alphanumeric
from keras_lstm_dssm.evaluation.clustering import CLUSTER_MEASURES
from keras_lstm_dssm.evaluation.task import (
    DOCUMENT_MEASURES,
    document_sentences,
    document_tasks,
    document_text,
    means,
)
from keras_lstm_dssm.papers.baselines import TfidfSystem

pytest.importorskip("sklearn")

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


def write_folder(folder: Path, queries: bool = True) -> DocumentFolder:
    folder.mkdir()
    lines = [json.dumps(line) + "\n" for line in ROWS]
    (folder / "documents.jsonl").write_text("".join(lines))
    if queries:
        texts = {"q1": "hat and wool", "q2": "saw", "q3": "none at all"}
        (folder / "queries.jsonl").write_text(
            "".join(
                json.dumps({"_id": key, "text": text}) + "\n"
                for key, text in texts.items()
            )
        )
        (folder / "qrels").mkdir()
        (folder / "qrels" / "test.tsv").write_text(
            "query-id\tcorpus-id\tscore\n"
            + "".join(f"q1\ttest-wear{n}\t1\n" for n in range(6))
            + "q2\ttest-tools1\t2\nq2\ttest-wear1\t0\nq3\ttest-wear1\t0\n"
        )
    return DocumentFolder(folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> DocumentFolder:
    return write_folder(tmp_path_factory.mktemp("task") / "documents")


def test_retrieval_ranks_the_documents_of_the_split(folder):
    task = Task.from_documents(folder)
    assert task.queries == {"q1": "hat and wool", "q2": "saw"}
    assert len(task.documents) == task.depth == 14
    assert task.documents["test-wear1"] == (
        "A coat of wear.\nA shoe of wear.\nA wool of wear."
    )
    assert task.describe() == "2 queries, 14 documents"
    assert task.measures == DOCUMENT_MEASURES
    assert task._replace(min_relevant=2).measures == DOCUMENT_MEASURES
    two = Task.from_documents(folder, min_relevant=2)
    assert list(two.queries) == ["q2"]
    with pytest.raises(InputError, match="found no query of split 'test' with"):
        Task.from_documents(folder, min_relevant=3)
    with pytest.raises(InputError, match="no such split, expected one of test"):
        Task.from_documents(folder, "dev")


@pytest.mark.parametrize("seed", range(3))
def test_measures_equal_ir_measures(folder, seed):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(99, 4))

    def encode(texts: list[str]) -> np.ndarray:
        return np.array([vectors[len(text) % 99] for text in texts])

    task = Task.from_documents(folder)
    run, values = task.measure(DenseSystem(encode, encode))
    measures = [
        ir_measures.P @ 10,
        ir_measures.AP,
        ir_measures.RR,
        ir_measures.RR @ 10,
        ir_measures.R @ 10,
    ]
    expected = ir_measures.calc_aggregate(
        measures,
        [ir_measures.Qrel(q, d, g) for q, judged in task.qrels.items()
         for d, g in judged.items()],
        [ir_measures.ScoredDoc(q, d, s) for q, ranked in run.items()
         for d, s in ranked.items()],
    )  # fmt: skip
    found = mean(values, task.measures)
    assert list(found) == list(DOCUMENT_MEASURES)
    assert list(found.values()) == pytest.approx(
        [expected[measure] for measure in measures]
    )
    assert task.evaluate(run) == pytest.approx(found)


def test_random_order_is_an_expectation(folder):
    """q2 has one relevant document among 14."""
    task = Task.from_documents(folder, min_relevant=2)
    harmonic = [sum(1 / rank for rank in range(1, n + 1)) for n in (14, 10)]
    assert task.random() == pytest.approx(
        {
            "p@10": 1 / 14,
            "map": harmonic[0] / 14,
            "mrr": harmonic[0] / 14,
            "mrr@10": harmonic[1] / 14,
            "recall@10": 10 / 14,
        }  # fmt: skip
    )


def test_the_tasks_of_a_folder(folder, tmp_path):
    tasks = document_tasks(folder, seeds=2)
    assert list(tasks) == ["retrieve", "cluster"]
    clustering = tasks["cluster"]
    assert isinstance(clustering, ClusterTask)
    assert clustering.describe() == (
        "13 documents in 3 classes, 1 of one document; left out: 1 of no class"
    )
    assert clustering.seeds == 2
    assert list(document_tasks(folder, "dev")) == ["cluster"]
    bare = write_folder(tmp_path / "bare", queries=False)
    assert list(document_tasks(bare)) == ["cluster"]
    path = Path(bare.folder) / "documents.jsonl"
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
        name: measure_systems(task, systems) for name, task in tasks.items()
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
    assert results["retrieve"]["bm25"]["p@10"] == pytest.approx(
        (6 + 1) / 10 / 2
    )
    head, *lines = format_table(results["retrieve"]).splitlines()
    assert head.split() == list(DOCUMENT_MEASURES)
    assert lines[0].split()[:2] == ["bm25", "35.00"]
    with pytest.raises(InputError, match="BM25System has no method encode"):
        tasks["cluster"].measure(systems["bm25"])


def test_a_document_model_reads_the_sentences_as_they_are(folder):
    class Recorder:
        """Encodes a document by its number of sentences, as `KeyVec` would."""

        def __init__(self) -> None:
            self.read: list[Any] = []

        def encode(self, documents: list[Any], progress: bool) -> np.ndarray:
            assert progress
            self.read += documents
            return np.ones((len(documents), 2))

    model = Recorder()
    system = system_of(model, progress=True)
    system.encode_query(["One query. It is read whole."])
    assert model.read.pop() == "One query. It is read whole."
    sentences = ["See Fig. 3 of Kim. It", "is one sentence."]
    system.encode_document([document_text(sentences), ""])
    assert model.read == [sentences, [""]]
    assert document_sentences(document_text(sentences)) == sentences


@pytest.mark.parametrize(
    ("split", "queries", "documents", "mrr", "recall"),
    [("dev", 1010, 77, 0.707, 0.919), ("test", 1942, 155, 0.653, 0.881)],
)
def test_bm25_of_papers_has_the_reference_figures(
    shared_data, split, queries, documents, mrr, recall
):
    task = Task.from_documents(DocumentFolder(shared_data / "papers"), split)
    assert (len(task.queries), len(task.documents)) == (queries, documents)
    found = task.evaluate(task.run(BM25System(tokenizer=alphanumeric)))
    assert found["mrr@10"] == pytest.approx(mrr, abs=2e-3)
    assert found["recall@10"] == pytest.approx(recall, abs=2e-3)
    if split == "test":
        assert task.random()["mrr@10"] == pytest.approx(0.019, abs=5e-4)
        assert task.random()["recall@10"] == pytest.approx(0.065, abs=5e-4)
