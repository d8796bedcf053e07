"""Folders of titles and of documents: read, written, opened by their names."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from keras_lstm_dssm.data import (
    Collection,
    DataSource,
    Document,
    DocumentFolder,
    Pair,
    open_collection,
    open_documents,
    open_log,
    sources,
    write_collection,
    write_pairs,
)
from keras_lstm_dssm.data.documents import LINE_EXPECTED, parse_document
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.settings.training import absolute_spec
from tests.limits import largest_file

HEAD = "query-id\tcorpus-id\tscore\n"


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text(
        '{"_id": "d1", "title": "Angle", "text": "long"}\n'
        '{"_id": "d2", "title": "", "text": "No title"}\n'
    )
    (tmp_path / "queries.jsonl.gz").write_bytes(
        gzip.compress(
            b'{"_id": "q1", "text": "bracket"}\n{"_id": "q2", "text": "l"}\n'
        )
    )
    (tmp_path / "qrels/train.tsv").write_text(
        HEAD + "q2\td1\t3\nq2\td2\t0\nq1\td1\t1\n"
    )
    return tmp_path


def test_reads_a_folder(folder):
    collection = Collection(folder)
    assert collection.splits == ("train",)
    assert collection.documents == {"d1": "Angle long", "d2": "No title"}
    assert collection.queries == {"q1": "bracket", "q2": "l"}
    qrels = collection.qrels("train")
    assert qrels == {"q2": {"d1": 3, "d2": 0}, "q1": {"d1": 1}}
    assert list(qrels) == ["q2", "q1"]


def test_ids_may_be_numbers_titles_null_and_lines_blank_at_the_end(folder):
    before = Collection(folder).qrels("train")
    with open(folder / "corpus.jsonl", "a") as file:
        file.write('{"_id": 3, "title": null, "text": "Text"}\n\n \n')
    with open(folder / "qrels" / "train.tsv", "a") as file:
        file.write("q1\td1\t1\n")  # a second time
    collection = Collection(folder)
    assert list(collection.documents.items())[2:] == [("3", "Text")]
    assert collection.qrels("train") == before


def test_training_log_from_qrels(folder, tmp_path):
    target = tmp_path / "clicks.tsv"
    collection = Collection(folder)
    with pytest.raises(InputError, match="found no score of 9 or more"):
        collection.training_log(min_relevant=9, write_to=target)
    assert not target.exists()
    log = collection.training_log(write_to=target)
    assert list(log) == [("l", "Angle long"), ("bracket", "Angle long")]
    log = collection.training_log(min_relevant=2, write_to=target)
    assert list(log) == [("l", "Angle long")]
    with pytest.raises(InputError, match="write_to"):
        collection.training_log()


def test_training_log_from_clicks(folder):
    (folder / "clicks.train.tsv").write_text("a\tb\n")
    collection = Collection(folder)
    assert list(collection.training_log()) == [("a", "b")]
    # Where the split has qrels, these are counted; they have the queries.
    head = "2 titles, 2 queries\ntrain: "
    assert collection.describe() == head + "2 queries, 3 pairs"
    (folder / "qrels" / "train.tsv").rename(folder / "qrels" / "dev.tsv")
    assert Collection(folder).describe() == (
        head + "1 clicks\ndev: 2 queries, 3 pairs"
    )


@pytest.mark.parametrize(("name", "message"), [
    ("corpus.jsonl", "corpus.jsonl: no such file"),
    ("queries.jsonl.gz", "queries.jsonl: no such file"),
    ("qrels/train.tsv", "qrels: found no split"),
])  # fmt: skip
def test_a_missing_file(folder, name, message):
    with pytest.raises(InputError, match="test.tsv: no such split.*train"):
        Collection(folder).qrels("test")
    (folder / name).unlink()
    with pytest.raises(InputError, match=message):
        Collection(folder)


def test_what_is_written_is_read(tmp_path):
    documents, queries = {"d1": "A b", "d2": "\u00e9"}, {"q1": "x", "q2": "y"}
    qrels = {"train": {"q2": {"d2": 1}}, "test": {"q1": {"d2": 2, "d1": 0}}}
    clicks = [Pair("y", "\u00e9"), Pair("y", "tab\there")]
    arguments = documents, queries, qrels, clicks
    collection = write_collection(tmp_path / "new", *arguments)
    assert collection.documents == documents
    assert collection.queries == queries
    assert collection.splits == ("train", "test")
    assert {s: collection.qrels(s) for s in collection.splits} == qrels
    assert list(collection.training_log()) == [clicks[0], ("y", "tab here")]
    write_collection(tmp_path / "again", *arguments)
    for name in ("corpus.jsonl.gz", "clicks.train.tsv.gz", "qrels/test.tsv"):
        first, second = (tmp_path / f / name for f in ("new", "again"))
        assert first.read_bytes() == second.read_bytes()
    assert {p.name for p in tmp_path.iterdir()} == {"new", "again"}


def test_a_full_disk_is_named_and_leaves_nothing(tmp_path):
    titles = {f"d{i}": f"title {hash(str(i))}" for i in range(1000)}
    full = pytest.raises(OSError, match="File too large: .*new'")
    with largest_file(1000), full:
        write_collection(tmp_path / "new", titles, {}, {}, [])
    assert not list(tmp_path.iterdir())


ROWS: list[dict[str, Any]] = [
    {"_id": "d1", "text": "Sort the list. It is\nstable now.", "class": "a"},
    {"_id": 2, "title": " Two\tparts ", "sentences": ["One.", " ", "A  b."],
     "summary": "First it is. Then not.", "class": 7, "split": "test"},
    {"_id": "d3", "sentences": ["x"] * 300, "summary": ["S.", ""],
     "class": "a", "extra": {"is": "ignored"}},
]  # fmt: skip


@pytest.fixture
def documents(tmp_path) -> Path:
    data = "".join(json.dumps(row) + "\n" for row in ROWS).encode()
    (tmp_path / "documents.jsonl.gz").write_bytes(gzip.compress(data))
    return tmp_path


def test_the_documents(documents):
    folder = DocumentFolder(documents, max_sentences=200)
    first, second, third = folder
    assert first == Document(
        "d1", "", ["Sort the list.", "It is stable now."], [], "a", "train"
    )
    assert second == Document(
        "2", "Two parts", ["One.", "A b."],
        ["First it is.", "Then not."], "7", "test",
    )  # fmt: skip
    assert third.sentences == ["x"] * 200 and third.summary == ["S."]
    train = folder.of("train")
    for _ in range(2):
        assert [document.id for document in train] == ["d1", "d3"]
    assert folder.count() == 3 and folder.count("dev") == 0
    assert folder.splits == ()
    assert folder.describe().splitlines() == [
        "3 documents, 204 sentences, 2 classes (1 with one document)",
        "train: 2 documents", "dev: 0 documents", "test: 1 documents",
        "1 documents without a summary", "1 documents cut to 200 sentences",
    ]  # fmt: skip
    with pytest.raises(InputError, match="found split 'all', expected one of"):
        folder.of("all")


def test_all_sentences_are_read_where_there_is_no_limit(documents):
    folder = DocumentFolder(documents, max_sentences=None)
    assert [len(one.sentences) for one in folder] == [2, 2, 300]
    assert folder.counts.cut == 0
    with pytest.raises(
        InputError,
        match="max_sentences is 0: expected a whole number of 1 or more",
    ):
        DocumentFolder(folder.folder, max_sentences=0)


def test_a_file_without_a_good_line(tmp_path):
    path = tmp_path / "documents.jsonl"
    with pytest.raises(InputError, match=r"jsonl: no such file .*ments\.md"):
        DocumentFolder(tmp_path)
    path.write_text("")
    with pytest.raises(InputError, match="found an empty file"):
        DocumentFolder(tmp_path).count()
    for text in ("", "no\n"):
        path.write_text(text)
        with pytest.raises(InputError, match="found bad lines only"):
            DocumentFolder(tmp_path, max_bad_lines=1).count()
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(ROWS[0]).encode() + b"\r\n\n")
    assert DocumentFolder(tmp_path).count() == 1


def test_the_lines_of_the_page_about_documents():
    page = Path(__file__).parents[2].joinpath("docs/documents.md").read_text()
    block = page.split("```json\n")[1].split("```")[0]
    first, second = map(parse_document, block.encode().splitlines())
    assert isinstance(first, Document) and isinstance(second, Document)
    assert len(first.sentences) == len(second.sentences) == 2
    assert len(first.summary) == 1 and len(second.summary) == 2
    assert first[4:] == ("", "train") and second[4:] == ("trees", "test")
    message = page.split("```text\n")[1].split("```")[0]
    assert LINE_EXPECTED in message and "an empty document" in message


def test_queries_and_their_documents(documents):
    (documents / "queries.jsonl").write_text('{"_id": "q1", "text": "two"}\n')
    (documents / "qrels").mkdir()
    qrels = documents / "qrels" / "test.tsv"
    qrels.write_text(HEAD + "q1\t2\t1\n")
    folder = DocumentFolder(documents)
    assert folder.splits == ("test",)
    assert folder.queries == {"q1": "two"}
    assert folder.qrels("test") == {"q1": {"2": 1}}
    assert "test: 1 documents, 1 queries, 1 pairs" in folder.describe()
    qrels.write_text("q1\td1\t1\n")
    with pytest.raises(
        InputError,
        match="test.tsv:1: found document 'd1', expected a document of this",
    ):
        folder.qrels("test")
    with pytest.raises(InputError, match="dev.tsv: no such split"):
        folder.qrels("dev")


def test_what_is_opened_by_its_name(folder, tmp_path, monkeypatch):
    assert open_collection(str(folder)).documents["d1"] == "Angle long"
    (folder / "clicks.train.tsv").write_text("query\ttitle\n")
    assert list(open_log(str(folder))) == [("query", "title")]
    built = open_collection(str(folder))
    monkeypatch.setattr(sources, "build_api_search", lambda progress: built)
    assert open_collection("api").folder == built.folder
    assert list(open_log("api")) == [("query", "title")]
    for name in ("a1", "a2", "b"):
        (tmp_path / f"{name}.tsv").write_text(f"{name}\tx\n")
    log = open_log(f"{tmp_path}/a*.tsv, {tmp_path}/b.tsv")
    assert [pair.query for pair in log] == ["a1", "a2", "b"]
    (tmp_path / "documents.jsonl").write_text('{"_id": "d", "text": "A."}\n[')
    found = open_documents(str(tmp_path), max_bad_lines=1)
    assert [one.id for one in found] == ["d"]
    monkeypatch.setattr(sources, "build_api_documents", lambda progress: found)
    built_in = open_documents("api_documents", max_sentences=7)
    assert (built_in.folder, built_in.max_sentences) == (found.folder, 7)
    assert absolute_spec("api_documents") == "api_documents"


def test_a_file_whose_name_has_a_comma(tmp_path):
    path = tmp_path / "may, june.tsv"
    pairs = [("bolt", "hex bolt"), ("glue", "wood glue")]
    write_pairs(pairs, path)
    assert open_log(str(path)).count() == 2
    assert open_log(f"{path.parent}/*.tsv,{path.parent}/may*").count() == 2
    assert absolute_spec(str(path)) == str(path)


def test_data_are_named_by_a_path_or_a_text(tmp_path):
    path = tmp_path / "clicks.tsv"
    write_pairs([("bolt", "hex bolt")], path)
    assert open_log(path).count() == 1  # type: ignore[arg-type]
    with pytest.raises(
        InputError, match="found .* .list., expected a path, or"
    ):
        open_log([str(path)])  # type: ignore[arg-type]


def test_a_title_of_both_kinds_is_no_negative(tmp_path):
    """In another id, another query or another collection."""
    titles = {"d": "hex bolt", "e": "Hex-Bolt", "f": "nut", "g": "wood glue"}
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    for name, grades in (
        (one, {"q": {"d": 1, "e": 0, "f": 0, "g": 0}}),
        (two, {"q": {"f": 0}, "r": {"g": 2}}),
    ):
        queries = {"q": "bolt", "r": "Bolt "}
        write_collection(Path(name), titles, queries, {"train": grades}, [])
    negatives = {"bolt": ["nut", "wood glue"]}
    assert DataSource(one).judged_negatives() == negatives
    both = {"bolt": ["nut", "nut"], "Bolt": []}
    assert DataSource(f"{one},{two}").judged_negatives() == both


@pytest.mark.parametrize("name", ["more.tsv", "more.tsv.gz"])
def test_writes_pairs_as_a_log(tmp_path, name):
    log = write_pairs([("na\u00efve  lamp", "a\tlamp")], tmp_path / name)
    assert list(log) == [("na\u00efve lamp", "a lamp")]


@pytest.mark.parametrize(("name", "documents", "queries", "clicks"), [
    ("homedepot", 53489, (8168, 1219, 1204), 34643),
    ("bestbuy", 437, (3195, 431, 934), None),
    ("wikiqa", 11406, (873, 126, 237), None),
])  # fmt: skip
def test_real_titles(shared_data, tmp_path, name, documents, queries, clicks):
    collection = Collection(shared_data / name)
    assert len(collection.documents) == documents
    splits = ("train", "dev", "test")
    assert tuple(len(collection.qrels(s)) for s in splits) == queries
    count = collection.training_log(write_to=tmp_path / "clicks").count()
    assert count == clicks or clicks is None and count > 1000


@pytest.mark.parametrize(
    ("name", "documents", "sentences", "classes", "queries"),
    [
        ("papers", (1186, 77, 155), 241_657, 276, {"dev": 1010, "test": 1942}),
        ("bbc", (1250, 178, 357), 33_980, 5, {}),
    ],
)
def test_real_documents(
    shared_data, name, documents, sentences, classes, queries
):
    folder = DocumentFolder(shared_data / name)
    assert tuple(map(folder.count, ("train", "dev", "test"))) == documents
    counts = folder.counts
    assert (counts.sentences, len(counts.classes)) == (sentences, classes)
    assert counts.bad_lines == {} and counts.no_summary == 0
    assert {s: len(folder.qrels(s)) for s in folder.splits} == queries
