"""What reports and lstm-dssm-evaluate read, and what they say of it."""

import gzip
import shutil
from typing import Any

import pytest

from keras_lstm_dssm.analysis.keyvec_report import read_report_documents
from keras_lstm_dssm.analysis.tower_report import read_report_texts
from keras_lstm_dssm.data import (
    Collection,
    DocumentFolder,
    Pair,
    sources,
    write_collection,
    write_documents,
)
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluate import run
from keras_lstm_dssm.evaluate.run import measure_documents
from keras_lstm_dssm.evaluation.bm25 import BM25System
from keras_lstm_dssm.papers.baselines import (
    RandomVectorSystem,
    document_baselines,
)
from tests.conftest import TOPICS
from tests.training.small_documents import documents, write_small_documents

KEYVEC: Any = None
"""Stands for a trained KeyVec: the tests replace what would encode by it."""


def test_texts_of_a_collection(collection_folder, tmp_path, monkeypatch):
    texts = read_report_texts(str(collection_folder))
    assert texts.titles == [title for _, title in TOPICS.values()]
    assert sorted(texts.pairs) == sorted(TOPICS.values())
    assert len(texts.contexts) == 120
    assert texts.contexts[0] == "hex bolt steel hex bolt zinc 3 in"
    some = read_report_texts(str(collection_folder), most=2, pairs=3)
    assert list(map(len, some[:3])) == [2, 3, 2]
    assert some.pairs == texts.pairs[:3]
    # Without clicks: of each query its best title, if any.
    write_collection(
        tmp_path / "data", {"a": "glue", "b": "wood glue"},
        {"q": "wood", "p": "bolt"},
        {"test": {"q": {"a": 1, "b": 2}, "p": {"a": 0}}}, [],
    )  # fmt: skip
    (tmp_path / "data/clicks.train.tsv.gz").unlink()
    texts = read_report_texts(str(tmp_path / "data"))
    assert texts.pairs == [Pair("wood", "wood glue")]
    assert texts.contexts == ["glue", "wood glue"]
    monkeypatch.setattr(
        sources, "build_api_sentences",
        lambda progress: Collection(tmp_path / "data"),
    )  # fmt: skip
    assert read_report_texts("api_sentences") == texts


def test_texts_of_a_log(collection_folder, tmp_path):
    """Bad lines are left out as in training, of a collection, too."""
    path, folder = tmp_path / "clicks.tsv", tmp_path / "data"
    shutil.copytree(collection_folder, folder)
    (folder / "clicks.train.tsv.gz").unlink()
    path.write_text("glue\twood glue\nbolt\thex bolt\nglue\twood glue\n")
    texts = read_report_texts(str(path))
    assert texts.titles == ["wood glue", "hex bolt"]
    pairs = [Pair("bolt", "hex bolt"), Pair("glue", "wood glue")]
    assert sorted(texts.pairs) == pairs
    assert len(texts.contexts) == 3
    bad = "glue\twood glue\nno tab\nbolt\thex bolt\n"
    for file, data in ((path, path), (folder / "clicks.train.tsv", folder)):
        file.write_text(bad)
        with pytest.raises(InputError, match=f"{file.name}:2: "):
            read_report_texts(str(data))
        texts = read_report_texts(str(data), max_bad_lines=1)
        assert texts.contexts == ["glue wood glue", "bolt hex bolt"]
        assert texts.bad_lines == {"no tab": 1}
    with pytest.raises(InputError, match="no such file"):
        read_report_texts(str(tmp_path / "none.tsv"))


def test_documents_of_a_folder(tmp_path):
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


@pytest.fixture
def bm25_in_place_of_the_model(monkeypatch) -> None:
    monkeypatch.setattr(run, "system_of", lambda model, progress: BM25System())


@pytest.mark.usefixtures("bm25_in_place_of_the_model")
def test_bad_lines_are_told_before_the_table(tmp_path, capsys):
    pytest.importorskip("sklearn")
    baselines: list[list[str]] = []

    def random_vectors(texts: list[str]) -> dict[str, Any]:
        baselines.append(texts)
        return {"random_vectors": RandomVectorSystem()}

    folder = write_small_documents(tmp_path / "folder").folder
    with gzip.open(f"{folder}/documents.jsonl.gz", "at") as file:
        file.write("no document\n")
    folder = DocumentFolder(folder, max_bad_lines=1)
    tasks, measured = measure_documents(
        KEYVEC, folder, baselines=random_vectors, report=print
    )
    printed = capsys.readouterr().out
    assert printed.startswith("skipped bad lines: no JSON: 1\nmodel against sy")
    assert "trained on 10 documents\n" in printed
    assert "test, retrieve: 2 queries, 4 documents\n" in printed
    train = documents({"train": 10})
    assert baselines == [["\n".join(one.sentences) for one in train]]
    assert list(tasks) == ["retrieve", "cluster"]
    assert list(measured["retrieve"]) == ["model", "random_vectors", "random"]
    # The words of a class are those of its query.
    of_model = measured["retrieve"]["model"].values()
    assert [of_query["map"] for of_query in of_model] == [1, 1]


@pytest.mark.usefixtures("bm25_in_place_of_the_model")
def test_no_document_to_train_baselines_on(tmp_path, capsys):
    tested = documents({"test": 4})
    qrels = {"test": {"q": {tested[0].id: 1}}}
    query = {"q": tested[0].sentences[0]}
    folder = write_documents(tmp_path / "folder", tested, query, qrels)
    _, measured = measure_documents(
        KEYVEC, folder, baselines=document_baselines, report=print
    )
    of_retrieve = measured["retrieve"]
    assert list(of_retrieve) == ["model", "bm25", "random_vectors", "random"]
    assert of_retrieve["model"]["q"]["map"] == 1
    first_line = capsys.readouterr().out.splitlines()[0]
    assert first_line == (
        f"{folder.folder}: no document of the split train: left out tfidf, lsa,"
        " word2vec and doc2vec, which are trained on documents"
    )
