import numpy as np
import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import Hit, Index, index

RNG = np.random.default_rng(0)
VECTORS = RNG.standard_normal((60, 8)).astype(np.float32)
QUERIES = RNG.standard_normal((7, 8)).astype(np.float32)
TITLES = [f"title {i}" for i in range(60)]
BY_TEXT = dict(zip(TITLES, VECTORS, strict=True))
BY_TEXT.update({f"query {i}": vector for i, vector in enumerate(QUERIES)})


def encode(texts: list[str]) -> np.ndarray:
    return np.array([BY_TEXT[text] for text in texts])


def expected_cosines() -> np.ndarray:
    def unit(vectors: np.ndarray) -> np.ndarray:
        vectors = vectors.astype(np.float64)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    return unit(QUERIES) @ unit(VECTORS).T


@pytest.mark.parametrize("block", [1, 130, 2**24])
@pytest.mark.parametrize("k", [1, 10, 60, 100])
def test_nearest_equals_a_full_sort(k, block, monkeypatch):
    monkeypatch.setattr(index, "_BLOCK", block)
    rows, scores = Index.from_vectors(VECTORS).nearest(QUERIES, k)
    best = np.argsort(-expected_cosines(), axis=1)[:, :k]
    np.testing.assert_array_equal(rows, best)
    np.testing.assert_allclose(
        scores, np.take_along_axis(expected_cosines(), best, 1), atol=1e-6
    )


def test_search_encodes_queries_and_titles():
    hits = Index(encode, TITLES).search(["query 3", "title 5"], k=3)
    best = np.argsort(-expected_cosines()[3])[:3]
    assert [hit.id for hit in hits[0]] == [TITLES[i] for i in best]
    assert hits[1][0] == Hit("title 5", pytest.approx(1.0))
    assert hits[0] == Index(encode, TITLES).search(QUERIES[3:4], k=3)[0]


class Encoder:
    """Turns the vectors of `encode` by a multiple of 90 degrees."""

    def __init__(self, turns: int) -> None:
        self.turns = turns

    def encode(self, texts: list[str]) -> np.ndarray:
        return np.roll(encode(texts), self.turns, axis=1)


class Model:
    query_encoder = Encoder(0)
    document_encoder = Encoder(1)


def test_two_towers_encode_queries_and_documents():
    ids = [str(i) for i in range(60)]
    two = Index(Model(), TITLES, ids)
    np.testing.assert_allclose(two.vectors, Index(Encoder(1), TITLES).vectors)
    separate = Index(Encoder(1), TITLES, ids, query_encoder=Encoder(0))
    queries = ["query 0", "query 1"]
    assert two.search(queries, 5) == separate.search(queries, 5)


def test_the_order_of_the_corpus_changes_nothing():
    titles = [f"title {i % 5}" for i in range(40)]  # eight equal vectors each
    ids = [f"d{i}" for i in range(40)]
    forwards = Index(encode, titles, ids)
    backwards = Index(encode, titles[::-1], ids[::-1])
    queries = ["query 0", "query 1"]
    first = forwards.search(queries, 11)
    assert first == backwards.search(queries, 11)
    # Ties are exact, and ordered in another way for another query.
    assert len({hit.score for hit in first[0][:8]}) == 1
    orders = [[hit.id for hit in hits] for hits in forwards.search(queries, 40)]
    same_title = [[i for i in o if int(i[1:]) % 5 == 0] for o in orders]
    assert sorted(same_title[0]) == sorted(same_title[1])
    assert same_title[0] != same_title[1]


def test_without_ids_equal_titles_are_one_document():
    built = Index(encode, ["title 1", "title 2", "title 1"])
    assert built.ids == ["title 1", "title 2"]
    assert len(built) == 2
    assert len(Index(encode, ["title 1", "title 1"], ["a", "b"])) == 2


def test_excluded_rows_are_not_returned():
    built = Index.from_vectors(VECTORS[:5])
    rows, scores = built.nearest(QUERIES[:2], 4, exclude=[[0, 1, 4], []])
    assert set(rows[0, :2]) == {2, 3}
    assert rows[0, 2:].tolist() == [-1, -1]
    assert np.isneginf(scores[0, 2:]).all()
    best = np.argsort(-expected_cosines()[1, :5])[:4]
    np.testing.assert_array_equal(rows[1], best)


def test_zero_vectors_have_cosine_zero():
    built = Index.from_vectors(np.array([[0.0, 0.0], [-1.0, 0.0]]), ["0", "-"])
    hits = built.search(np.array([[2.0, 0.0]]), 2)[0]
    assert hits == [Hit("0", 0.0), Hit("-", -1.0)]


def test_no_query_gives_no_list():
    built = Index(encode, TITLES)
    assert built.search([], 3) == []
    assert built.search(np.zeros((0, 8)), 3) == []


@pytest.mark.parametrize(
    "build, message",
    [
        (lambda: Index(encode, []), "found no document"),
        (lambda: Index(encode, TITLES, ["a"]), "found 1 ids for 60 documents"),
        (lambda: Index(encode, TITLES[:2], "aa"), "ids are not distinct"),
        (lambda: Index(3, TITLES), "encoder is 3: expected an object with"),
        (lambda: Index(lambda texts: np.ones(3), TITLES), r"shape \(3,\)"),
        (
            lambda: Index.from_vectors(np.array([[1.0], [np.nan]]), ["a", "b"]),
            "document 1 of 2, counted from 0: found a vector with a number",
        ),
    ],
)
def test_bad_documents_are_refused(build, message):
    with pytest.raises(InputError, match=message):
        build()


@pytest.mark.parametrize(
    "queries, k, message",
    [
        (["query 1"], 0, "k is 0: expected 1 or more"),
        ("query 1", 3, "queries is the string 'query 1': expected a list"),
        (np.ones((2, 3)), 3, "query vectors of width 3, expected 8"),
        (np.full((2, 8), np.inf), 3, "query 0 of 2, counted from 0: found"),
    ],
)
def test_bad_queries_are_refused(queries, k, message):
    with pytest.raises(InputError, match=message):
        Index(encode, TITLES).search(queries, k)


def test_vectors_alone_cannot_search_texts():
    with pytest.raises(InputError, match="has no query encoder"):
        Index.from_vectors(VECTORS).search(["query 1"], 3)
    built = Index.from_vectors(VECTORS, TITLES, query_encoder=encode)
    assert built.search(["title 9"], 1)[0][0].id == "title 9"
