"""The published metrics of the real data, of random order and of references.

They average over ties, where `TieBreaker` breaks them by a hash: the tests put
equal scores together again and get the metrics to the last digit; `evaluate`
comes as near as one throw of the hash does. Those of bestbuy are of grades made
of its click counts, and were computed from the files by themselves.
"""

import re
from itertools import pairwise

import numpy as np
import pytest

from keras_lstm_dssm.data import Collection, DocumentFolder
from keras_lstm_dssm.evaluation import Task, evaluate_systems, mean
from keras_lstm_dssm.evaluation.bm25 import BM25System, alphanumeric
from keras_lstm_dssm.evaluation.measures import expected_queries
from keras_lstm_dssm.papers.baseline_rows import DocumentOrder

CUTOFFS = (1, 3, 10)


def tied(ranked: dict[str, float]) -> list[list[str]]:
    """Groups neighbours whose scores are one float32 step apart."""
    ids, scores = list(ranked), np.array(list(ranked.values()))
    falls = ~np.isclose(scores[1:], scores[:-1], rtol=2e-7, atol=1e-30)
    edges = [0, *(np.flatnonzero(falls) + 1).tolist(), len(ids)]
    return [ids[a:b] for a, b in pairwise(edges)]


@pytest.mark.parametrize(("name", "split", "ndcg"), [
    ("homedepot", "test", (62.44, 70.57, 85.11)),
    ("homedepot", "dev", (62.29, 70.56, 85.13)),
    ("bestbuy", "test", (71.11, 84.52, 87.87)),
    ("wikiqa", "test", (18.35, 33.74, 49.61)),
])  # fmt: skip
def test_random_order(shared_data, name, split, ndcg):
    task = Task.from_collection(Collection(shared_data / name), split)
    found = [100 * task.random()[f"ndcg@{k}"] for k in CUTOFFS]
    assert found == pytest.approx(ndcg, abs=0.0051)


@pytest.mark.parametrize(("name", "ndcg", "hash_moves"), [
    ("homedepot", (67.79, 74.22, 87.11), 0.15),
    ("bestbuy", (85.70, 92.74, 94.05), 0.8),
    ("wikiqa", (39.70, 56.12, 67.11), 0.15),
])  # fmt: skip
def test_bm25_rerank(shared_data, name, ndcg, hash_moves):
    collection = Collection(shared_data / name)
    task = Task.from_collection(collection, "test", "rerank")
    run = task.run(BM25System())
    equal = {
        query: {d: -n for n, ids in enumerate(tied(ranked)) for d in ids}
        for query, ranked in run.items()
    }
    averaged = mean(expected_queries(equal, task.qrels))
    for values, digits in (
        (averaged, 0.0051), (task.evaluate(run), hash_moves),
    ):  # fmt: skip
        found = [100 * values[f"ndcg@{k}"] for k in CUTOFFS]
        assert found == pytest.approx(ndcg, abs=digits)


def space_separated(text: str) -> list[str]:
    """The words of the reference, which leaves commas within numbers."""
    return text.casefold().split()


@pytest.mark.parametrize(("name", "min_relevant", "metrics"), [
    ("homedepot", 3, (33.27, 35.88, 63.83)),
    ("bestbuy", 1, (44.79, 49.52, 53.84)),
])  # fmt: skip
def test_bm25_retrieve(shared_data, name, min_relevant, metrics):
    """MRR@10, recall@10 and recall@100."""
    task = Task.from_collection(
        Collection(shared_data / name), "test", "retrieve", min_relevant, 300
    )
    run = task.run(BM25System(tokenizer=space_separated))
    values = []
    for query_id, judged in task.qrels.items():
        # The reference gives each of n tied titles their mean rank.
        rank, seen = {}, 0
        for group in tied(run[query_id]):
            rank.update(dict.fromkeys(group, seen + (len(group) + 1) / 2))
            seen += len(group)
        relevant = [d for d, grade in judged.items() if grade >= min_relevant]
        ranks = np.array([rank.get(d, np.inf) for d in relevant])
        first = ranks.min()
        reciprocal = 1 / first if first <= 10 else 0
        recalls = np.mean(ranks <= 10), np.mean(ranks <= 100)
        values.append((reciprocal, *recalls))
    found = 100 * np.mean(values, axis=0)
    assert found == pytest.approx(metrics, abs=0.0051)
    measured = task.evaluate(run)
    assert 100 * measured["recall@10"] == pytest.approx(metrics[1], abs=0.2)
    assert 100 * measured["recall@100"] == pytest.approx(metrics[2], abs=0.2)
    # A mean rank is worth less than the mean of the ranks' reciprocals.
    assert metrics[0] < 100 * measured["mrr@10"] < metrics[0] + 4


def test_document_order_of_wikiqa_is_the_published_mv_lstm(shared_data):
    """The notebook of MatchZoo 2.2 prints the metrics of document order."""
    collection = Collection(shared_data / "wikiqa")
    task = Task.from_collection(collection, "test", "lists")
    found = mean(task.measure(DocumentOrder())[1])
    assert [found[name] for name in ("map", "ndcg@3", "ndcg@5")] == (
        pytest.approx([0.633078259, 0.630589628, 0.677677302], abs=1e-9)
    )


def ascii_words(text: str) -> list[str]:
    return re.findall("[a-z0-9]+", text.lower())


@pytest.mark.parametrize(("name", "precision", "reciprocal"), [
    ("squad", 0.807, 0.888), ("tldr", 0.672, 0.799),
    ("reuters_sc", 0.335, 0.567),
])  # fmt: skip
def test_bm25_of_lists_of_five(shared_data, name, precision, reciprocal):
    task = Task.from_collection(Collection(shared_data / name), "test", "lists")
    # The published metrics were computed with these words.
    system = BM25System(tokenizer=ascii_words)
    found = evaluate_systems(task, {"bm25": system})
    assert found["bm25"]["p@1"] == pytest.approx(precision, abs=6e-4)
    assert found["bm25"]["mrr"] == pytest.approx(reciprocal, abs=6e-4)
    assert found["random"]["p@1"] == pytest.approx(0.2)
    assert found["random"]["mrr"] == pytest.approx(137 / 300)


@pytest.mark.parametrize(("split", "queries", "documents", "bm25", "random"), [
    ("dev", 1010, 77, (0.707, 0.919), None),
    ("test", 1942, 155, (0.653, 0.881), (0.019, 0.065)),
])  # fmt: skip
def test_bm25_of_papers(shared_data, split, queries, documents, bm25, random):
    task = Task.from_documents(DocumentFolder(shared_data / "papers"), split)
    assert (len(task.queries), len(task.documents)) == (queries, documents)
    found = task.evaluate(task.run(BM25System(tokenizer=alphanumeric)))
    for metrics, expected, digits in (
        (found, bm25, 2e-3), (task.random(), random, 5e-4),
    ):  # fmt: skip
        if expected:
            values = [metrics["mrr@10"], metrics["recall@10"]]
            assert values == pytest.approx(expected, abs=digits)
