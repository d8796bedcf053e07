"""Systems of vectors, of pairs, and with vectors that are computed once."""

import numpy as np
import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import (
    CachedEncoder,
    DenseSystem,
    PairSystem,
    index,
)
from keras_lstm_dssm.evaluation.bm25 import BM25System
from keras_lstm_dssm.evaluation.systems import with_cached_vectors

RNG = np.random.default_rng(0)
QUERIES = {f"q{i}": f"query {i}" for i in range(7)}
DOCUMENTS = {f"d{i}": f"title {i % 90}" for i in range(100)}
VECTORS = {
    text: RNG.standard_normal(8)
    for text in [*QUERIES.values(), *DOCUMENTS.values()]
}


def encode(texts: list[str]) -> np.ndarray:
    return np.array([VECTORS[text] for text in texts], np.float32)


def recorded(encode: index.Encode) -> tuple[index.Encode, list[str]]:
    """Returns an encoder, and a list to which it adds what it encodes."""
    seen: list[str] = []

    def encode_and_record(texts: list[str]) -> np.ndarray:
        seen.extend(texts)
        return encode(texts)

    return encode_and_record, seen


def cosines() -> np.ndarray:
    def unit(texts: list[str]) -> np.ndarray:
        rows = np.array([VECTORS[text] for text in texts])
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    return unit(list(QUERIES.values())) @ unit(list(DOCUMENTS.values())).T


@pytest.mark.parametrize("block", [1, 250, 10**6])
@pytest.mark.parametrize("depth", [1, 10, 100, 1000])
def test_retrieve_finds_the_best_cosines(depth, block, monkeypatch):
    monkeypatch.setattr(index, "_BLOCK", block)
    run = DenseSystem(encode, encode).retrieve(QUERIES, DOCUMENTS, depth)
    assert list(run) == list(QUERIES)
    for expected, ranked in zip(cosines(), run.values(), strict=True):
        best = np.sort(expected)[::-1][:depth]
        np.testing.assert_allclose(list(ranked.values()), best, atol=1e-6)
        scores = dict(zip(DOCUMENTS, expected, strict=True))
        np.testing.assert_allclose([scores[d] for d in ranked], best, atol=1e-6)


def test_rerank_orders_the_candidates_as_retrieve_does():
    system = DenseSystem(encode, encode)
    found = system.retrieve(QUERIES, DOCUMENTS, len(DOCUMENTS))
    candidates = {"q3": ["d5", "d99", "d9", "d0"], "q1": ["d8"]}
    run = system.rerank(QUERIES, candidates, DOCUMENTS)
    assert list(run) == ["q3", "q1"]
    for query_id, ranked in run.items():
        assert set(ranked) == set(candidates[query_id])
        assert list(ranked) == [d for d in found[query_id] if d in ranked]


def test_every_text_is_encoded_once_and_only_where_needed():
    spy, seen = recorded(encode)
    system = DenseSystem(encode, spy)
    system.rerank(QUERIES, {"q0": ["d1", "d2"], "q1": ["d91"]}, DOCUMENTS)
    assert sorted(seen) == ["title 1", "title 2"]
    seen.clear()
    system.retrieve(QUERIES, DOCUMENTS, 5)
    assert len(seen) == len(set(seen)) == 90


@pytest.mark.parametrize("size", [3, 17, 100])
def test_equal_vectors_tie_wherever_they_stand(size):
    constant = RNG.standard_normal(96).astype(np.float32)

    def collapse(texts: list[str]) -> np.ndarray:
        return np.tile(constant, (len(texts), 1))

    collapsed = DenseSystem(collapse, collapse)
    documents = {f"d{i}": f"title {i}" for i in range(size)}
    backwards = dict(reversed(documents.items()))
    ranked = collapsed.retrieve({"q": "x"}, documents, 10)["q"]
    again = collapsed.retrieve({"q": "x"}, backwards, 10)["q"]
    rerank = collapsed.rerank({"q": "x"}, {"q": list(documents)}, documents)
    assert list(ranked.items()) == list(again.items())
    assert list(ranked.items()) == list(rerank["q"].items())[:10]
    assert max(ranked.values()) - min(ranked.values()) < 2e-6


PAIRS = {"q1": "hex bolt", "q2": "glue", "unused": "lamp"}
TITLES = {"a": "steel bolt", "b": "wood glue 8 oz", "c": "hex nut bolt"}


def lengths(queries: list[str], documents: list[str]) -> np.ndarray:
    """Scores pairs by the product of their lengths, the shortest highest."""
    sizes = [-len(q) * len(d) for q, d in zip(queries, documents, strict=True)]
    return np.array(sizes, np.float32)


def test_pairs_are_ordered_by_their_scores():
    candidates = {"q2": ["b", "a"], "q1": ["c", "b", "a"]}
    system = PairSystem(lengths)
    assert system.list_scores(PAIRS, candidates, TITLES) == {
        "q2": {"b": -56.0, "a": -40.0},
        "q1": {"c": -96.0, "b": -112.0, "a": -80.0},
    }
    run = system.rerank(PAIRS, candidates, TITLES)
    found = {query: list(ranked) for query, ranked in run.items()}
    assert found == {"q2": ["a", "b"], "q1": ["a", "c", "b"]}


def test_pairs_are_those_that_the_first_stage_finds():
    first, system = BM25System(), PairSystem(lengths, first_stage=BM25System())
    for stage, order in ((first, ["c", "a"]), (system, ["a", "c"])):
        run = stage.retrieve({"q1": PAIRS["q1"]}, TITLES, 10)
        assert list(run["q1"]) == order
    with pytest.raises(InputError, match="give PairSystem a first_stage"):
        PairSystem(lengths).retrieve(PAIRS, TITLES, 10)


def sizes(texts: list[str]) -> np.ndarray:
    return np.array([[len(text), 1.0] for text in texts]).reshape(-1, 2)


def test_cached_texts_are_encoded_once_and_in_order():
    spy, seen = recorded(sizes)
    cached = CachedEncoder(spy)
    for texts, new in (
        (["abc", "a", "abc"], ["abc", "a"]), (["ab", "a"], ["ab"]), ([], []),
    ):  # fmt: skip
        np.testing.assert_array_equal(cached(texts), sizes(texts))
        assert seen == new
        seen.clear()
    with pytest.raises(InputError, match="found 3 vectors for 1 texts"):
        CachedEncoder(lambda texts: np.ones((3, 2)))(["a"])


def test_a_system_caches_once_and_both_sides_together():
    spy, seen = recorded(sizes)
    system = with_cached_vectors(DenseSystem(spy, spy))
    assert with_cached_vectors(system) is system
    system.encode_query(["a"])
    system.encode_document(["a", "b"])
    assert seen == ["a", "b"]
    apart = with_cached_vectors(DenseSystem(sizes, lambda texts: -sizes(texts)))
    np.testing.assert_array_equal(apart.encode_query(["a"]), [[1, 1]])
    np.testing.assert_array_equal(apart.encode_document(["a"]), [[-1, -1]])
