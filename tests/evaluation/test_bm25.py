import math

import pytest

from keras_lstm_dssm.evaluation.bm25 import (
    BM25System,
    alphanumeric,
    space_separated,
)

DOCUMENTS = {
    "a": "Red angle-bracket",
    "b": "angle bracket for the angle grinder",
    "c": "garden hose",
    "d": "",
}
QUERIES = {"q1": "ANGLE bracket", "q2": "unheard", "q3": ""}


def bm25(query: list[str], title: list[str], titles: list[list[str]]) -> float:
    """Robertson and Zaragoza 2009 with Lucene's IDF, without (k1 + 1)."""
    average = sum(map(len, titles)) / len(titles)
    total = 0.0
    for word in query:
        df = sum(word in other for other in titles)
        idf = math.log(1 + (len(titles) - df + 0.5) / (df + 0.5))
        tf = title.count(word)
        total += (
            idf * tf / (tf + 1.2 * (1 - 0.75 + 0.75 * len(title) / average))
        )
    return total


@pytest.mark.parametrize("tokenizer", [space_separated, alphanumeric])
def test_scores(tokenizer):
    titles = {d: tokenizer(title) for d, title in DOCUMENTS.items()}
    expected = {
        d: bm25(["angle", "bracket"], title, list(titles.values()))
        for d, title in titles.items()
    }
    system = BM25System(tokenizer=tokenizer)
    run = system.rerank(QUERIES, {"q1": list(DOCUMENTS)}, DOCUMENTS)
    assert run["q1"] == pytest.approx(expected, rel=1e-6, abs=1e-30)
    found = system.retrieve(QUERIES, DOCUMENTS, 10)
    assert found["q1"] == {d: s for d, s in run["q1"].items() if expected[d]}
    assert len(found["q1"]) == (1 if tokenizer is space_separated else 2)


def test_depth():
    run = BM25System().retrieve({"q": "angle hose red"}, DOCUMENTS, 2)
    assert len(run["q"]) == 2


def test_another_corpus_is_another_index():
    documents = dict(DOCUMENTS)
    first = BM25System().retrieve(QUERIES, documents, 10)
    assert list(first["q1"]) == ["b"]
    documents["c"] = "bracket"
    assert set(BM25System().retrieve(QUERIES, documents, 10)["q1"]) == {
        "b",
        "c",
    }
    assert BM25System().retrieve(QUERIES, DOCUMENTS, 10) == first
    assert BM25System(k1=2).retrieve(QUERIES, DOCUMENTS, 10) != first
    assert BM25System(b=0).retrieve(QUERIES, DOCUMENTS, 10) != first
