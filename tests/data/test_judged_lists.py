"""Judged lists of collections, and lists of clicks with mined negatives."""

import numpy as np
import pytest

from keras_lstm_dssm.data import ClickLog, Pair, write_collection, write_pairs
from keras_lstm_dssm.data.triples import clicked_lists, judged_lists
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import Index
from keras_lstm_dssm.evaluation.bm25 import bm25_neighbours

CLICKS = [
    ("hex bolt", "steel hex bolt"),
    ("hex bolt", "steel hex bolt"),
    ("Hex  Bolt", "hex bolt zinc"),
    ("wood glue", "wood glue 8 oz"),
    ("glue", "wood glue 8 oz"),
    ("bolt cutter", "bolt cutter"),
    ("bolt cutter", "Bolt-Cutter"),
    ("lamp", "desk light"),
]


@pytest.fixture
def log(tmp_path) -> ClickLog:
    return write_pairs(CLICKS, tmp_path / "clicks.tsv")


def test_neighbours_are_the_best_by_bm25():
    titles = ["a b", "c", "a c", "d", "a b"]
    found = [rows.tolist() for rows in bm25_neighbours(["a b", "x"], titles, 3)]
    assert found == [[0, 4, 2], []]
    (first,) = bm25_neighbours(["a b"], titles, 1)
    assert first.tolist() == [0]  # the tie is cut, too


def test_judged_lists_by_grade(tmp_path):
    documents = {"d1": "one", "d2": "two\twords", "d3": "three"}
    qrels = {"train": {"q": {"d2": 0, "d1": 2, "d3": 1}, "r": {"d3": -1}}}
    collection = write_collection(
        tmp_path / "data", documents, {"q": "a  query", "r": "r"}, qrels,
        [Pair("a", "b")],
    )  # fmt: skip
    assert list(judged_lists(collection)) == [
        ("a query", ["one", "three"], ["two words"]),
        ("r", [], ["three"]),
    ]
    (graded, _) = judged_lists(collection, min_relevant=2)
    assert graded == ("a query", ["one"], ["two words", "three"])


def test_clicked_lists_are_mined_by_bm25(log):
    lists = {one.query: one for one in clicked_lists(log, top=2)}
    assert list(lists) == [
        "hex bolt", "wood glue", "glue", "bolt cutter", "lamp"
    ]  # fmt: skip
    bolt = lists["hex bolt"]
    # Clicks count as often as they were made; spellings are one query.
    assert bolt.positives == ["steel hex bolt"] * 2 + ["hex bolt zinc"]
    assert bolt.negatives[0] == "bolt cutter"  # the other title with a word
    assert "Bolt-Cutter" not in bolt.negatives  # has the same words
    assert set(lists["bolt cutter"].negatives) == {
        "hex bolt zinc", "steel hex bolt"
    }  # fmt: skip
    titles = {title for _, title in CLICKS}
    for one in lists.values():
        assert len(one.negatives) == 2
        assert not set(one.negatives) & set(one.positives)
        assert set(one.negatives) <= titles


def test_titles_at_random_depend_on_the_seed_alone(tmp_path):
    """No word of a query is in any title."""
    pairs = [(f"query{n}", f"title{n}") for n in range(40)]
    log = write_pairs(pairs, tmp_path / "clicks.tsv")
    lists = [list(clicked_lists(log, 3, seed=seed)) for seed in (1, 1, 2)]
    assert lists[0] == lists[1] != lists[2]
    assert all(len(set(one.negatives)) == 3 for one in lists[0])
    drawn = {title for one in lists[0] for title in one.negatives}
    assert len(drawn) > 30


def test_an_index_may_find_the_negatives(log):
    """A tower for which glue is nearest to everything."""

    def encode(texts: list[str]) -> np.ndarray:
        return np.array([[1.0, 0.0 if "glue" in t else 1.0] for t in texts])

    index = Index(encode, list(log.documents()), query_encoder=lambda texts: (
        np.tile([1.0, 0.0], (len(texts), 1))
    ))  # fmt: skip
    lists = {one.query: one for one in clicked_lists(log, 1, index)}
    for query in ("hex bolt", "bolt cutter", "lamp"):
        assert lists[query].negatives == ["wood glue 8 oz"]
    assert "wood glue 8 oz" not in lists["glue"].negatives


def test_top_is_checked(log):
    with pytest.raises(InputError, match="top is 0: expected 1 or more"):
        list(clicked_lists(log, top=0))
