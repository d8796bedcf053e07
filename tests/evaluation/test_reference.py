"""The figures that stand beside the real data, for random order and BM25.

They average over ties, where `TieBreaker` breaks them by a hash: the tests put
equal scores together again and get the figures to the last digit; `evaluate`
comes as near as one throw of the hash does. Those of bestbuy are of grades made
of its click counts, and were computed from the files by themselves.
"""

from itertools import pairwise

import numpy as np
import pytest

from keras_lstm_dssm.data import Collection
from keras_lstm_dssm.evaluation import Task
from keras_lstm_dssm.evaluation.bm25 import BM25System
from keras_lstm_dssm.evaluation.runs import Run

CUTOFFS = (1, 3, 10)


def tied(ranked: dict[str, float]) -> list[list[str]]:
    """Groups neighbours whose scores are one float32 step apart."""
    ids, scores = list(ranked), np.array(list(ranked.values()))
    falls = ~np.isclose(scores[1:], scores[:-1], rtol=2e-7, atol=1e-30)
    edges = [0, *(np.flatnonzero(falls) + 1).tolist(), len(ids)]
    return [ids[a:b] for a, b in pairwise(edges)]


def averaged_ndcg(task: Task, run: Run, k: int) -> float:
    discounts = 1 / np.log2(np.arange(2, k + 2))
    values = []
    for query_id, judged in task.qrels.items():
        top = max(judged.values())
        gain = {d: 2.0 ** (g - top) - 2.0**-top for d, g in judged.items()}
        means = [
            np.mean([gain[d] for d in group])
            for group in tied(run[query_id])
            for _ in group
        ]
        dcg, best = (
            np.dot(gains[:k], discounts[: len(gains)])
            for gains in (means, sorted(gain.values(), reverse=True))
        )
        values.append(dcg / best)
    return 100 * float(np.mean(values))


@pytest.mark.parametrize(
    ("name", "split", "figures"),
    [
        ("homedepot", "test", (62.44, 70.57, 85.11)),
        ("homedepot", "dev", (62.29, 70.56, 85.13)),
        ("bestbuy", "test", (71.11, 84.52, 87.87)),
        ("wikiqa", "test", (18.35, 33.74, 49.61)),
    ],
)
def test_random_order(shared_data, name, split, figures):
    expected = Task.from_collection(
        Collection(shared_data / name), split
    ).random()
    found = [100 * expected[f"ndcg@{k}"] for k in CUTOFFS]
    assert found == pytest.approx(figures, abs=0.0051)


@pytest.mark.parametrize(
    ("name", "figures", "hash_moves"),
    [
        ("homedepot", (67.79, 74.22, 87.11), 0.15),
        ("bestbuy", (85.70, 92.74, 94.05), 0.8),
        ("wikiqa", (39.70, 56.12, 67.11), 0.15),
    ],
)
def test_bm25_rerank(shared_data, name, figures, hash_moves):
    task = Task.from_collection(
        Collection(shared_data / name), "test", "rerank"
    )
    run = task.run(BM25System())
    found = [averaged_ndcg(task, run, k) for k in CUTOFFS]
    assert found == pytest.approx(figures, abs=0.0051)
    values = task.evaluate(run)
    measured = [100 * values[f"ndcg@{k}"] for k in CUTOFFS]
    assert measured == pytest.approx(figures, abs=hash_moves)


@pytest.mark.parametrize(
    ("name", "min_relevant", "figures"),
    [
        ("homedepot", 3, (33.27, 35.88, 63.83)),
        ("bestbuy", 1, (44.79, 49.52, 53.84)),
    ],
)
def test_bm25_retrieve(shared_data, name, min_relevant, figures):
    task = Task.from_collection(
        Collection(shared_data / name), "test", "retrieve", min_relevant, 300
    )
    run = task.run(BM25System())
    values = []
    for query_id, judged in task.qrels.items():
        # The reference gives each of n tied titles their mean rank.
        rank, seen = {}, 0
        for group in tied(run[query_id]):
            rank.update(dict.fromkeys(group, seen + (len(group) + 1) / 2))
            seen += len(group)
        ranks = np.array(
            [
                rank.get(d, np.inf)
                for d, grade in judged.items()
                if grade >= min_relevant
            ]
        )
        first = ranks.min()
        values.append(
            (
                1 / first if first <= 10 else 0,
                np.mean(ranks <= 10),
                np.mean(ranks <= 100),
            )
        )
    found = 100 * np.mean(values, axis=0)
    assert found == pytest.approx(figures, abs=0.0051)
    measured = task.evaluate(run)
    assert 100 * measured["recall@10"] == pytest.approx(figures[1], abs=0.2)
    assert 100 * measured["recall@100"] == pytest.approx(figures[2], abs=0.2)
    # A mean rank is worth less than the mean of the ranks' reciprocals.
    assert figures[0] < 100 * measured["mrr@10"] < figures[0] + 4
