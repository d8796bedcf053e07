"""The data of a table: what is trained on, and the tasks on dev and test."""

import dataclasses
import shutil
from typing import Any

import pytest

from keras_lstm_dssm.data import Pair, write_collection, write_documents
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import Task
from keras_lstm_dssm.papers import PAPERS
from keras_lstm_dssm.papers.run_systems import run_system
from keras_lstm_dssm.papers.table import make_table
from keras_lstm_dssm.papers.table_data import (
    change_queries,
    describe_words,
    open_data,
)
from keras_lstm_dssm.plain_files import read_json
from keras_lstm_dssm.settings.programs import TableSettings
from tests.papers.conftest import ROWS
from tests.training.small_documents import documents, write_small_documents


def test_the_measure_of_choices(table_iv, keyvec, mv_lstm, tmp_path):
    for table, measure in (
        (table_iv, "ndcg@10"), (keyvec, "map"), (mv_lstm, "mrr"),
    ):  # fmt: skip
        data = open_data(table.settings, tmp_path)
        assert data.dev_measure == measure
        assert data.dev.depth is None or table is keyvec
    ours = dataclasses.replace(mv_lstm.settings, select=None)
    assert open_data(ours, tmp_path).dev_measure == "p@1"
    folder = tmp_path / "several"
    shutil.copytree(ours.data, folder)
    dev = folder / "qrels/dev.tsv"
    two = dev.read_text().replace("dev-bolt\tglue\t0", "dev-bolt\tglue\t1")
    dev.write_text(two)
    ours = dataclasses.replace(ours, data=str(folder))
    assert open_data(ours, tmp_path).dev_measure == "map"


def test_equal_grades_are_not_reranked(tmp_path):
    titles = {d: f"title {d}" for d in "abc"}
    qrels = {"1": {"a": 1, "b": 1}, "2": {"c": 1}}
    write_collection(
        tmp_path / "d", titles, {"1": "one", "2": "two"},
        {"dev": qrels, "test": qrels}, [Pair("one", "title a")],
    )  # fmt: skip
    data = open_data(TableSettings(str(tmp_path / "d")), tmp_path)
    assert list(data.tests) == ["retrieve"]
    assert data.dev_measure == "mrr@10"


def test_a_split_is_missing(tmp_path):
    titles = tmp_path / "titles"
    write_collection(
        titles, {"a": "title"}, {"1": "one"}, {"test": {"1": {"a": 1}}}, []
    )
    tested = documents({"test": 4, "dev": 2})
    qrels = {"test": {"q": {tested[0].id: 1}}}
    no_dev, no_train = tmp_path / "no_dev", tmp_path / "no_train"
    one_class = documents({"train": 2, "dev": 1, "test": 4})
    write_documents(
        tmp_path / "one_class", one_class, {"q": "hat"},
        {"dev": {"q": {one_class[2].id: 1}}},
    )  # fmt: skip
    write_documents(no_dev, documents(), {"q": "hat"}, qrels)
    write_documents(no_train, tested, {"q": "hat"}, qrels)
    for folder, message in (
        (titles, "found no qrels/dev.tsv"),
        (no_dev, "found no qrels/dev.tsv, expected ju.*, or remove qrels/test"),
        (tmp_path / "one_class", "found no two classes in dev, .*: add classes"
         " of the split dev, or add qrels/test.tsv"),
        (no_train, "found no document of split 'train'"),
    ):  # fmt: skip
        wrong = TableSettings(str(folder), documents=folder != titles)
        with pytest.raises(InputError, match=message):
            open_data(wrong, tmp_path)


def test_a_folder_without_queries_has_clusters_only(tmp_path, capsys):
    write_documents(tmp_path / "news", documents(), {}, {})
    ours = TableSettings(str(tmp_path / "news"), documents=True, gammas=())
    output = tmp_path / "out"
    rows = {name: ROWS["keyvec"][name] for name in ("random", "bm25", "lsa")}
    for name in ("random", "lsa"):
        run_system(output, name, rows[name], ours, 1)
    assert read_json(output / "systems/lsa/choice.json")["measure"] == "dev ari"
    make_table(output, PAPERS["keyvec"], rows, ours, 1)
    printed = capsys.readouterr().out
    assert "bm25: left out, has no vectors to cluster" in printed
    text = (output / "table.md").read_text()
    assert "Table 1" not in text and "Table 2: clusters on news" in text
    assert "k-means of 4 test documents, k = 2" in text


def test_the_documents_of_all_splits_are_clustered(tmp_path):
    folder = write_small_documents(tmp_path / "small").folder
    ours = TableSettings(
        str(folder), documents=True, clusters_of="all", gammas=()
    )
    data = open_data(ours, tmp_path)
    assert data.sizes["cluster_documents"] == 18 and len(data.texts) == 10
    assert len(data.tests["retrieve"].documents) == 4
    rows = {"random": ROWS["keyvec"]["random"]}
    run_system(tmp_path / "out", "random", rows["random"], ours, 1)
    make_table(tmp_path / "out", PAPERS["keyvec"], rows, ours, 1)
    text = (tmp_path / "out/table.md").read_text()
    assert "k-means of 18 documents of all splits, k = 2" in text


def test_fewer_clicks_are_whole_queries(collection_folder, tmp_path):
    few, more = (
        [*open_data(TableSettings(str(collection_folder), pairs=size),
                    tmp_path).examples]
        for size in (30, 60)
    )  # fmt: skip
    assert (len(few), len(more)) == (40, 60)  # 20 clicks a query
    assert set(few) < set(more)


def test_changed_queries(settings, tmp_path):
    task = open_data(settings, tmp_path).dev
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
    expected = {
        "query_words": (3 + 1 + 0) / 3,
        "title_words": (3 + 2 + 1) / 3,
        "overlap": (2 / 3 + 1 / 3 + 0) / 3,  # hex, bolt; bolt; none
        "seen": 2 / 4,  # red, lamp
        "clicks_per_title": 2.0,
    }
    found = describe_words(log, list(task.documents.values()), task)
    assert found == pytest.approx(expected)
