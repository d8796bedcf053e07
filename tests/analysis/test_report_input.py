import shutil

import pytest

from keras_lstm_dssm.analysis.keyvec_report import read_report_documents
from keras_lstm_dssm.analysis.tower_report import read_report_texts
from keras_lstm_dssm.data import Pair, write_collection
from keras_lstm_dssm.errors import InputError
from tests.conftest import TOPICS
from tests.training.small_documents import write_small_documents


def test_of_a_collection(collection_folder):
    texts = read_report_texts(str(collection_folder))
    assert texts.titles == [title for _, title in TOPICS.values()]
    assert sorted(texts.pairs) == sorted(TOPICS.values())
    assert len(texts.contexts) == 120
    assert texts.contexts[0] == "hex bolt steel hex bolt zinc 3 in"
    some = read_report_texts(str(collection_folder), most=2, pairs=3)
    assert list(map(len, some[:3])) == [2, 3, 2]
    assert some.pairs == texts.pairs[:3]


def test_of_a_collection_without_clicks(tmp_path):
    judged = {"q": {"a": 1, "b": 2}, "p": {"a": 0}}
    write_collection(
        tmp_path / "data", {"a": "glue", "b": "wood glue"},
        {"q": "wood", "p": "bolt"}, {"test": judged}, [],
    )  # fmt: skip
    (tmp_path / "data/clicks.train.tsv.gz").unlink()
    texts = read_report_texts(str(tmp_path / "data"))
    assert texts.pairs == [Pair("wood", "wood glue")]  # the best, if any
    assert texts.contexts == ["glue", "wood glue"]


def test_of_a_log(tmp_path):
    path = tmp_path / "clicks.tsv"
    path.write_text("glue\twood glue\nbolt\thex bolt\nglue\twood glue\n")
    texts = read_report_texts(str(path))
    assert texts.titles == ["wood glue", "hex bolt"]
    assert sorted(texts.pairs) == [
        Pair("bolt", "hex bolt"), Pair("glue", "wood glue"),
    ]  # fmt: skip
    assert len(texts.contexts) == 3
    with pytest.raises(InputError, match="no such file"):
        read_report_texts(str(tmp_path / "none.tsv"))


def test_bad_lines_are_left_out_as_in_training(collection_folder, tmp_path):
    path = tmp_path / "clicks.tsv"
    path.write_text("glue\twood glue\nno tab\nbolt\thex bolt\n")
    with pytest.raises(InputError, match="clicks.tsv:2: "):
        read_report_texts(str(path))
    texts = read_report_texts(str(path), max_bad_lines=1)
    assert texts.titles == ["wood glue", "hex bolt"]
    assert texts.bad_lines == {"no tab": 1}
    # The clicks of a collection, too.
    folder = tmp_path / "data"
    shutil.copytree(collection_folder, folder)
    (folder / "clicks.train.tsv.gz").unlink()
    path.rename(folder / "clicks.train.tsv")
    with pytest.raises(InputError, match="clicks.train.tsv:2: "):
        read_report_texts(str(folder))
    texts = read_report_texts(str(folder), max_bad_lines=1)
    assert texts.contexts == ["glue wood glue", "bolt hex bolt"]
    assert texts.bad_lines == {"no tab": 1}


def test_of_a_folder_of_documents(tmp_path):
    folder = write_small_documents(tmp_path / "data")
    data = str(tmp_path / "data")
    found = read_report_documents(data, "trigrams")
    assert found.split == "test" and found.teacher == "trigrams"
    assert found.documents == list(folder.of("test"))
    # The summary is the second sentence.
    assert all(found.targets.of(one).salient == [1] for one in found.documents)
    given = read_report_documents(data, "trigrams", theta=0.25, max_sentences=3)
    assert given.targets.counts.theta == 0.25
    assert {len(one.sentences) for one in given.documents} == {3}
    lead = read_report_documents(data, "lead")
    assert all(lead.targets.of(one).salient == [0] for one in lead.documents)
    with pytest.raises(InputError, match="nothing there"):
        read_report_documents(str(tmp_path / "none"), "lead")
