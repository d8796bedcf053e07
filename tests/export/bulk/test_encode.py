"""Encoded titles on disk: parts and their shards, vectors and ids."""

import gzip
import pickle
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.bulk import documents
from keras_lstm_dssm.export.bulk import encode as encode_module
from keras_lstm_dssm.export.bulk.encode import PartJob, Shard, encode_shard
from keras_lstm_dssm.export.bulk.parts import (
    EncodedParts,
    read_ids,
    read_vectors,
    write_ids,
    write_vectors,
)
from keras_lstm_dssm.files import write_json
from keras_lstm_dssm.fingerprints import title_hashes
from keras_lstm_dssm.plain_files import read_json
from tests.export.bulk.test_documents import write_parquet
from tests.limits import largest_file

ROWS = 23


def encode(titles: list[str]) -> np.ndarray:
    """Stands for an encoder: a vector that tells the title."""
    return np.array([[len(t), sum(map(ord, t))] for t in titles], np.float32)


def title(row: int) -> str:
    return f"título {row} " + "x" * (row % 5)


@pytest.fixture(scope="module", params=["tsv", "tsv.gz", "txt", "parquet"])
def files(request, tmp_path_factory) -> list[str]:
    """23 titles, the last three in a second file; the third file has none."""
    folder = tmp_path_factory.mktemp("files")
    kind = request.param
    for number, rows in enumerate((range(20), range(20, ROWS), range(0))):
        path = folder / f"titles-{number}.{kind}"
        if kind == "parquet":
            titles, ids = map(title, rows), [f"t{r}" for r in rows]
            write_parquet(path, 6, title=[*titles], id=ids)
            continue
        lines = [
            f"{title(r)}\n" if kind == "txt" else f"t{r}\t{title(r)}\r\n"
            for r in rows
        ]
        data = "".join(lines).encode()
        path.write_bytes(gzip.compress(data) if kind == "tsv.gz" else data)
    return documents.document_files(f"{folder}/titles-*")


def job(folder: Path, files: list[str], **changes: object) -> PartJob:
    folder.mkdir(exist_ok=True)
    whole = PartJob(folder, files, 7, "npy", "an encoder")
    return whole._replace(**changes)


@pytest.fixture(autouse=True)
def three_at_once(monkeypatch) -> None:
    monkeypatch.setattr(encode_module, "LINES_AT_ONCE", 3)


@pytest.mark.parametrize("kind", ["npy", "parquet"])
def test_shards_have_all_titles_once_in_order(files, kind, tmp_path):
    whole = job(tmp_path, files, kind=kind)
    names = [
        result.name
        for index in (2, 0, 1)
        for result in encode_shard(encode, whole, Shard(index, 3))
    ]
    assert sorted(names) == [
        "part-00000-00000", "part-00000-00001", "part-00000-00002",
        "part-00001-00000", "part-00002-00000",
    ]  # fmt: skip
    parts = EncodedParts(tmp_path)
    titles = [title(row).strip() for row in range(ROWS)]
    if files[0].endswith("parquet"):
        titles = [title(row) for row in range(ROWS)]
    ids = titles if ".txt" in files[0] else [f"t{row}" for row in range(ROWS)]
    assert (parts.rows, parts.dimension) == (ROWS, 2)
    assert [len(part.ids) for part in parts] == [7, 7, 6, 3, 0]
    rows = parts.read()
    assert rows.ids == ids
    assert rows.titles == [title(row).strip() for row in range(ROWS)]
    np.testing.assert_array_equal(rows.vectors, encode(titles))
    hashes = np.concatenate([part.hashes for part in parts])
    np.testing.assert_array_equal(hashes, title_hashes(titles))
    # Another number of shards, or none, writes the same parts.
    other = job(tmp_path / "one", files, kind=kind)
    for result in encode_shard(encode, other):
        assert not result.was_complete
        for path in other.folder.glob(f"{result.name}.*"):
            assert path.read_bytes() == (tmp_path / path.name).read_bytes()


def test_a_second_start_encodes_what_is_missing(files, tmp_path):
    first, calls = job(tmp_path, files), []

    def counting(titles: list[str]) -> np.ndarray:
        calls.append(titles)
        if sum(map(len, calls)) > 14:
            raise KeyboardInterrupt
        return encode(titles)

    with pytest.raises(KeyboardInterrupt):
        [*encode_shard(counting, first)]
    assert not [*tmp_path.glob(".partial*")]
    with pytest.raises(InputError, match="part-00000-00001 is missing|-00002"):
        EncodedParts(tmp_path)
    (tmp_path / ".partial-77-part-00000-00002.npy").touch()  # of a kill -9
    complete = [r.was_complete for r in encode_shard(encode, first)]
    assert complete[0] and not complete[-1]
    assert not [*tmp_path.glob(".partial*")]
    assert EncodedParts(tmp_path).rows == ROWS
    assert all(r.was_complete for r in encode_shard(encode, first))


def test_a_description_without_one_of_its_fields(tmp_path):
    path = tmp_path / "titles.txt"
    path.write_text("one\n")
    [result] = encode_shard(encode, job(tmp_path / "parts", [str(path)]))
    file = tmp_path / "parts" / f"{result.name}.json"
    info = read_json(file)
    del info["tagged"]
    write_json(file, info)
    message = f"{result.name}.json: .*'tagged'.; .*, or encode again"
    with pytest.raises(InputError, match=message):
        EncodedParts(tmp_path / "parts")


@pytest.mark.parametrize(("change", "message"), [
    ({"encoder_sha256": "other"}, "another encoder, an encoder, expected"),
    ({"lines": 8}, "another --rows_per_file, 7, expected 8"),
    ({"kind": "parquet"}, "another --format, npy, expected parquet"),
])  # fmt: skip
def test_parts_of_something_else_are_not_used(tmp_path, change, message):
    path = tmp_path / "titles.txt"
    path.write_text("one\ntwo\n")
    first = job(tmp_path / "parts", [str(path)])
    [*encode_shard(encode, first)]
    with pytest.raises(InputError, match=message):
        [*encode_shard(encode, first._replace(**change))]
    path.write_text("one\nthree\n")
    with pytest.raises(
        InputError, match="another hash of ids, titles and tags"
    ):
        [*encode_shard(encode, first)]


def test_memory_is_that_of_one_chunk(tmp_path):
    """Titles are read as they are encoded, not part by part."""
    path = tmp_path / "titles.txt"
    path.write_text("".join(f"title {n}\n" for n in range(50)))
    sizes = []

    def watched(titles: list[str]) -> np.ndarray:
        sizes.append(len(titles))
        return encode(titles)

    [*encode_shard(watched, job(tmp_path, [str(path)], lines=40))]
    assert max(sizes) == 3 and sum(sizes) == 50 + 2  # one to know the width


@pytest.mark.parametrize("kind", ["npy", "parquet"])
def test_a_full_disk(tmp_path, kind):
    """The file is named, and no part of it is left."""
    path = tmp_path / "titles.txt"
    path.write_text("".join(f"title {n}\n" for n in range(2000)))
    full = job(tmp_path / "parts", [str(path)], lines=2000, kind=kind)
    with largest_file(4096), pytest.raises(OSError) as error:
        [*encode_shard(encode, full)]
    assert error.value.filename.startswith(f"{full.folder}/part-00000-00000.")
    assert not [*full.folder.iterdir()]
    [*encode_shard(encode, full)]
    assert EncodedParts(full.folder).rows == 2000


def test_repeated_titles(tmp_path):
    path = tmp_path / "titles.tsv"
    path.write_text("a\tone\n\nb\ttwo\na\tone\nc\tone\n" * 4)
    [*encode_shard(encode, job(tmp_path, [str(path)], lines=4))]
    parts = EncodedParts(tmp_path)
    assert parts.rows == 16
    found = parts.read()
    assert found.ids == ["a", "b", "c"]
    assert found.titles == ["one", "two", "one"]
    path.write_text("a\tone\n" * 5 + "a\ttwo\n")
    other = job(tmp_path / "other", [str(path)], lines=4)
    [*encode_shard(encode, other)]
    with pytest.raises(InputError, match="id 'a' has two different titles"):
        EncodedParts(other.folder).read()
    path.write_text("a\tone\tx\n" * 4 + "a\tone\ty\n")
    tagged = job(tmp_path / "tagged", [str(path)], lines=4)
    [*encode_shard(encode, tagged)]
    with pytest.raises(InputError, match="id 'a' has two different sets of t"):
        EncodedParts(tagged.folder).read()


@pytest.mark.parametrize("kind", ["npy", "parquet"])
@pytest.mark.parametrize("suffix", ["tsv", "parquet"])
def test_tags(tmp_path, kind, suffix):
    """Tags are kept, also when the first parts and chunks have none."""
    pytest.importorskip("pyarrow")
    tags = {16: ["steel", "in stock"], 20: ["ü"], 22: ["steel"]}
    path = tmp_path / f"titles.{suffix}"
    if suffix == "tsv":
        rows = [f"t{r}\t{title(r)}" for r in range(ROWS)]
        for row, of_one in tags.items():
            rows[row] += f"\t{' , '.join(of_one)}"
        path.write_text("\n".join(rows))
    else:
        titles = [title(row).strip() for row in range(ROWS)]
        ids = [f"t{row}" for row in range(ROWS)]
        found = [tags.get(row) for row in range(ROWS)]
        write_parquet(path, 5, id=ids, title=titles, tags=found)
    whole = job(tmp_path / "parts", [str(path)], kind=kind)
    for _ in range(2):  # the second time nothing is encoded
        results = [*encode_shard(encode, whole)]
    assert all(result.was_complete for result in results)
    parts = EncodedParts(whole.folder)
    assert parts.tagged == 3
    assert parts.read().tags == [(*tags.get(r, ()),) for r in range(ROWS)]
    # The same titles with other tags are other titles.
    infos = [path.read_text() for path in sorted(whole.folder.glob("*.json"))]
    without = job(tmp_path / "without", [str(path)], kind=kind)
    if suffix == "tsv":
        path.write_text(path.read_text().replace("in stock", "sold"))
        with pytest.raises(InputError, match="part-00000-00002: .* titles"):
            [*encode_shard(encode, whole)]
        path.write_text("\n".join(row.split("\t")[1] for row in rows))
        [*encode_shard(encode, without)]
        assert EncodedParts(without.folder).read().tags == ()
        assert not [*without.folder.glob("*.tags")]
    assert ['"tagged": 0' in info for info in infos].count(True) == 2


def test_readers_skip_and_count(files):
    assert [*map(documents.count_lines, files)] == [20, 3, 0]
    reader = documents.open_document_file(files[0])
    reader.skip(8)
    (first,) = reader.take(2, 5)
    reader.skip(3)
    rest = [title for chunk in reader.take(99, 4) for title in chunk.titles]
    assert first.titles[0].strip() == title(8).strip()
    assert [len(first.titles), len(rest)] == [2, 7]
    assert rest[0].strip() == title(13).strip() and reader.at_end


def test_wrong_names(tmp_path):
    with pytest.raises(InputError, match="no such file, expected titles"):
        documents.document_files(f"{tmp_path}/nothing-*.tsv")
    for text in ("3", "16/16", "-1/2", "a/b", "0/0"):
        with pytest.raises(InputError, match="expected a number, a slash"):
            Shard.parse(text)
    assert Shard.parse("3/16") == Shard(3, 16)
    with pytest.raises(InputError, match="found no part, expected parts"):
        EncodedParts(tmp_path)


def test_what_is_written_is_read(tmp_path):
    vectors = np.float32([[0.6, -0.8], [0, 1]])
    write_vectors(tmp_path / "v.npy", vectors)
    write_ids(tmp_path / "v.ids", ["上海 1", "b"])
    np.testing.assert_array_equal(read_vectors(tmp_path / "v.npy"), vectors)
    assert read_ids(tmp_path / "v.ids", 2) == ["上海 1", "b"]
    assert {path.name for path in tmp_path.iterdir()} == {"v.ids", "v.npy"}


def test_no_room_for_vectors(tmp_path):
    path = tmp_path / "v.npy"
    with largest_file(1000), pytest.raises(OSError) as caught:
        write_vectors(path, np.zeros([300, 4], np.float32))
    assert str(caught.value) == f"[Errno 28] the disk is full: '{path}'"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("content", "message"), [
    (np.zeros([2, 3]), r"found float64 \[2, 3\]"),
    (np.zeros([3], np.float32), r"found float32 \[3\]"),
    (np.zeros([0, 3], np.float32), r"found float32 \[0, 3\]"),
    (b"", "expected float32"),
    (b"\x93NUMPY", "expected float32"),
    (pickle.dumps([1]), "no array of numbers"),
])  # fmt: skip
def test_files_that_hold_no_vectors(tmp_path, content, message):
    path = tmp_path / "v.npy"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        write_vectors(path, content)
    with pytest.raises(InputError, match=f"v.npy: .*{message}"):
        read_vectors(path)


def test_missing_files_and_archives(tmp_path):
    with pytest.raises(InputError, match="v.npy: .*No such file"):
        read_vectors(tmp_path / "v.npy")
    np.savez(tmp_path / "v.npz", a=np.zeros(2))
    with pytest.raises(InputError, match="v.npz: .*.found several arrays"):
        read_vectors(tmp_path / "v.npz")


def test_ids_are_lines(tmp_path):
    for name in ("a\nb", "a\r"):
        with pytest.raises(InputError, match="id 'a.*' has a line break"):
            write_ids(tmp_path / "v.ids", ["x", name])
    write_ids(tmp_path / "v.ids", ["a"])
    with pytest.raises(InputError, match="v.ids: found 1 ids for 2 vectors"):
        read_ids(tmp_path / "v.ids", 2)


def test_two_at_once_encode_each_part_once(tmp_path):
    """The second waits for a part, finds it complete and loses nothing."""
    path = tmp_path / "titles.txt"
    path.write_text("".join(f"bolt {n}\n" for n in range(40)))
    folder = tmp_path / "parts"
    results: list[Any] = []

    def slow(texts: list[str]) -> Any:
        time.sleep(0.01)
        return encode(texts)

    def run() -> None:
        results.extend(encode_shard(slow, job(folder, [str(path)])))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    names = [result.name for result in results]
    assert all(names.count(name) == 2 for name in names)
    by_name = {name: [r for r in results if r.name == name] for name in names}
    for both in by_name.values():
        assert sorted(result.was_complete for result in both) == [False, True]
    assert not [*folder.glob(".*")]
    assert EncodedParts(folder).rows == 40
