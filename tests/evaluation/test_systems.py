"""Systems of vectors, of pairs, mixtures, and vectors computed once."""

from types import SimpleNamespace

import numpy as np
import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import (
    DenseSystem,
    Mixture,
    PairSystem,
    index,
)
from keras_lstm_dssm.evaluation.bm25 import BM25System
from keras_lstm_dssm.evaluation.mixture import mixture_weights
from keras_lstm_dssm.evaluation.systems import (
    CachedEncoder,
    system_of,
    with_cached_vectors,
)
from keras_lstm_dssm.papers.baselines import UnigramLMSystem

RNG = np.random.default_rng(0)
WORDS = "hex bolt wood glue drill lamp hose paint desk white".split()
QUERIES = {f"q{i}": " ".join(RNG.choice(WORDS, 2)) for i in range(7)}
DOCUMENTS = {f"d{i}": " ".join(RNG.choice(WORDS, 5)) for i in range(60)}
TEXTS = [*QUERIES.values(), *DOCUMENTS.values()]
VECTORS = [{text: RNG.standard_normal(d) for text in TEXTS} for d in (8, 5)]


def encoder(number: int) -> index.Encode:
    return lambda texts: np.array([VECTORS[number][t] for t in texts])


def cosines(number: int) -> np.ndarray:
    def unit(texts: list[str]) -> np.ndarray:
        rows = encoder(number)(texts)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    return unit([*QUERIES.values()]) @ unit([*DOCUMENTS.values()]).T


def bm25() -> np.ndarray:
    """Returns BM25's scores, divided by the largest one of each query."""
    run = BM25System().retrieve(QUERIES, DOCUMENTS, len(DOCUMENTS))
    scores = np.array(
        [[run[q].get(d, 0.0) for d in DOCUMENTS] for q in QUERIES]
    )
    return scores / scores.max(axis=1, keepdims=True)


PARTS = {"a": encoder(0), "bm25": BM25System(), "b": encoder(1)}
WEIGHTS = {"a": 2.0, "bm25": 1.0, "b": 1.0}
SUM = 0.5 * cosines(0) + 0.25 * bm25() + 0.25 * cosines(1)


def recorded(encode: index.Encode) -> tuple[index.Encode, list[str]]:
    """Returns an encoder, and a list to which it adds what it encodes."""
    seen: list[str] = []

    def encode_and_record(texts: list[str]) -> np.ndarray:
        seen.extend(texts)
        return encode(texts)

    return encode_and_record, seen


SYSTEMS = {
    "dense": (DenseSystem(encoder(0), encoder(0)), cosines(0)),
    "mixture": (Mixture(PARTS, WEIGHTS), SUM),
}
"""System -> its scores `[queries, documents]`."""


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("block", [1, 250, 10**6])
@pytest.mark.parametrize("depth", [1, 10, 100])
def test_retrieve_finds_the_best_scores(name, depth, block, monkeypatch):
    """Cosines of a system of vectors, and the weighted sum of a mixture."""
    monkeypatch.setattr(index, "_BLOCK", block)
    system, scores = SYSTEMS[name]
    run = system.retrieve(QUERIES, DOCUMENTS, depth)
    assert list(run) == list(QUERIES)
    for row, ranked in zip(scores, run.values(), strict=True):
        best = np.sort(row)[::-1][:depth]
        np.testing.assert_allclose(list(ranked.values()), best, atol=1e-6)
        expected = dict(zip(DOCUMENTS, row, strict=True))
        np.testing.assert_allclose(
            [expected[d] for d in ranked], best, atol=1e-6
        )


def test_list_scores_are_the_weighted_sum_in_the_order_of_the_input():
    candidates = {"q3": ["d5", "d50", "d9", "d0"], "q1": ["d8"]}
    lists = Mixture(PARTS, WEIGHTS).list_scores(QUERIES, candidates, DOCUMENTS)
    assert {q: list(scores) for q, scores in lists.items()} == candidates
    for query_id, scores in lists.items():
        expected = dict(zip(DOCUMENTS, SUM[int(query_id[1:])], strict=True))
        np.testing.assert_allclose(
            list(scores.values()), [expected[d] for d in scores], atol=1e-6
        )


@pytest.mark.parametrize("name", SYSTEMS)
def test_rerank_orders_as_retrieve_does_also_where_scores_are_equal(name):
    documents = {**DOCUMENTS, **{f"{d}-again": DOCUMENTS[d] for d in DOCUMENTS}}
    system, _ = SYSTEMS[name]
    found = system.retrieve(QUERIES, documents, len(documents))
    backwards = dict(reversed(documents.items()))
    assert found == system.retrieve(QUERIES, backwards, len(documents))
    candidates = {"q3": ["d5", "d9-again", "d9", "d0"], "q1": ["d8"]}
    for ids in (candidates, dict.fromkeys(QUERIES, [*documents])):
        run = system.rerank(QUERIES, ids, documents)
        assert list(run) == list(ids)
        for query_id, ranked in run.items():
            assert [*ranked] == [d for d in found[query_id] if d in ranked]
            assert ranked.keys() == {*ids[query_id]}
            if len(ids[query_id]) == len(documents):
                assert ranked == found[query_id]


def test_every_text_is_encoded_once_and_only_where_needed():
    spy, seen = recorded(encoder(0))
    system = DenseSystem(encoder(0), spy)
    documents = DOCUMENTS | {"d1-again": DOCUMENTS["d1"]}
    system.rerank(QUERIES, {"q0": ["d1", "d2"], "q1": ["d1-again"]}, documents)
    assert sorted(seen) == sorted([DOCUMENTS["d1"], DOCUMENTS["d2"]])
    seen.clear()
    system.retrieve(QUERIES, documents, 5)
    assert len(seen) == len(set(seen)) == len(set(DOCUMENTS.values()))


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
    """Scores a pair of texts by minus the product of their lengths."""
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


class Encoder:
    def __init__(self) -> None:
        self.seen: list[str] = []

    def encode(self, texts: list[str], batch_size: int) -> np.ndarray:
        self.seen.extend(texts)
        return sizes(texts)


@pytest.mark.parametrize("tied", [True, False])
def test_the_cache_of_tied_towers_encodes_a_text_once(tied):
    query = Encoder()
    document = query if tied else Encoder()
    model = SimpleNamespace(query_encoder=query, document_encoder=document)
    system = with_cached_vectors(system_of(model, batch_size=8))
    texts = {"1": "hex bolt", "2": "glue"}
    run = system.retrieve({"q": "glue"}, texts, 2)
    assert list(run["q"]) == ["2", "1"]
    encoded = sorted(query.seen + (document.seen if not tied else []))
    assert encoded == ["glue"] * (1 if tied else 2) + ["hex bolt"]


def test_words_alone_leave_out_documents_without_them():
    alone = BM25System().retrieve(QUERIES, DOCUMENTS, 100)
    run = Mixture({"bm25": BM25System()}).retrieve(QUERIES, DOCUMENTS, 100)
    assert {q: list(of) for q, of in run.items()} == {
        q: list(of) for q, of in alone.items()
    }
    assert all(max(of.values()) == 1 for of in run.values())
    assert Mixture({"bm25": BM25System()}).retrieve(
        {"q": "unknown"}, DOCUMENTS, 5
    ) == {"q": {}}


def document_lengths(queries: list[str], documents: list[str]) -> np.ndarray:
    return np.array([len(document) for document in documents], np.float32)


def test_log_probabilities_and_scores_of_pairs_are_mapped_to_0_to_1():
    candidates = {"q0": ["d0", "d1", "d2", "d3"], "q1": ["d7"]}
    model = UnigramLMSystem()
    whole = model.list_scores(QUERIES, {"q0": list(DOCUMENTS)}, DOCUMENTS)["q0"]
    low, high = min(whole.values()), max(whole.values())
    pairs = [len(DOCUMENTS[d]) for d in candidates["q0"]]
    system = Mixture(
        {"words": model, "pairs": PairSystem(document_lengths)}, [1, 3]
    )
    scores = system.list_scores(QUERIES, candidates, DOCUMENTS)
    expected = [
        0.25 * (whole[d] - low) / (high - low)
        + 0.75 * (length - min(pairs)) / (max(pairs) - min(pairs))
        for d, length in zip(candidates["q0"], pairs, strict=True)
    ]
    np.testing.assert_allclose(list(scores["q0"].values()), expected, atol=1e-6)
    # One candidate: the pair scorer's highest score is its lowest.
    assert 0 <= scores["q1"]["d7"] <= 0.25
    with pytest.raises(InputError, match="part 'pairs' of the mixture only"):
        system.retrieve(QUERIES, DOCUMENTS, 5)


def test_a_part_of_weight_0_is_not_computed():
    def never(texts: list[str]) -> np.ndarray:
        raise AssertionError

    parts = {"never": never, "a": encoder(0)}
    run = Mixture(parts, {"a": 3, "never": 0}).retrieve(QUERIES, DOCUMENTS, 9)
    alone = DenseSystem(encoder(0), encoder(0))
    for query_id, expected in alone.retrieve(QUERIES, DOCUMENTS, 9).items():
        assert list(run[query_id]) == list(expected)
        np.testing.assert_allclose(
            list(run[query_id].values()), list(expected.values()), atol=1e-6
        )


@pytest.mark.parametrize(("weights", "message"), [
    ({"a": 1.0, "b": -0.5}, "the weight of 'b' in the mixture is -0.5"),
    ([1.0, float("nan")], "the weight of 'b' in the mixture is nan"),
    ([0, 0], "all weights of the mixture are 0: expected one or more"),
    ([1], "found 1 weights of a mixture, expected 2, for a, b"),
    ({"a": 1, "c": 1}, "found weights of a, c, expected weights of .* a, b"),
])  # fmt: skip
def test_wrong_weights(weights, message):
    with pytest.raises(InputError, match=message) as error:
        Mixture({"a": encoder(0), "b": encoder(1)}, weights)
    assert "\n" not in str(error.value)


def test_other_wrong_input():
    assert mixture_weights(["a", "b"]) == {"a": 0.5, "b": 0.5}
    for use, message in (
        (lambda: Mixture({}), "found no part of a mixture"),
        (lambda: Mixture({"x": 7}), "part 'x' of the mixture: found 7"),
    ):
        with pytest.raises(InputError, match=message):
            use()
