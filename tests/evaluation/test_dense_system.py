import numpy as np
import pytest

from keras_lstm_dssm.evaluation import DenseSystem, index

RNG = np.random.default_rng(0)
QUERIES = {f"q{i}": f"query {i}" for i in range(7)}
DOCUMENTS = {f"d{i}": f"title {i % 90}" for i in range(100)}
VECTORS = {
    text: RNG.standard_normal(8)
    for text in [*QUERIES.values(), *DOCUMENTS.values()]
}


def encode(texts: list[str]) -> np.ndarray:
    return np.array([VECTORS[text] for text in texts], np.float32)


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
    seen: list[str] = []

    def spy(texts: list[str]) -> np.ndarray:
        seen.extend(texts)
        return encode(texts)

    system = DenseSystem(encode, spy)
    system.rerank(QUERIES, {"q0": ["d1", "d2"], "q1": ["d91"]}, DOCUMENTS)
    assert sorted(seen) == ["title 1", "title 2"]
    seen.clear()
    system.retrieve(QUERIES, DOCUMENTS, 5)
    assert len(seen) == len(set(seen)) == 90


@pytest.mark.parametrize("size", [3, 17, 100])
def test_equal_vectors_tie_wherever_they_stand(size):
    constant = RNG.standard_normal(96).astype(np.float32)
    collapsed = DenseSystem(
        encode_constant(constant), encode_constant(constant)
    )
    documents = {f"d{i}": f"title {i}" for i in range(size)}
    backwards = dict(reversed(documents.items()))
    ranked = collapsed.retrieve({"q": "x"}, documents, 10)["q"]
    again = collapsed.retrieve({"q": "x"}, backwards, 10)["q"]
    rerank = collapsed.rerank({"q": "x"}, {"q": list(documents)}, documents)
    assert list(ranked.items()) == list(again.items())
    assert list(ranked.items()) == list(rerank["q"].items())[:10]
    assert max(ranked.values()) - min(ranked.values()) < 2e-6


def encode_constant(vector: np.ndarray) -> index.Encode:
    return lambda texts: np.tile(vector, (len(texts), 1))
