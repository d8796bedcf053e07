from pathlib import Path

import pytest

from keras_lstm_dssm.data import Pair, write_collection
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.tables import Settings, open_dataset
from keras_lstm_dssm.tables.dataset import with_queries


def test_judged_lists_are_reranked(collection_folder, tmp_path) -> None:
    data = open_dataset(Settings(str(collection_folder)), tmp_path)
    assert list(data.tests) == ["rerank", "retrieve"]
    assert (data.dev_measure, data.dev.depth) == ("ndcg@10", None)
    assert data.sizes == {
        "titles": 6, "clicks": 120, "dev_queries": 6, "rerank_queries": 6,
        "retrieve_queries": 6,
    }  # fmt: skip


def test_equal_grades_are_not_reranked(tmp_path: Path) -> None:
    documents = {d: f"title {d}" for d in "abc"}
    queries = {"1": "one", "2": "two"}
    qrels = {"1": {"a": 1, "b": 1}, "2": {"c": 1}}
    splits = {"dev": qrels, "test": qrels}
    write_collection(
        tmp_path / "d", documents, queries, splits, [Pair("one", "title a")]
    )
    data = open_dataset(Settings(str(tmp_path / "d")), tmp_path)
    assert list(data.tests) == ["retrieve"]
    assert data.dev_measure == "mrr@10"


def test_a_split_is_missing(tmp_path: Path) -> None:
    documents, queries = {"a": "title"}, {"1": "one"}
    write_collection(
        tmp_path / "d", documents, queries, {"test": {"1": {"a": 1}}}, []
    )
    with pytest.raises(InputError, match="found no qrels/dev.tsv"):
        open_dataset(Settings(str(tmp_path / "d")), tmp_path)


def test_fewer_clicks_are_whole_queries(collection_folder, tmp_path) -> None:
    def pairs(size: int) -> list[Pair]:
        settings = Settings(str(collection_folder), pairs=size)
        return list(open_dataset(settings, tmp_path).log)

    few, more = pairs(30), pairs(60)
    assert (len(few), len(more)) == (40, 60)  # 20 clicks a query
    assert set(few) < set(more)


def test_changed_queries(collection_folder, tmp_path) -> None:
    task = open_dataset(Settings(str(collection_folder)), tmp_path).dev
    changed = with_queries(task, str.upper)
    assert changed.queries["q-bolt"] == "HEX BOLT"
    assert changed.qrels is task.qrels
    assert task.queries["q-bolt"] == "hex bolt"
