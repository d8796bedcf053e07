from typing import Any

import pytest

from keras_lstm_dssm.data import Pair, write_collection
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import Task
from keras_lstm_dssm.papers.table_data import (
    change_queries,
    describe_words,
    open_data,
)
from keras_lstm_dssm.settings.papers import TableSettings


def test_judged_lists_are_reranked(collection_folder, tmp_path):
    data = open_data(TableSettings(str(collection_folder)), tmp_path)
    assert list(data.tests) == ["rerank", "retrieve"]
    assert (data.dev_measure, data.dev.depth) == ("ndcg@10", None)
    assert data.sizes == {
        "titles": 6, "clicks": 120, "dev_queries": 6, "rerank_queries": 6,
        "retrieve_queries": 6,
    }  # fmt: skip


def test_equal_grades_are_not_reranked(tmp_path):
    documents = {d: f"title {d}" for d in "abc"}
    queries = {"1": "one", "2": "two"}
    qrels = {"1": {"a": 1, "b": 1}, "2": {"c": 1}}
    splits = {"dev": qrels, "test": qrels}
    write_collection(
        tmp_path / "d", documents, queries, splits, [Pair("one", "title a")]
    )
    data = open_data(TableSettings(str(tmp_path / "d")), tmp_path)
    assert list(data.tests) == ["retrieve"]
    assert data.dev_measure == "mrr@10"


def test_a_split_is_missing(tmp_path):
    documents, queries = {"a": "title"}, {"1": "one"}
    write_collection(
        tmp_path / "d", documents, queries, {"test": {"1": {"a": 1}}}, []
    )
    with pytest.raises(InputError, match="found no qrels/dev.tsv"):
        open_data(TableSettings(str(tmp_path / "d")), tmp_path)


def test_fewer_clicks_are_whole_queries(collection_folder, tmp_path):
    def pairs(size: int) -> list[Pair]:
        settings = TableSettings(str(collection_folder), pairs=size)
        return list(open_data(settings, tmp_path).examples)

    few, more = pairs(30), pairs(60)
    assert (len(few), len(more)) == (40, 60)  # 20 clicks a query
    assert set(few) < set(more)


def test_changed_queries(collection_folder, tmp_path):
    task = open_data(TableSettings(str(collection_folder)), tmp_path).dev
    changed = change_queries(task, str.upper)
    assert changed.queries["q-bolt"] == "HEX BOLT"
    assert changed.qrels is task.qrels
    assert task.queries["q-bolt"] == "hex bolt"


class Log(list[Pair]):
    """Holds clicks in memory, with the method `count` of a `ClickLog`."""

    def count(self) -> int:
        return len(self)


def test_word_counts_by_hand():
    task = Task(
        {"q": "Red hex-bolt", "r": "lamp", "s": "?"},
        {"a": "hex bolt, hex", "b": "steel bolt", "c": "lamp"},
        {"q": {"a": 2, "b": 1, "c": 0}, "r": {"a": 1}, "s": {"c": 1}},
    )
    log: Any = Log([Pair("red bolts", "a x"), Pair("Red lamp", "a x")])
    titles = list(task.documents.values())
    assert describe_words(log, titles, task) == pytest.approx(
        {
            "query_words": (3 + 1 + 0) / 3,
            "title_words": (3 + 2 + 1) / 3,
            "overlap": (2 / 3 + 1 / 3 + 0) / 3,  # hex, bolt; bolt; none
            "seen": 2 / 4,  # red, lamp
            "clicks_per_title": 2.0,
        }
    )
