"""Triples: which there are, and the order in which they are streamed."""

import pathlib
from collections import Counter

import numpy as np
import pytest

from keras_lstm_dssm.data import (
    Collection,
    Pair,
    Triples,
    write_collection,
    write_pairs,
)
from keras_lstm_dssm.errors import InputError

LISTS = [
    ("q1", ["a", "b"], ["c", "d", "e"]),
    ("q2", [], ["c"]),
    ("q3", ["a"], ["b"]),
    ("q4", ["a"], []),
    ("q5", ["c", "c"], ["a"]),
]
ALL = Counter(
    {
        **{("q1", p, n): 1 for p in "ab" for n in "cde"},
        ("q3", "a", "b"): 1,
        ("q5", "c", "a"): 2,
    }
)


def streamed(triples: Triples, **options) -> list[list[tuple[str, ...]]]:
    batches = triples.batches(**{"epochs": 1, "seed": 0, **options})
    found = [
        list(zip(*(p.numpy().astype(str).tolist() for p in b), strict=True))
        for b in batches
    ]
    assert int(batches.cardinality()) == len(found)
    return found


def test_each_positive_meets_each_negative():
    triples = Triples(LISTS)
    assert Counter(triples) == ALL
    assert len(triples) == 9 and triples.lists == 3
    assert set(triples.texts) == {"q1", "q3", "q5", *"abcde"}
    assert triples.no_positive == triples.no_negative == 1
    assert triples.describe() == (
        "9 triples of 3 queries; 1 queries without a positive left out; "
        "1 queries without a negative left out"
    )


def test_batches_hold_every_triple_once_in_an_epoch():
    triples = Triples(LISTS)
    batches = streamed(triples, batch_size=4, epochs=2)
    assert [len(batch) for batch in batches] == [4, 4, 1] * 2
    first, second = batches[:3], batches[3:]
    for epoch in (first, second):
        assert Counter(t for batch in epoch for t in batch) == ALL
    assert first != second
    assert streamed(triples, batch_size=4, seed=1) != first
    assert streamed(triples, batch_size=4) == first


@pytest.mark.parametrize("done", [0, 1, 3, 4, 6])
def test_a_resumed_run_sees_what_is_left(done, monkeypatch):
    from keras_lstm_dssm.data import triples as module

    monkeypatch.setattr(module, "_ROWS_PER_ELEMENT", 8)
    triples = Triples(LISTS)
    whole = streamed(triples, batch_size=4, epochs=2)
    left = streamed(triples, batch_size=4, epochs=2, first_step=done)
    assert left == whole[done:]


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
        "1 triples of 1 queries; 2 queries without a negative left out; 4"
        " negatives that are positives of their query left out"
    )


def collection(tmp_path: pathlib.Path, train: dict) -> Collection:
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
        "1 queries of dev or test left out; 2 answers of dev and test among "
        "theirs"
    )


def test_a_list_file_without_negatives_is_an_error(tmp_path):
    only_positives = collection(tmp_path, {"q1": {"a": 1}})
    with pytest.raises(InputError, match="data, split train: found no query"):
        Triples.from_collection(only_positives)
    with pytest.raises(InputError, match="batch_size must be 1 or more, not 0"):
        Triples(LISTS).batches(0, epochs=1, seed=0)


def test_triples_of_clicks(tmp_path):
    log = write_pairs(
        [("bolt", "hex bolt"), ("glue", "wood glue")], tmp_path / "clicks.tsv"
    )
    assert set(Triples.from_clicks(log, top=1)) == {
        ("bolt", "hex bolt", "wood glue"),
        ("glue", "wood glue", "hex bolt"),
    }


@pytest.mark.parametrize(
    ("name", "lists"), [("squad", 13196), ("reuters_sc", 6404)]
)
def test_real_lists_of_five(shared_data, name, lists):
    triples = Triples.from_collection(Collection(shared_data / name))
    assert triples.lists == lists and len(triples) == 4 * lists
    assert triples.held_out_queries == triples.shared_answers == 0
    rows = triples.rows(np.arange(len(triples)))
    assert not (rows[:, 1] == rows[:, 2]).any()


@pytest.mark.parametrize(
    ("name", "queries", "answers"),
    [("tldr", 1, 1), ("trecqa", 0, 0), ("wikiqa", 1, 13)],
)
def test_what_train_shares_with_dev_and_test(
    shared_data, name, queries, answers
):
    """Training leaves out queries of dev and test, and counts their answers."""
    triples = Triples.from_collection(Collection(shared_data / name))
    assert triples.held_out_queries == queries
    assert triples.shared_answers == answers
