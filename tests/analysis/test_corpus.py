import pytest

from keras_lstm_dssm.analysis.report_input import open_corpus
from keras_lstm_dssm.data import Pair, write_collection
from keras_lstm_dssm.errors import InputError
from tests.conftest import TOPICS


def test_of_a_collection(collection_folder) -> None:
    corpus = open_corpus(str(collection_folder))
    assert corpus.titles == [title for _, title in TOPICS.values()]
    assert sorted(corpus.pairs) == sorted(TOPICS.values())
    assert len(corpus.contexts) == 120
    assert corpus.contexts[0] == "hex bolt steel hex bolt zinc 3 in"
    some = open_corpus(str(collection_folder), most=2, pairs=3)
    assert list(map(len, some)) == [2, 3, 2]
    assert some.pairs == corpus.pairs[:3]


def test_of_a_collection_without_clicks(tmp_path) -> None:
    judged = {"q": {"a": 1, "b": 2}, "p": {"a": 0}}
    write_collection(
        tmp_path / "data", {"a": "glue", "b": "wood glue"},
        {"q": "wood", "p": "bolt"}, {"test": judged}, [],
    )  # fmt: skip
    (tmp_path / "data/clicks.train.tsv.gz").unlink()
    corpus = open_corpus(str(tmp_path / "data"))
    assert corpus.pairs == [Pair("wood", "wood glue")]  # the best, if any
    assert corpus.contexts == ["glue", "wood glue"]


def test_of_a_log(tmp_path) -> None:
    path = tmp_path / "clicks.tsv"
    path.write_text("glue\twood glue\nbolt\thex bolt\nglue\twood glue\n")
    corpus = open_corpus(str(path))
    assert corpus.titles == ["wood glue", "hex bolt"]
    assert sorted(corpus.pairs) == [
        Pair("bolt", "hex bolt"), Pair("glue", "wood glue"),
    ]  # fmt: skip
    assert len(corpus.contexts) == 3
    with pytest.raises(InputError, match="no such file"):
        open_corpus(str(tmp_path / "none.tsv"))
