import pytest

from keras_lstm_dssm.data import (
    DataSource,
    Pair,
    open_collection,
    open_documents,
    open_log,
    sources,
    write_collection,
    write_pairs,
)
from keras_lstm_dssm.errors import InputError


@pytest.fixture
def folder(tmp_path):
    write_collection(
        tmp_path / "c",
        {"d": "title"},
        {"q": "query"},
        {"train": {"q": {"d": 1}}},
        [Pair("query", "title")],
    )
    return str(tmp_path / "c")


def test_folder(folder):
    assert open_collection(folder).documents == {"d": "title"}
    assert list(open_log(folder)) == [("query", "title")]


def test_api(folder, monkeypatch):
    built = open_collection(folder)
    monkeypatch.setattr(sources, "build_api_search", lambda progress: built)
    assert open_collection("api") is built
    assert list(open_log("api")) == [("query", "title")]


def test_files_and_globs(tmp_path):
    for name in ("a1", "a2", "b"):
        (tmp_path / f"{name}.tsv").write_text(f"{name}\tx\n")
    log = open_log(f"{tmp_path}/a*.tsv, {tmp_path}/b.tsv")
    assert [pair.query for pair in log] == ["a1", "a2", "b"]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("nowhere", "nowhere: found nothing there, expected 'api', 'api_s"),
        (__file__, "found a file, expected 'api', 'api_s"),
    ],
)
def test_no_collection(spec, message):
    with pytest.raises(InputError, match=message):
        open_collection(spec)


def test_no_log():
    with pytest.raises(InputError, match="nowhere: no such file"):
        open_log("nowhere")
    with pytest.raises(InputError, match="no click file was given"):
        open_log(" ,")


def test_a_title_of_both_kinds_is_no_negative(tmp_path):
    """In another id, another query or another collection."""
    documents = {"d": "hex bolt", "e": "Hex-Bolt", "f": "nut", "g": "wood glue"}
    for name, grades in (
        ("one", {"q": {"d": 1, "e": 0, "f": 0, "g": 0}}),
        ("two", {"q": {"f": 0}, "r": {"g": 2}}),
    ):
        write_collection(
            tmp_path / name, documents, {"q": "bolt", "r": "Bolt "},
            {"train": grades}, [],
        )  # fmt: skip
    one, two = tmp_path / "one", tmp_path / "two"
    assert DataSource(str(one)).judged_negatives() == {
        "bolt": ["nut", "wood glue"]
    }
    both = {"bolt": ["nut", "nut"], "Bolt": []}
    assert DataSource(f"{one},{two}").judged_negatives() == both


def test_writes_pairs_as_a_log(tmp_path):
    log = write_pairs([("na\u00efve  lamp", "a\tlamp")], tmp_path / "more.tsv")
    assert list(log) == [("na\u00efve lamp", "a lamp")]


def test_documents(tmp_path, monkeypatch):
    (tmp_path / "documents.jsonl").write_text('{"_id": "d", "text": "A."}\n[')
    folder = open_documents(str(tmp_path), max_bad_lines=1)
    assert [one.id for one in folder] == ["d"]
    monkeypatch.setattr(sources, "build_api_documents", lambda progress: folder)
    built_in = open_documents("api_documents", max_sentences=7)
    assert built_in.folder == folder.folder
    assert built_in.max_sentences == 7
    assert sources.absolute_spec("api_documents") == "api_documents"
    for spec, problem in (
        (str(tmp_path / "none"), "nothing there"),
        (str(tmp_path / "documents.jsonl"), "a file"),
    ):
        with pytest.raises(
            InputError, match=f"found {problem}, expected 'api_documents' or"
        ):
            open_documents(spec)
