"""choose_weights and fit_weights: on lists whose best weights are known."""

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.evaluation import DenseSystem, Task, choose_weights
from keras_lstm_dssm.evaluation.bm25 import BM25System
from keras_lstm_dssm.evaluation.runs import ListScores, System
from keras_lstm_dssm.evaluation.task import LIST_MEASURES
from keras_lstm_dssm.evaluation.weight_fit import (
    L2,
    JudgedList,
    calibrate,
    fit_weights,
    reliability,
)

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


def two_parts() -> dict[str, DenseSystem]:
    """Makes two parts, each wrong in half of the queries, right together."""
    right, wrong = [0.5, 0.2, 0.2, 0.1], [0.3, 0.4, 0.1, 0.1]
    a = {q: right if row % 2 else wrong for row, q in enumerate(QUERIES)}
    b = {q: wrong if row % 2 else right for row, q in enumerate(QUERIES)}
    return {"a": with_cosines(a), "b": with_cosines(b)}


QRELS = {q: {"d0": 1, "d1": 0, "d2": 0} for q in QUERIES}
TASKS = [
    Task(QUERIES, DOCUMENTS, QRELS),
    Task(QUERIES, DOCUMENTS, QRELS, depth=4),
    Task(QUERIES, DOCUMENTS, QRELS, measures=LIST_MEASURES, ties="expected"),
]


@pytest.mark.parametrize("task", TASKS)
def test_parts_that_are_right_together(task):
    parts = two_parts()
    chosen = choose_weights(parts, task, "p@1")
    assert chosen == choose_weights(parts, task, "p@1")
    assert chosen.weights == pytest.approx({"a": 0.5, "b": 0.5}, abs=1e-3)
    assert chosen.value == 1
    assert chosen.alone == {"a": 0.5, "b": 0.5}


@pytest.mark.parametrize("task", TASKS)
def test_a_part_that_misleads_has_no_weight(task):
    parts = two_parts()
    wrong = dict.fromkeys(QUERIES, [0.0, 0.3, 0.1, 0.1])
    parts["wrong"] = with_cosines(wrong)
    chosen = choose_weights(parts, task, "p@1")
    assert chosen.weights["wrong"] == 0
    assert sum(chosen.weights.values()) == pytest.approx(1)


RNG = np.random.default_rng(3)


def test_the_fitted_weights_are_a_minimum_of_the_loss():
    """The loss, written anew, is larger at all other weights nearby."""
    lists = [
        JudgedList(RNG.normal(size=(5, 3)), RNG.permutation(5) < 1 + row % 2)
        for row in range(30)
    ]

    def loss(weights: np.ndarray) -> float:
        total = 0.0
        for parts, relevant in lists:
            scores = np.exp(parts @ weights)
            total -= np.log(scores / scores.sum())[relevant].mean()
        return total / len(lists) + L2 * (weights**2).sum()

    fitted = fit_weights(lists)
    for _ in range(50):
        other = np.maximum(fitted + RNG.normal(0, 0.01, 3), 0)
        assert loss(other) >= loss(fitted) - 1e-9
    # Lists that say nothing change nothing.
    parts = RNG.normal(size=(2, 3))
    none = JudgedList(parts, np.zeros(2, bool))
    every = JudgedList(parts, np.ones(2, bool))
    more = fit_weights([none, *lists, every])
    np.testing.assert_array_equal(more, fitted)
    with pytest.raises(dssm.InputError, match="found no query with a relevant"):
        fit_weights([none, every])


def test_probabilities_agree_with_what_was_drawn():
    scores = RNG.normal(size=20_000)
    probability = 1 / (1 + np.exp(1 - 2 * scores))
    relevant = RNG.random(len(scores)) < probability
    assert calibrate(scores, relevant) == pytest.approx((2, -1), abs=0.1)
    found = reliability(probability, relevant)
    assert found.error < 0.02
    assert sum(size for *_, size in found.bins) == len(scores)
    assert reliability(np.array([0.9, 1.0]), np.zeros(2, bool)) == (
        pytest.approx(0.95), [(pytest.approx(0.95), 0, 2)],
    )  # fmt: skip


def test_each_text_is_encoded_once():
    seen: list[str] = []
    part = two_parts()["a"]

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
    (two_parts(), {"measure": "mrr@7"}, "measure 'mrr@7': expected one"),
    ({}, {}, "found no part of a mixture"),
    ({"pairs": NoCorpus()}, {}, "part 'pairs' of the mixture only scores"),
    ({"x": 7}, {}, "part 'x' of the mixture: found 7, expected a trained"),
])  # fmt: skip
def test_wrong_input_is_one_line(parts, options, message):
    with pytest.raises(dssm.InputError, match=message) as error:
        choose_weights(parts, TASKS[1], **options)
    assert "\n" not in str(error.value)
