"""Folders of documents: what is read, and what is told about bad lines."""

import gzip
import json
import pathlib
from collections.abc import Callable
from typing import Any

import pytest

from keras_lstm_dssm.data import Document, DocumentFolder
from keras_lstm_dssm.data.documents import LINE_EXPECTED, parse_document
from keras_lstm_dssm.errors import InputError

ROWS: list[dict[str, Any]] = [
    {"_id": "d1", "text": "Sort the list. It is\nstable now.", "class": "a"},
    {"_id": 2, "title": " Two\tparts ", "sentences": ["One.", " ", "A  b."],
     "summary": "First it is. Then not.", "class": 7, "split": "test"},
    {"_id": "d3", "sentences": ["x"] * 300, "summary": ["S.", ""],
     "class": "a", "extra": {"is": "ignored"}},
]  # fmt: skip


@pytest.fixture
def write(tmp_path) -> Callable[..., pathlib.Path]:
    def written(*lines: str | bytes | dict[str, Any]) -> pathlib.Path:
        data = [
            line
            if isinstance(line, bytes)
            else (line if isinstance(line, str) else json.dumps(line)).encode()
            for line in (*ROWS, *lines)
        ]
        path = tmp_path / "documents.jsonl.gz"
        path.write_bytes(gzip.compress(b"\n".join(data) + b"\n"))
        return tmp_path

    return written


def test_the_documents(write):
    folder = DocumentFolder(write(), max_sentences=200)
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
        "train: 2 documents",
        "dev: 0 documents",
        "test: 1 documents",
        "1 documents without a summary",
        "1 documents cut to 200 sentences",
    ]
    with pytest.raises(InputError, match="found split 'all', expected one of"):
        folder.of("all")


def test_all_sentences_are_read_where_there_is_no_limit(write):
    folder = DocumentFolder(write(), max_sentences=None)
    assert [len(one.sentences) for one in folder] == [2, 2, 300]
    assert folder.counts.cut == 0
    with pytest.raises(InputError, match="max_sentences must be 1 or more"):
        DocumentFolder(folder.folder, max_sentences=0)


BAD: list[tuple[str | bytes, str]] = [
    ("{", "no JSON"),
    ("", "no JSON"),
    ("[" * 100_000, "no JSON"),
    ("[]", "no JSON object"),
    ('{"text": "A b."}', "no _id"),
    ('{"_id": "", "text": "A b."}', "an _id that is empty"),
    ('{"_id": "a b", "text": "A b."}', "or has white space"),
    ('{"_id": ["a"], "text": "A b."}', "_id that is not a string"),
    ('{"_id": true, "text": "A b."}', "_id that is not a string"),
    ('{"_id": "d9"}', "neither text nor sentences"),
    ('{"_id": "d9", "text": "A.", "sentences": ["A."]}', "both text and"),
    ('{"_id": "d9", "text": " \\n"}', "an empty document"),
    ('{"_id": "d9", "sentences": []}', "an empty document"),
    ('{"_id": "d9", "sentences": ["", " "]}', "an empty document"),
    ('{"_id": "d9", "sentences": ["a", 1]}', "sentences that are not a list"),
    ('{"_id": "d9", "text": "A", "summary": {}}', "a summary that is neither"),
    ('{"_id": "d9", "text": "A", "title": []}', "title that is not a string"),
    ('{"_id": "d9", "text": "A", "class": 1.5}', "class that is not a string"),
    ('{"_id": "d9", "text": "A", "split": "eval"}', "a split other than train"),
    ('{"_id": "2", "text": "A"}', "a repeated _id"),
    (b'{"_id": "d9", "text": "\xff"}', "invalid UTF-8"),
]


@pytest.mark.parametrize(("line", "problem"), BAD)
def test_a_bad_line_is_named(write, line, problem):
    folder = write(line, {"_id": "d10", "text": "Good."})
    with pytest.raises(InputError, match=problem) as caught:
        DocumentFolder(folder).count()
    message = str(caught.value)
    assert message.startswith(f"{folder / 'documents.jsonl.gz'}:4: found ")
    assert 'expected a JSON object on one line: "_id", "text" or' in message
    assert message.endswith("--on_bad_line=skip (lstm-dssm-train)")
    assert "\n" not in message


def test_bad_lines_are_left_out_and_counted(write):
    lines = [line for line, _ in BAD]
    path = write(*lines, {"_id": "d10", "text": "Good."})
    folder = DocumentFolder(path, max_bad_lines=len(BAD))
    assert [one.id for one in folder] == ["d1", "2", "d3", "d10"]
    assert [one.id for one in folder] == ["d1", "2", "d3", "d10"]
    counted = folder.counts.bad_lines
    assert counted.total() == len(BAD) and counted["an empty document"] == 3
    assert (
        folder.describe()
        .splitlines()[-1]
        .startswith("21 bad lines left out (no JSON: 3, an empty document: 3, ")
    )
    with pytest.raises(
        InputError,
        match="24: found invalid .* there are 21 bad .* --max_bad_lines=20",
    ):
        list(DocumentFolder(path, max_bad_lines=20))


def test_a_file_without_a_good_line(tmp_path):
    path = tmp_path / "documents.jsonl"
    with pytest.raises(
        InputError, match=r"documents\.jsonl: no such file .*documents\.md"
    ):
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


def test_a_line_that_is_too_long():
    line = b'{"_id": "d", "text": "' + b"a " * (1 << 23) + b'"}'
    assert parse_document(line) == "a line of more than 16 MB"


def test_the_lines_of_the_page_about_documents():
    page = pathlib.Path(__file__).parents[2] / "docs" / "documents.md"
    block = page.read_text().split("```json\n")[1].split("```")[0]
    first, second = map(parse_document, block.encode().splitlines())
    assert isinstance(first, Document) and isinstance(second, Document)
    assert len(first.sentences) == len(second.sentences) == 2
    assert len(first.summary) == 1 and len(second.summary) == 2
    assert first[4:] == ("", "train") and second[4:] == ("trees", "test")
    message = page.read_text().split("```text\n")[1].split("```")[0]
    assert LINE_EXPECTED in message and "an empty document" in message


def test_queries_and_their_documents(write):
    path = write()
    (path / "queries.jsonl").write_text('{"_id": "q1", "text": "two"}\n')
    (path / "qrels").mkdir()
    qrels = path / "qrels" / "test.tsv"
    qrels.write_text("query-id\tcorpus-id\tscore\nq1\t2\t1\n")
    folder = DocumentFolder(path)
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


@pytest.mark.parametrize(
    ("name", "documents", "sentences", "classes", "queries"),
    [
        ("papers", (1186, 77, 155), 241_657, 276, (None, 1010, 1942)),
        ("bbc", (1250, 178, 357), 33_980, 5, (None, None, None)),
    ],
)
def test_real_folders(
    shared_data, name, documents, sentences, classes, queries
):
    folder = DocumentFolder(shared_data / name)
    splits = ("train", "dev", "test")
    assert tuple(map(folder.count, splits)) == documents
    assert folder.counts.sentences == sentences
    assert len(folder.counts.classes) == classes
    assert folder.counts.bad_lines == {} and folder.counts.no_summary == 0
    for split, count in zip(splits, queries, strict=True):
        assert (split in folder.splits) == (count is not None)
        if count is not None:
            assert len(folder.qrels(split)) == count
