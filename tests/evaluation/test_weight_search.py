"""choose_weights: on tasks whose best weights are known."""

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.evaluation import DenseSystem, Task, choose_weights, mean
from keras_lstm_dssm.evaluation.bm25 import BM25System
from keras_lstm_dssm.evaluation.runs import ListScores, System
from keras_lstm_dssm.evaluation.task import LIST_MEASURES

QUERIES = {f"q{i}": f"query {i}" for i in range(10)}
DOCUMENTS = {f"d{i}": f"title {i}" for i in range(4)}


def with_cosines(scores: dict[str, list[float]]) -> DenseSystem:
    """Makes a system with the given cosines of each query and document."""
    axes = {title: row for row, title in enumerate(DOCUMENTS.values())}
    rows = {text: scores[q] for q, text in QUERIES.items()}

    def encode_query(texts: list[str]) -> np.ndarray:
        known = np.array([rows[text] for text in texts])
        rest = np.sqrt(1 - np.sum(known**2, axis=1, keepdims=True))
        return np.concatenate([known, rest], axis=1)

    def encode_document(texts: list[str]) -> np.ndarray:
        return np.eye(5)[[axes[text] for text in texts]]

    return DenseSystem(encode_query, encode_document)


def between(low: float, high: float) -> dict[str, DenseSystem]:
    """Makes two parts that rank d0 first for weights w of `a` from low to high.

    Scores are .2, .2 + .3 (low - w) and .2 + .3 (w - high)."""
    a = [0.2, 0.2 + 0.3 * (low - 1), 0.2 + 0.3 * (1 - high), 0]
    b = [0.2, 0.2 + 0.3 * low, 0.2 - 0.3 * high, 0]
    return {
        "a": with_cosines(dict.fromkeys(QUERIES, a)),
        "b": with_cosines(dict.fromkeys(QUERIES, b)),
    }


QRELS = {q: {"d0": 1, "d1": 0, "d2": 0} for q in QUERIES}
TASKS = [
    Task(QUERIES, DOCUMENTS, QRELS),
    Task(QUERIES, DOCUMENTS, QRELS, depth=4),
    Task(QUERIES, DOCUMENTS, QRELS, measures=LIST_MEASURES, ties="expected"),
]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("best", [0.05, 0.5, 0.75])
def test_the_only_good_weights_are_found(task, best):
    parts = between(best - 0.04, best + 0.04)
    chosen = choose_weights(parts, task, "p@1")
    assert chosen.weights == pytest.approx({"a": best, "b": 1 - best})
    assert chosen.value == measured(task, parts, chosen.weights) == 1
    assert chosen.alone == {"a": 0, "b": 0}
    assert chosen.tried == 21
    coarse = choose_weights(parts, task, "p@1", steps=1)
    assert coarse.value == 0
    assert coarse.tried == 2


def measured(task: Task, parts: dict, weights: dict[str, float]) -> float:
    _, by_query = task.measure(dssm.Mixture(parts, weights))
    return mean(by_query, ["p@1"])["p@1"]


@pytest.mark.parametrize("task", TASKS)
def test_of_equal_weightings_the_most_even_one(task):
    parts = between(0.41, 0.89)
    assert choose_weights(parts, task, "p@1").weights == {"a": 0.5, "b": 0.5}
    parts = between(0.61, 0.89)
    chosen = choose_weights(parts, task, "p@1", steps=10)
    assert chosen.weights == {"a": 0.7, "b": 0.3}


RNG = np.random.default_rng(3)
NOISE = {
    f"part{number}": with_cosines(
        {q: RNG.uniform([0, -0.3, -0.3, -0.3], 0.4).tolist() for q in QUERIES}
    )
    for number in range(3)
}
"""Each prefers d0, with errors; a sum of them has fewer."""


@pytest.mark.parametrize("task", TASKS)
def test_no_division_between_two_of_three_parts_is_better(task):
    chosen = choose_weights(NOISE, task, "p@1", steps=5)
    assert chosen == choose_weights(NOISE, task, "p@1", steps=5)
    value = measured(task, NOISE, chosen.weights)
    assert value == pytest.approx(chosen.value)
    assert value > max(chosen.alone.values())
    for name, part in NOISE.items():
        alone = measured(task, {name: part}, {name: 1})
        assert chosen.alone[name] == pytest.approx(alone)
    for first in NOISE:
        for second in NOISE:
            total = chosen.weights[first] + chosen.weights[second]
            for step in range(round(5 * total) + 1):
                weights = {
                    **chosen.weights, first: step / 5,
                    second: total - step / 5,
                }  # fmt: skip
                if first != second:
                    assert measured(task, NOISE, weights) <= value


def test_each_text_is_encoded_once():
    seen: list[str] = []
    part = between(0.4, 0.6)["a"]

    def spy(texts: list[str]) -> np.ndarray:
        seen.extend(texts)
        return part.encode_document(texts)

    parts = {"a": DenseSystem(part.encode_query, spy), "bm25": BM25System()}
    choose_weights(parts, TASKS[1], "mrr@10")
    assert sorted(seen) == sorted(DOCUMENTS.values())


def test_words_alone_find_only_documents_with_them():
    """BM25 alone is not measured on candidates that only the encoder found."""
    task = Task(
        {"q": "wood"}, {"x": "glue", "y": "wood"}, {"q": {"x": 1}}, 1, 9
    )

    def encode(texts: list[str]) -> np.ndarray:
        return np.array([[1.0, text == "glue"] for text in texts])

    chosen = choose_weights({"bm25": BM25System(), "dense": encode}, task)
    assert chosen.alone == {"bm25": 0, "dense": 0.5}


class NoCorpus(System):
    def list_scores(self, queries, candidates, documents) -> ListScores:
        return {q: dict.fromkeys(ids, 0.0) for q, ids in candidates.items()}


@pytest.mark.parametrize(("parts", "options", "message"), [
    (between(0, 1), {"measure": "mrr@7"}, "measure 'mrr@7': expected one"),
    (between(0, 1), {"steps": 0},
     "steps is 0: expected a whole number of 1 or more"),
    ({}, {}, "found no part of a mixture"),
    ({"pairs": NoCorpus()}, {}, "part 'pairs' of the mixture only scores"),
    ({"x": 7}, {}, "part 'x' of the mixture: found 7, expected a trained"),
])  # fmt: skip
def test_wrong_input_is_one_line(parts, options, message):
    with pytest.raises(dssm.InputError, match=message) as error:
        choose_weights(parts, TASKS[1], **options)
    assert "\n" not in str(error.value)
