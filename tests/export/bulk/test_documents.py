"""Documents on disk: titles, ids, tags; in text, JSON and parquet."""

import gzip
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export import Documents, read_documents
from keras_lstm_dssm.export.bulk.documents import open_document_file
from keras_lstm_dssm.text import split_sentences


def write_parquet(path: Path, group: int = 9, **columns: Any) -> None:
    """Writes columns, texts also where they have no rows."""
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    types = {"tags": arrow.list_(arrow.string())}
    table = {
        name: arrow.array(values, types.get(name, arrow.string()))
        for name, values in columns.items()
    }
    parquet.write_table(arrow.table(table), path, row_group_size=group)


@pytest.mark.parametrize(("content", "ids"), [
    ("\ufeffhex bolt\r\n\r\nwood glue \nhex bolt\n", None),
    ("a\thex bolt\nb\twood glue", ["a", "b"]),
])  # fmt: skip
def test_titles_are_their_own_ids_once(tmp_path, content, ids):
    titles = ["hex bolt", "wood glue"]
    plain, packed = tmp_path / "titles.txt", tmp_path / "titles.tsv.gz"
    plain.write_bytes(content.encode())
    packed.write_bytes(gzip.compress(content.encode()))
    for path in (plain, packed):
        assert read_documents(path) == Documents(ids or titles, titles)


def test_tags_of_titles(tmp_path):
    path = tmp_path / "titles.tsv"
    path.write_text("a\thex bolt\tsteel, in stock,steel\nb\twood glue\nlamp\n")
    assert read_documents(path) == Documents(
        ["a", "b", "lamp"],
        ["hex bolt", "wood glue", "lamp"],
        tags=[("steel", "in stock"), (), ()],
    )


@pytest.mark.parametrize(("content", "message"), [
    (b"a\tb\tc\td\n", "titles:1: found 'a.*expected a title"),
    (b"x\ty\n\tz\n", "titles:2"),
    (b"a\tb\tx\na\tb\ty\n", "titles:2: id 'a' has other tags above"),
    (b"a\tb\tx,,y\n", "titles:1: found 'a.tb.tx,,y', expected a title"),
    (b"a\tb\t \n", "title TAB tags, with commas between tags"),
    (b"a\tb\t" + b",".join(b"%d" % i for i in range(33)), "found 33 tag"),
    (b"a\tb\na\tc\n", "titles:2: id 'a' has another title"),
    (b"\n \n", "found an empty file"),
    ("\u3000\n".encode(), "no titles"),
    (b"a\thex bolt\nb\tcaf\xe9\n", "titles:2: found invalid UTF-8"),
])  # fmt: skip
def test_wrong_lines(content, message, tmp_path):
    path = tmp_path / "titles"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_documents(path)


LINES = (
    '{"_id": "a", "title": "X", "text": "Use bolts.  They hold! e.g. here."}\n'
    '{"_id": 2, "sentences": ["One. Two", "", "Glue"], "split": "test"}\n'
)


@pytest.mark.parametrize("name", ["index.json", "products.csv.gz"])
def test_catalogues_are_for_prepare(name):
    with pytest.raises(InputError, match=f"{name}: .*lstm-dssm-prepare --cat"):
        read_documents(name)


def test_documents_in_json(tmp_path):
    """The sentences are joined so that they are divided again."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "documents.jsonl").write_text(LINES)
    packed = tmp_path / "any.jsonl.gz"
    packed.write_bytes(gzip.compress(LINES.encode()))
    first = "Use bolts.\n\nThey hold! e.g. here."
    for path in (folder, folder / "documents.jsonl", packed):
        documents = read_documents(path)
        assert documents == Documents(
            ["a", "2"],
            [first, "One. Two\n\nGlue"],
            [["Use bolts.", "They hold! e.g. here."], ["One. Two", "Glue"]],
            display=["X", "One. Two"],
        )
    assert split_sentences(first) == ["Use bolts.", "They hold! e.g. here."]


@pytest.mark.parametrize(("content", "message"), [
    ("{}\n", "d.jsonl:1: found no _id, expected a JSON object"),
    (LINES + LINES, "d.jsonl:3: found a repeated _id"),
    ("\n", "d.jsonl: found an empty file"),
    ('{"_id": "a", "text": " "}', "d.jsonl:1: found an empty document"),
])  # fmt: skip
def test_wrong_documents_in_json(content, message, tmp_path):
    path = tmp_path / "d.jsonl"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        read_documents(path)
    with pytest.raises(InputError, match="documents.jsonl"):
        read_documents(tmp_path)


def test_broken_gzip(tmp_path):
    path = tmp_path / "titles.gz"
    path.write_bytes(gzip.compress(b"hex bolt\n" * 1000)[:-12])
    with pytest.raises(InputError, match="titles.gz:890: found a damaged gzip"):
        read_documents(path)


def test_several_files_and_parquet(tmp_path):
    """Documents of several files are read as those of one."""
    (tmp_path / "a.tsv").write_text("a\thex bolt\tsteel, in stock\n")
    titles, tags = ["hex bolt", "wood glue"], [("steel", "in stock"), ()]
    columns = {"id": [*"ab"], "title": titles, "tags": [tags[0], None]}
    write_parquet(tmp_path / "b.parquet", **columns)
    expected = Documents(["a", "b"], titles, tags=tags)
    assert read_documents(tmp_path / "b.parquet") == expected
    assert read_documents(f"{tmp_path}/*.*") == expected
    (tmp_path / "a.tsv").write_text("b\tlamp\n")
    with pytest.raises(InputError, match="row 1: id 'b' has another title"):
        read_documents(f"{tmp_path}/a.tsv,{tmp_path}/b.parquet")
    (tmp_path / "b.parquet").write_bytes(b"no parquet")
    with pytest.raises(InputError, match="parquet: cannot .*expected parq"):
        read_documents(tmp_path / "b.parquet")


@pytest.mark.parametrize(("name", "content"), [
    ("t.tsv", "a\thex bolt\tx, y\n\nb\twood glue\r\n\u3000\nlamp\n"),
    ("d.jsonl", LINES),
])  # fmt: skip
def test_read_whole_or_in_parts(name, content, tmp_path):
    path = tmp_path / name
    path.write_text(content)
    chunks = [*open_document_file(str(path)).take(99, 2)]
    whole = read_documents(path)
    for field, values in whole._asdict().items():
        if field == "tags":
            parts = [chunk.tags or [()] * len(chunk.ids) for chunk in chunks]
            assert [t for part in parts for t in part if t] == [
                t for t in values if t
            ]
        else:
            parts = [getattr(chunk, field) for chunk in chunks]
            if values is None:  # fields
                assert {*parts} == {None}
            else:
                assert [*chain.from_iterable(parts)] == [*values]
