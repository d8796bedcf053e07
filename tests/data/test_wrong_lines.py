"""A wrong line of any file is named by its number, with what was expected."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from keras_lstm_dssm.data import ClickLog, Collection, DocumentFolder
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import read_run

GOOD = {
    "clicks.tsv": "good\tclick\n",
    "clicks.tsv.gz": "good\tclick\n",
    "corpus.jsonl": '{"_id": "d1", "title": "x"}\n{"_id": "d2", "text": "y"}\n',
    "queries.jsonl.gz": '{"_id": "q1", "text": "x"}\n',
    "qrels/train.tsv": "query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t0\n",
    "documents.jsonl.gz": '{"_id": "2", "text": "One. Two."}\n',
    "run.trec": "q Q0 d 1 2 x\n\n",
}
EXPECTED = {
    "clicks": "expected query TAB clicked title in UTF-8",
    "documents": 'a JSON object on one line: "_id", "text" or.*'
    r"--max_bad_lines=100 \(lstm-dssm-train\)$",
}
"""The beginning of a file's name -> what its messages say at their end."""
READ: dict[str, list[Any]] = {
    "clicks": [
        lambda path: ClickLog(path).count(),
        lambda path: list(ClickLog(path)),
    ],
    "documents": [lambda path: DocumentFolder(path.parent).count()],
    "run": [read_run],
}
CLICKS = [
    (b"no tab", "no tab"),
    (b"", "no tab"),
    (b"a\tb\tc", "2 tabs"),
    (b"a\tb\tc\nd", "2 tabs"),  # as many tabs as lines, not one in each
    (b" \tb", "an empty query"),
    (b"\t", "an empty query"),
    (b"\xef\xbb\xbf\tb", "an empty query"),
    (b"a\t \r", "an empty title"),
    (b"\xff x\tb", "invalid UTF-8"),
    (b"x\ted\xed\xa0\x80", "invalid UTF-8"),
    (b"a\0\tb", "a NUL byte"),
    (b"a\tb\rc", "a carriage return within the line"),
    (b"a\t" + b"b" * (10 << 20), "a line of more than 1 MB"),
]  # fmt: skip
DOCUMENTS: list[tuple[str | bytes, str]] = [
    ("{", "no JSON"),
    ("", "no JSON"),
    ("[" * 100_000, "no JSON"),
    ("[]", "no JSON object"),
    ('{"text": "A b."}', "no _id"),
    ('{"_id": "", "text": "A b."}', "an _id that is empty"),
    ('{"_id": "a b", "text": "A b."}', ".*or has white space"),
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
]  # fmt: skip
OTHERS = {
    "corpus.jsonl": [
        ('{"_id": "d3"', "'{"),
        ('{"title": "x"}', ""),
        ("[]", ""),
        ('{"_id": "d1", "title": "x"}', "_id 'd1' ag"),
        ('{"_id": "d 3", "title": "x"}', ".*without white space"),
        ('{"_id": null, "title": "x"}', "_id None"),
        ('{"_id": "d3", "title": 7}', "title 7, exp"),
        ('{"_id": "d3", "title": null}', "an empty title and"),
        ('{"_id": "d3", "title": " "}', "an empty title and"),
        (b'{"_id": "\xff"}', "invalid UTF-8"),
    ],
    "queries.jsonl.gz": [
        ('{"_id": "q1", "text": "x"}', "_id 'q1'"),
        ('{"_id": "q3", "text": ""}', "an empty text"),
        ('{"_id": "q3", "text": ["x"]}', r"text \['x'\], ex"),
    ],
    "qrels/train.tsv": [
        ("q1\td1\t2", "score 2 .*expected 1 as"),
        ("q1\td2\t\u00b2", ".*whole number"),
        ("q1\td2\t--1", ".*whole number"),
        ("q1\td1", "'q1.*TAB"),
        ("q1\td1\tx", ""),
        ("q9\td1\t1", "query 'q9'"),
        ("q1\td9\t1", "document 'd9'"),
    ],
    "run.trec": [
        ("q Q0 d 1 2.5", "'q Q0 d 1 2.5', expected"),
        ("q Q0 e 2 ? x", "'q Q0 e 2 . x'"),
        ("q Q0 d 1 nan x", "'q Q0 d 1 nan x'"),
        ("q Q0 d 2 1 x", "document d twice for query q, expected it once"),
    ],
}  # fmt: skip
TABLE = [
    *(("clicks.tsv", *row) for row in CLICKS),
    *(("clicks.tsv.gz", *row) for row in CLICKS),
    *(("documents.jsonl.gz", *row) for row in DOCUMENTS),
    *((name, *row) for name, rows in OTHERS.items() for row in rows),
]  # fmt: skip


def encoded(line: str | bytes) -> bytes:
    return line if isinstance(line, bytes) else line.encode()


def write(folder: Path, name: str, *lines: str | bytes) -> Path:
    """Writes a file of good lines, and of others behind them."""
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    data = GOOD[name].encode() + b"".join(encoded(x) + b"\n" for x in lines)
    path.write_bytes(gzip.compress(data, 1) if name.endswith("gz") else data)
    return path


@pytest.mark.parametrize(
    ("name", "line", "problem"), TABLE, ids=lambda value: str(value)[:20]
)
def test_a_wrong_line_is_named(tmp_path, name, line, problem):
    for good in GOOD:
        write(tmp_path, good)
    path = write(tmp_path, name, line, GOOD[name].splitlines()[-1])
    number, kind = GOOD[name].count("\n") + 1, name.split(".")[0]
    for read in READ.get(kind, [lambda _: Collection(tmp_path).qrels("train")]):
        with pytest.raises(InputError) as caught:
            read(path)
        message = str(caught.value)
        expected = f"{re.escape(str(path))}:{number}: found {problem}"
        assert re.match(expected, message), message
        assert re.search(EXPECTED.get(kind, "expected"), message), message
        assert "\n" not in message


def test_bad_documents_are_left_out_and_counted(tmp_path):
    lines = [line for line, _ in DOCUMENTS]
    write(tmp_path, "documents.jsonl.gz", *lines, '{"_id": 1, "text": "Good."}')
    folder = DocumentFolder(tmp_path, max_bad_lines=len(lines))
    for _ in range(2):
        assert [one.id for one in folder] == ["2", "1"]
    counted = folder.counts.bad_lines
    assert counted.total() == len(lines) and counted["an empty document"] == 3
    last = folder.describe().splitlines()[-1]
    assert last.startswith(
        "21 bad lines left out (no JSON: 3, an empty document: 3, "
    )
    with pytest.raises(
        InputError,
        match="22: found invalid .* it, 21 lines are bad .* --max_bad_lines=20",
    ):
        list(DocumentFolder(tmp_path, max_bad_lines=20))


@pytest.mark.parametrize(("damage", "line"), [
    (lambda b: b[:-9], 1000),
    (lambda b: b[: len(b) // 2], "[2-9].."),
    (lambda b: b"not gzip", 1),
    (lambda b: b[:30] + b[40:], 1),
    (lambda b: b[:4], 1),
])  # fmt: skip
def test_damaged_gzip_names_the_line_where_it_ends(tmp_path, damage, line):
    for good in GOOD:
        write(tmp_path, good)
    for name, of_line in (
        ("clicks.tsv.gz", "q{0}\tt{0}{0}\n"),
        ("queries.jsonl.gz", '{{"_id": "q{0}", "text": "x"}}\n'),
    ):
        text = "".join(of_line.format(i * i) for i in range(999))
        (tmp_path / name).write_bytes(damage(gzip.compress(text.encode())))
    for read, name in (
        (lambda: ClickLog(tmp_path / "clicks.tsv.gz").count(), "clicks.tsv"),
        (lambda: Collection(tmp_path).queries, "queries.jsonl"),
    ):
        with pytest.raises(
            InputError, match=rf"{name}.gz:{line}: found a damaged gzip"
        ):
            read()


def test_a_line_of_a_document_may_be_long_but_not_too_long(tmp_path):
    """As bad as a wrong one: it is named, counted and left out."""
    line = json.dumps({"_id": "d", "text": "a " * (1 << 23)})
    write(tmp_path, "documents.jsonl.gz", line)
    with pytest.raises(InputError, match="gz:2: found a line of more than 16"):
        DocumentFolder(tmp_path).count()


@pytest.mark.parametrize(("lines", "found"), [
    ("query\ttitle\nbolt\thex bolt\n", "1: found a header"),
    ('bolt\thex bolt\n"1/2"" bolt"\t"Hex bolt 1/2"" x 3"""\n',
     "2: found a field in quotes whose quotes are doubled"),
])  # fmt: skip
def test_spreadsheets_are_for_prepare(lines, found, tmp_path):
    (tmp_path / "clicks.tsv").write_text(lines)
    with pytest.raises(InputError, match=f"{found}.*lstm-dssm-prepare"):
        ClickLog(tmp_path / "clicks.tsv").count()
    (tmp_path / "clicks.tsv").write_text('"hex bolt"\t1/2"" bolt "new"\n')
    assert ClickLog(tmp_path / "clicks.tsv").count() == 1
    (tmp_path / "clicks.tsv").write_text("query\ttitle of a book\n")
    assert ClickLog(tmp_path / "clicks.tsv").count() == 1
