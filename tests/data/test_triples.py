"""Judged lists, of collections or mined from clicks, and their triples."""

from collections import Counter

import numpy as np
import pytest

from keras_lstm_dssm.data import (
    ClickLog,
    Collection,
    Pair,
    Triples,
    write_collection,
    write_pairs,
)
from keras_lstm_dssm.data.triples import clicked_lists, judged_lists
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import Index
from keras_lstm_dssm.evaluation.bm25 import bm25_neighbours

LISTS = [
    ("q1", ["a", "b"], ["c", "d", "e"]), ("q2", [], ["c"]),
    ("q3", ["a"], ["b"]), ("q4", ["a"], []), ("q5", ["c", "c"], ["a"]),
]  # fmt: skip


def test_each_positive_meets_each_negative():
    triples = Triples(LISTS)
    of_q1 = {("q1", p, n): 1 for p in "ab" for n in "cde"}
    others = {("q3", "a", "b"): 1, ("q5", "c", "a"): 2}
    assert Counter(triples) == of_q1 | others
    assert len(triples) == 9 and triples.lists == 3
    assert set(triples.texts) == {"q1", "q3", "q5", *"abcde"}
    assert triples.no_positive == triples.no_negative == 1
    assert triples.describe() == (
        "9 triples of 3 queries; 1 queries have no positive and are left out; "
        "1 queries have no negative and are left out"
    )


def test_a_title_of_both_kinds_is_no_negative():
    """One title under two ids, or a query that was judged twice."""
    triples = Triples(
        [
            ("q1", ["a b", "c"], ["A  B!", "d"]),
            ("Q1", ["d"], ["c", "e"]),
            ("q2", ["a"], ["a"]),
        ]
    )
    assert Counter(triples) == {("Q1", "d", "e"): 1}
    assert triples.both_kinds == 4 and triples.no_negative == 2
    assert triples.describe() == (
        "1 triples of 1 queries; 2 queries have no negative and are left out; 4"
        " negatives are positives of their query and are left out"
    )


def collection(tmp_path, train: dict) -> Collection:
    documents = {d: f"title {d}" for d in "abcde"} | {"A": "Title, A"}
    queries = {"q1": "one", "q2": "two", "q3": "Two!", "q4": "four"}
    qrels = {"train": train, "dev": {"q3": {"A": 1, "b": 0}},
             "test": {"q4": {"b": 1, "e": 1, "c": 0}}}  # fmt: skip
    return write_collection(
        tmp_path / "data", documents, queries, qrels, [Pair("x", "y")]
    )


def test_nothing_of_dev_and_test_is_trained_on(tmp_path):
    train = {"q1": {"a": 1, "b": 2, "c": 0}, "q2": {"c": 1, "d": 0}}
    triples = Triples.from_collection(collection(tmp_path, train))
    assert Counter(triples) == {
        ("one", "title a", "title c"): 1,
        ("one", "title b", "title c"): 1,
    }
    assert triples.held_out_queries == 1  # "two" is "Two!" of dev
    assert triples.shared_answers == 2  # a as "Title, A", and b
    assert triples.describe().endswith(
        "1 queries of dev or test are left out; 2 positives are also in dev or"
        " test"
    )


def test_a_list_file_without_negatives_is_an_error(tmp_path):
    only_positives = collection(tmp_path, {"q1": {"a": 1}})
    with pytest.raises(InputError, match="data, split train: found no query"):
        Triples.from_collection(only_positives)
    with pytest.raises(
        InputError,
        match="batch_size is 0: expected a whole number of 1 or more",
    ):
        Triples(LISTS).batches(0, epochs=1, seed=0)


CLICKS = [
    ("hex bolt", "steel hex bolt"), ("hex bolt", "steel hex bolt"),
    ("Hex  Bolt", "hex bolt zinc"), ("wood glue", "wood glue 8 oz"),
    ("glue", "wood glue 8 oz"), ("bolt cutter", "bolt cutter"),
    ("bolt cutter", "Bolt-Cutter"), ("lamp", "desk light"),
]  # fmt: skip


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
    assert [one[:3] for one in judged_lists(collection)] == [
        ("a query", ["one", "three"], ["two words"]),
        ("r", [], ["three"]),
    ]
    (graded, _) = judged_lists(collection, min_relevant=2)
    assert graded[:3] == ("a query", ["one"], ["two words", "three"])


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
    lists = [list(clicked_lists(log, 3, seed=seed)) for seed in (-1, -1, 2)]
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
    with pytest.raises(
        InputError, match="top is 0: expected a whole number of 1 or more"
    ):
        list(clicked_lists(log, top=0))
