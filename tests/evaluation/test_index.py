"""The nearest documents: of all of them, or of the nearest clusters."""

from typing import Any

import numpy as np
import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import Hit, Index, index
from keras_lstm_dssm.evaluation.index import IVFIndex, unit_vectors

RNG = np.random.default_rng(0)
VECTORS = RNG.standard_normal((60, 8)).astype(np.float32)
QUERIES = RNG.standard_normal((7, 8)).astype(np.float32)
TITLES = [f"title {i}" for i in range(60)]
BY_TEXT = dict(zip(TITLES, VECTORS, strict=True))
BY_TEXT.update({f"query {i}": vector for i, vector in enumerate(QUERIES)})


def encode(texts: list[str]) -> np.ndarray:
    return np.array([BY_TEXT[text] for text in texts])


def search(queries: Any, k: int = 3) -> list[list[Hit]]:
    return Index(encode, TITLES).search(queries, k)


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
    hits = search(["query 3", "title 5"])
    best = np.argsort(-expected_cosines()[3])[:3]
    assert [hit.id for hit in hits[0]] == [TITLES[i] for i in best]
    assert hits[1][0] == Hit("title 5", pytest.approx(1.0))
    assert hits[0] == search(QUERIES[3:4])[0]


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
    assert search([]) == search(np.zeros((0, 8))) == []


@pytest.mark.parametrize("build, message", [
    (lambda: Index(encode, []), "found no document"),
    (lambda: Index(encode, TITLES, ["a"]), "found 1 ids for 60 documents"),
    (lambda: Index(encode, TITLES[:2], ["a", "a"]), "ids are not distinct"),
    (lambda: Index(encode, TITLES[:2], [1, 2]), r"1 \(int\): .* such as '1'"),
    (lambda: Index(3, TITLES), "encoder is 3: expected an object with"),
    (lambda: Index(lambda texts: np.ones(3), TITLES), r"shape \(3,\)"),
    (lambda: Index.from_vectors(np.array([[1.0], [np.nan]]), ["a", "b"]),
     "document 1 of 2, counted from 0: found a vector with a number"),
    (lambda: search(["query 1"], 0),
     "k is 0: expected a whole number of 1 or more"),
    (lambda: search("query 1"), "queries is the string 'query 1': expec"),
    (lambda: search(np.ones((2, 3))), "query vectors of width 3, expect"),
    (lambda: search(np.full((2, 8), np.inf)),
     "query 0 of 2, counted from 0: found"),
    (lambda: Index.from_vectors(VECTORS).search(["query 1"], 3),
     "has no query encoder"),
])  # fmt: skip
def test_wrong_input(build, message):
    with pytest.raises(InputError, match=message):
        build()


def test_vectors_may_have_an_encoder_of_queries():
    built = Index.from_vectors(VECTORS, TITLES, query_encoder=encode)
    assert built.search(["title 9"], 1)[0][0].id == "title 9"


MANY, ASKED, TOP = 3_000, 300, 10


@pytest.fixture(scope="module")
def vectors() -> tuple[np.ndarray, np.ndarray]:
    """Draws vectors of titles around 40 topics, and of queries near titles."""
    random = np.random.default_rng(0)
    topics = unit_vectors(random.normal(size=(40, 32)))
    titles = topics[random.integers(40, size=MANY)]
    titles = unit_vectors(titles + 0.15 * random.normal(size=titles.shape))
    queries = titles[random.integers(MANY, size=ASKED)]
    noise = 0.05 * random.normal(size=queries.shape)
    return titles, unit_vectors(queries + noise)


@pytest.mark.parametrize("at_once", [64, 1_000])
def test_recall_and_excluded_titles(at_once, vectors, monkeypatch):
    monkeypatch.setattr(index, "_RESULTS_AT_ONCE", at_once * TOP)
    monkeypatch.setattr(index, "_SCORES_AT_ONCE", at_once)
    titles, queries = vectors
    cosines = queries @ titles.T
    # The nearest title is always left out, and up to four others.
    random = np.random.default_rng(1)
    exclude = [
        {int(nearest), *random.choice(MANY, count).tolist()}
        for nearest, count in zip(
            cosines.argmax(axis=1), random.integers(5, size=ASKED), strict=True,
        )
    ]  # fmt: skip
    for row, rows in enumerate(exclude):
        cosines[row, list(rows)] = -np.inf
    expected = np.argsort(-cosines, axis=1)[:, :TOP]
    search = IVFIndex(titles)
    recalls = []
    for clusters in (1, 4, 54):  # 54 are all
        found = search.nearest(queries, TOP, list(map(list, exclude)), clusters)
        assert not any(
            set(rows) & left_out
            for rows, left_out in zip(found.tolist(), exclude, strict=True)
        )
        hits = [
            len(np.intersect1d(*rows))
            for rows in zip(found, expected, strict=True)
        ]
        recalls.append(np.mean(hits) / TOP)
    assert 0.4 < recalls[0] < recalls[1] < 1
    np.testing.assert_array_equal(found, expected)


def test_a_popular_cluster_is_read_in_blocks(monkeypatch):
    """So memory is bounded, however many titles and queries there are."""
    monkeypatch.setattr(index, "_SCORES_AT_ONCE", 1_000)
    sizes = []
    largest = index._largest

    def measured(scores: np.ndarray, count: int) -> np.ndarray:
        sizes.append(scores.size)
        return largest(scores, count)

    monkeypatch.setattr(index, "_largest", measured)
    random = np.random.default_rng(0)
    near = np.array([1, 0, 0, 0]) + 0.1 * random.normal(size=(400, 4))
    titles = unit_vectors(np.concatenate([np.eye(4)[1:], near]))
    search = IVFIndex(titles)
    sizes.clear()
    found = search.nearest(titles, 1, [[row] for row in range(403)], 20)
    assert max(sizes) <= 20 * 403  # the candidates of all clusters, at last
    assert sorted(sizes)[-2] <= 1_000
    cosines = titles @ titles.T
    np.fill_diagonal(cosines, -np.inf)
    np.testing.assert_array_equal(found[:, 0], cosines.argmax(axis=1))


@pytest.mark.parametrize("width", [1, 7, 100, 333, 1_000])
@pytest.mark.parametrize("count", [1, 2, 10])
def test_the_largest_scores_of_each_row(width, count):
    """`_largest` finds the scores of a full sort, also with ties and -inf."""
    random = np.random.default_rng(width)
    scores = random.integers(40, size=(50, width)).astype(np.float32)
    scores[random.random(scores.shape) < 0.5] = -np.inf
    scores[0] = -np.inf
    columns = index._largest(scores, count)
    assert columns.shape == (50, min(count, width))
    assert all(len(set(row)) == len(row) for row in columns.tolist())
    np.testing.assert_array_equal(
        np.sort(np.take_along_axis(scores, columns, axis=1)),
        np.sort(scores)[:, -count:],
    )
    assert index._largest(scores[:0], count).shape[0] == 0


def test_few_titles_and_wrong_arguments():
    titles = np.eye(3, dtype=np.float32)
    search = IVFIndex(titles)
    found = search.nearest(titles[:1] + 0.1 * titles[1], 5, [[0]], 1)
    assert found.tolist() == [[1, 2, -1, -1, -1]]
    assert search.nearest(titles[:0], 5, [], 1).shape == (0, 5)
    with pytest.raises(InputError, match="found no title: expected one or"):
        IVFIndex(titles[:0])
    for k, clusters in ((0, 1), (1, -1)):
        with pytest.raises(
            InputError, match="is (0|-1): expected a whole number of 1"
        ):
            search.nearest(titles, k, [[]] * 3, clusters)


def test_equal_titles_are_found():
    titles = np.repeat(np.eye(3, dtype=np.float32), 5, axis=0)
    search = IVFIndex(titles)
    found = search.nearest(titles[[0, 12]], 4, [[1], []], 1)
    assert sorted(found[0].tolist()) == [0, 2, 3, 4]
    assert set(found[1].tolist()) < {10, 11, 12, 13, 14}


@pytest.mark.parametrize("options", [
    {"titles": "hex bolt"}, {"titles": None},
    {"titles": ["hex bolt"], "ids": "7"},
])  # fmt: skip
def test_one_text_is_no_list_of_titles(options):
    with pytest.raises(InputError, match="expected a list of texts"):
        Index(lambda texts: np.ones((len(texts), 2)), **options)


@pytest.mark.parametrize("progress", [True, False])
def test_progress_of_a_search(progress, capsys):
    """A bar on standard error, for mining, and the same rows."""
    vectors = np.eye(3)
    found, _ = Index.from_vectors(vectors).nearest(
        vectors, 1, progress=progress
    )
    assert found.tolist() == [[0], [1], [2]]
    clustered = IVFIndex(vectors, 0).nearest(
        vectors.astype(np.float32), 1, [[], [], []], 3, progress
    )
    assert clustered.tolist() == [[0], [1], [2]]
    shown = capsys.readouterr().err
    assert ("search:" in shown, "0/3" in shown, "0/1" in shown) == 3 * (
        progress,
    )
