"""Documents on disk: titles, ids, vectors."""

import gzip
import pickle
from pathlib import Path

import numpy as np
import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export import Documents, read_documents
from keras_lstm_dssm.export.bulk.documents import (
    read_ids,
    read_vectors,
    write_ids,
    write_vectors,
)
from keras_lstm_dssm.text import split_sentences
from tests.limits import largest_file


@pytest.mark.parametrize(
    ("content", "ids"),
    [
        ("\ufeffhex bolt\r\n\r\nwood glue \nhex bolt\n", None),
        ("a\thex bolt\nb\twood glue", ["a", "b"]),
    ],
)
def test_titles_are_their_own_ids_once(
    tmp_path: Path, content: str, ids: list[str] | None
) -> None:
    titles = ["hex bolt", "wood glue"]
    plain, packed = tmp_path / "titles.txt", tmp_path / "titles.tsv.gz"
    plain.write_bytes(content.encode())
    packed.write_bytes(gzip.compress(content.encode()))
    for path in (plain, packed):
        assert read_documents(path) == Documents(ids or titles, titles)


def test_tags_of_titles(tmp_path: Path) -> None:
    path = tmp_path / "titles.tsv"
    path.write_text("a\thex bolt\tsteel, in stock,steel\nb\twood glue\nlamp\n")
    assert read_documents(path) == Documents(
        ["a", "b", "lamp"],
        ["hex bolt", "wood glue", "lamp"],
        tags=[("steel", "in stock"), (), ()],
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\tb\tc\td\n", "titles:1: found 'a.*expected a title"),
        (b"x\ty\n\tz\n", "titles:2"),
        (b"a\tb\tx\na\tb\ty\n", "titles:2: id 'a' has other tags above"),
        (b"a\tb\tx,,y\n", "titles:1: found 'a.tb.tx,,y', expected a title"),
        (b"a\tb\t \n", "one more tab and tags that are separated by commas"),
        (b"a\tb\t" + b",".join(b"%d" % i for i in range(33)), "found 33 tag"),
        (b"a\tb\na\tc\n", "titles:2: id 'a' has another title"),
        (b"\n \n", "found an empty file"),
        ("\u3000\n".encode(), "no titles"),
        (b"a\thex bolt\nb\tcaf\xe9\n", "titles:2: found invalid UTF-8"),
    ],
)
def test_wrong_lines(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "titles"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_documents(path)


LINES = (
    '{"_id": "a", "title": "X", "text": "Use bolts.  They hold! e.g. here."}\n'
    '{"_id": 2, "sentences": ["One. Two", "", "Glue"], "split": "test"}\n'
)


def test_documents_in_json(tmp_path: Path) -> None:
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
        )
    assert split_sentences(first) == ["Use bolts.", "They hold! e.g. here."]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}\n", "d.jsonl:1: found no _id, expected a JSON object"),
        (LINES + LINES, "d.jsonl:3: found a repeated _id"),
        ("\n", "d.jsonl: found an empty file"),
        ('{"_id": "a", "text": " "}', "d.jsonl:1: found an empty document"),
    ],
)
def test_wrong_documents_in_json(
    content: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        read_documents(path)
    with pytest.raises(InputError, match="documents.jsonl"):
        read_documents(tmp_path)


def test_broken_gzip(tmp_path: Path) -> None:
    path = tmp_path / "titles.gz"
    path.write_bytes(gzip.compress(b"hex bolt\n" * 1000)[:-12])
    with pytest.raises(InputError, match="titles.gz:890: found a damaged gzip"):
        read_documents(path)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    vectors = np.float32([[0.6, -0.8], [0, 1]])
    write_vectors(tmp_path / "v.npy", vectors)
    write_ids(tmp_path / "v.ids", ["上海 1", "b"])
    np.testing.assert_array_equal(read_vectors(tmp_path / "v.npy"), vectors)
    assert read_ids(tmp_path / "v.ids", 2) == ["上海 1", "b"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "v.ids",
        "v.npy",
    ]


def test_no_room_for_vectors(tmp_path: Path) -> None:
    path = tmp_path / "v.npy"
    with largest_file(1000), pytest.raises(OSError) as caught:
        write_vectors(path, np.zeros([300, 4], np.float32))
    assert str(caught.value) == f"[Errno 28] the disk is full: '{path}'"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (np.zeros([2, 3]), r"found float64 \[2, 3\]"),
        (np.zeros([3], np.float32), r"found float32 \[3\]"),
        (np.zeros([0, 3], np.float32), r"found float32 \[0, 3\]"),
        (b"", "expected float32"),
        (b"\x93NUMPY", "expected float32"),
        (pickle.dumps([1]), "no array of numbers"),
    ],
)
def test_files_that_hold_no_vectors(
    tmp_path: Path, content: np.ndarray | bytes, message: str
) -> None:
    path = tmp_path / "v.npy"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        write_vectors(path, content)
    with pytest.raises(InputError, match=f"v.npy: .*{message}"):
        read_vectors(path)


def test_missing_files_and_archives(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="v.npy: .*No such file"):
        read_vectors(tmp_path / "v.npy")
    np.savez(tmp_path / "v.npz", a=np.zeros(2))
    with pytest.raises(InputError, match="v.npz: found several arrays"):
        read_vectors(tmp_path / "v.npz")


def test_ids_are_lines(tmp_path: Path) -> None:
    for name in ("a\nb", "a\r"):
        with pytest.raises(InputError, match="of row 1 has a line break"):
            write_ids(tmp_path / "v.ids", ["x", name])
    write_ids(tmp_path / "v.ids", ["a"])
    with pytest.raises(InputError, match="v.ids: found 1 ids for 2 vectors"):
        read_ids(tmp_path / "v.ids", 2)
