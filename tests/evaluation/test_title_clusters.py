"""`IVFIndex` finds most of the nearest titles, or all in all clusters."""

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data import Pair
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import index
from keras_lstm_dssm.evaluation.index import IVFIndex, unit_vectors
from keras_lstm_dssm.training import mine_negatives

TITLES, QUERIES, TOP = 3_000, 300, 10


@pytest.fixture(scope="module")
def vectors() -> tuple[np.ndarray, np.ndarray]:
    """Draws vectors of titles around 40 topics, and of queries near titles."""
    random = np.random.default_rng(0)
    topics = unit_vectors(random.normal(size=(40, 32)))
    titles = topics[random.integers(40, size=TITLES)]
    titles = unit_vectors(titles + 0.15 * random.normal(size=titles.shape))
    queries = titles[random.integers(TITLES, size=QUERIES)]
    noise = 0.05 * random.normal(size=queries.shape)
    return titles, unit_vectors(queries + noise)


@pytest.mark.parametrize("at_once", [64, 1_000])
def test_recall_and_excluded_titles(at_once, vectors, monkeypatch):
    monkeypatch.setattr(index, "_FOUND_AT_ONCE", at_once * TOP)
    monkeypatch.setattr(index, "_SCORES_AT_ONCE", at_once)
    titles, queries = vectors
    cosines = queries @ titles.T
    # The nearest title is always left out, and up to four others.
    random = np.random.default_rng(1)
    exclude = [
        {int(nearest), *random.choice(TITLES, count).tolist()}
        for nearest, count in zip(
            cosines.argmax(axis=1),
            random.integers(5, size=QUERIES),
            strict=True,
        )
    ]
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
    """A cluster that many queries read is compared with some at a time.

    So memory is bounded, however many titles and queries there are.
    """
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


def test_fewer_titles_than_asked_for():
    titles = np.eye(3, dtype=np.float32)
    search = IVFIndex(titles)
    found = search.nearest(titles[:1] + 0.1 * titles[1], 5, [[0]], 1)
    assert found.tolist() == [[1, 2, -1, -1, -1]]
    assert search.nearest(titles[:0], 5, [], 1).shape == (0, 5)


def test_wrong_arguments():
    titles = np.eye(3, dtype=np.float32)
    with pytest.raises(InputError, match="found no title: expected one or"):
        IVFIndex(titles[:0])
    for k, clusters in ((0, 1), (1, -1)):
        with pytest.raises(InputError, match="is (0|-1): expected 1 or more"):
            IVFIndex(titles).nearest(titles, k, [[]] * 3, clusters)


def test_equal_titles_are_found():
    titles = np.repeat(np.eye(3, dtype=np.float32), 5, axis=0)
    search = IVFIndex(titles)
    found = search.nearest(titles[[0, 12]], 4, [[1], []], 1)
    assert sorted(found[0].tolist()) == [0, 2, 3, 4]
    assert set(found[1].tolist()) < {10, 11, 12, 13, 14}


def test_mining_with_clusters_finds_what_an_exact_search_finds():
    clicks = [
        Pair("garden hose", "rubber garden hose"),
        Pair("garden hose", "hose, 50 ft"),
        Pair("desk lamp", "small desk lamp"),
        Pair("rope", "nylon rope"),
    ]
    model = dssm.Recipe("DSSMEncoder", {"units": [16]}).build()
    exact = mine_negatives(model, clicks, top=2)
    # Both clusters are read, and no sample is drawn.
    assert exact == mine_negatives(
        model, clicks, top=2, max_comparisons=1, clusters=2
    )
