"""What lstm-dssm-evaluate says of documents, and of those it cannot use."""

import gzip
from typing import Any

import pytest

from keras_lstm_dssm.analysis import evaluate
from keras_lstm_dssm.analysis.evaluate import measure_documents
from keras_lstm_dssm.data import DocumentFolder, write_documents
from keras_lstm_dssm.evaluation.bm25 import BM25System
from keras_lstm_dssm.papers.baselines import (
    RandomVectorSystem,
    document_baselines,
)
from tests.training.small_documents import documents, write_small_documents

KEYVEC: Any = None
"""Stands for a trained KeyVec: the tests replace what would encode by it."""


def test_bad_lines_are_told_before_the_table(tmp_path, monkeypatch, capsys):
    """Counts bad lines first. BM25 and random vectors replace the systems."""
    pytest.importorskip("sklearn")
    baselines: list[list[str]] = []

    def random_vectors(texts: list[str]) -> dict[str, Any]:
        baselines.append(texts)
        return {"random_vectors": RandomVectorSystem()}

    monkeypatch.setattr(
        evaluate, "system_of", lambda model, progress: BM25System()
    )
    folder = tmp_path / "folder"
    write_small_documents(folder)
    with gzip.open(folder / "documents.jsonl.gz", "at") as file:
        file.write("no document\n")
    tasks, measured = measure_documents(
        KEYVEC,
        DocumentFolder(folder, max_bad_lines=1),
        baselines=random_vectors,
        report=print,
    )
    printed = capsys.readouterr().out
    assert printed.startswith("skipped bad lines: no JSON: 1\nmodel against sy")
    assert "trained on 10 documents\n" in printed
    assert "test, retrieve: 2 queries, 4 documents\n" in printed
    (texts,) = baselines
    assert texts == [
        "\n".join(one.sentences) for one in documents() if one.split == "train"
    ]
    assert list(tasks) == ["retrieve", "cluster"]
    assert list(measured["retrieve"]) == ["model", "random_vectors", "random"]
    # The words of a class are those of its query.
    assert [of["map"] for of in measured["retrieve"]["model"].values()] == [
        1,
        1,
    ]


def test_no_document_to_train_baselines_on(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        evaluate, "system_of", lambda model, progress: BM25System()
    )
    tested = [one for one in documents() if one.split == "test"]
    qrels = {"test": {"q": {tested[0].id: 1}}}
    query = {"q": tested[0].sentences[0]}
    folder = write_documents(tmp_path / "folder", tested, query, qrels)
    _, measured = measure_documents(
        KEYVEC, folder, baselines=document_baselines, report=print
    )
    of_retrieve = measured["retrieve"]
    assert list(of_retrieve) == ["model", "bm25", "random_vectors", "random"]
    assert of_retrieve["model"]["q"]["map"] == 1
    first_line = capsys.readouterr().out.splitlines()[0]
    assert first_line == (
        f"{folder.folder}: no document of the split train: left out tfidf, lsa,"
        " word2vec and doc2vec, which need some"
    )
