"""Stores documents' vectors in an `.npy` file, or in a folder of parts.

A part has the vectors for some consecutive lines of an input file. It is a
`.parquet` file, or an `.npy` file and the files `.ids`, `.hashes`, `.titles`
and, if a title has tags, `.tags`. A `.json` file describes the part and is
written last. `EncodedParts` reads all parts of a folder.
"""

import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from errno import ENOSPC
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from keras_lstm_dssm.errors import InputError, import_optional
from keras_lstm_dssm.export.bulk.documents import DocumentRows
from keras_lstm_dssm.files import open_lock, replacing, write_json
from keras_lstm_dssm.fingerprints import HASH_BYTES
from keras_lstm_dssm.plain_files import (
    TEXTS_BYTES,
    check_plain_file,
    damage_named,
    read_array,
    read_bytes,
    read_json,
    read_text,
    text_lines,
)
from keras_lstm_dssm.settings.fields import FORMATS

_FLOAT_BYTES = 4

_EXPECTED = "as lstm-dssm-encode writes it: restore the part, or encode again"


class PartInfo(NamedTuple):
    """Description of a part, the content of a `.json` file."""

    format: str  # one of `FORMATS`
    file: str  # name of the input file, without the folder
    file_number: int  # index of the input file
    files: int  # number of input files
    part: int  # index of the part in the input file
    last: bool  # whether this is the last part of the input file
    lines: int  # input lines of each part; a file's last part may have fewer
    rows: int  # number of titles
    dimension: int  # width of a vector
    input_sha256: str  # hash of ids, titles and tags
    encoder_sha256: str  # fingerprint of the encoder
    tagged: int  # number of titles with tags


def part_name(file_number: int, part: int) -> str:
    """Returns the name of a part, without a suffix."""
    return f"part-{file_number:05}-{part:05}"


def read_info(folder: Path, name: str) -> PartInfo | None:
    """Reads the description of a part; `None` if the part is not complete."""
    path = folder / f"{name}.json"
    check_plain_file(path)
    if not path.exists():
        return None
    values = read_json(path)
    with damage_named(path, f"expected a part {_EXPECTED}"):
        info = PartInfo(**values)
        for field, kind in PartInfo.__annotations__.items():
            value = getattr(info, field)
            if type(value) is not kind or (kind is int and value < 0):
                raise ValueError(f"found {field} {value!r:.40}")
        if info.format not in FORMATS:
            raise ValueError(f"found format {info.format!r:.40}")
    data = folder / f"{name}.{info.format}"
    if not data.exists():
        raise InputError(f"{data}: not found, expected a part {_EXPECTED}")
    check_plain_file(data)
    # `EncodedParts.read` allocates memory for the number of vectors that the
    # `.json` file states. So the data file must have at least as many vectors.
    least = info.rows * info.dimension * _FLOAT_BYTES
    if (size := data.stat().st_size) < least:
        raise InputError(
            f"{data}: found {size:,} bytes, expected {least:,} or more for"
            f" {info.rows:,} vectors of {info.dimension:,} numbers,"
            f" {_EXPECTED}"
        )
    return info


def write_info(folder: Path, name: str, info: PartInfo) -> None:
    """Writes the description of a part, and so marks the part as complete."""
    write_json(folder / f"{name}.json", info._asdict())


@contextmanager
def locked_part(folder: Path, name: str) -> Iterator[None]:
    """Holds the lock of a part; removes files that killed processes left."""
    path = folder / f".lock-{name}"
    while True:
        lock = open_lock(path)
        fcntl.flock(lock, fcntl.LOCK_EX)
        # The process that held the lock before may have removed `path`. A lock
        # on a removed file excludes no process, so a new lock is needed.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock.fileno()), path.stat()):
                break
        lock.close()
    with lock:
        for partial in folder.glob(f".partial-*-{name}.*"):
            partial.unlink(missing_ok=True)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def has_parts(path: str | os.PathLike[str]) -> bool:
    """Returns whether a path is a folder of encoded parts."""
    return any(Path(path).glob("part-*.json"))


class PartRows(NamedTuple):
    """All or some rows of a part. A row is a title, its id and its vector."""

    ids: Sequence[str]
    vectors: np.ndarray  # unit vectors, float32 [n, d]
    hashes: np.ndarray  # hashes of the encoded texts, uint8 [n, 16]
    titles: Sequence[str]  # shown with hits; without line breaks
    tags: Sequence[Sequence[str]] = ()  # empty if no title has tags

    @property
    def tag_rows(self) -> Sequence[Sequence[str]]:
        """The tags of each title; if `tags` is empty, `()` for each title."""
        return self.tags or [()] * len(self.ids)


class EncodedParts:
    """Iterates over the parts that `lstm-dssm-encode --shard` has written."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._infos: dict[str, PartInfo] = {}
        for path in sorted(self.folder.glob("part-*.json")):
            info = read_info(self.folder, path.stem)
            assert info
            self._infos[path.stem] = info
        if not self._infos:
            raise InputError(
                f"{folder}: found no part, expected parts that "
                "lstm-dssm-encode --shard has written"
            )
        self._check_complete()
        infos = self._infos.values()
        self.rows = sum(info.rows for info in infos)
        self.dimension = next(iter(infos)).dimension
        self.encoder_sha256 = next(iter(infos)).encoder_sha256
        self.tagged = sum(info.tagged for info in infos)
        if not self.rows:
            raise InputError(f"{folder}: found no title in all of its parts")

    def __iter__(self) -> Iterator[PartRows]:
        for name, info in self._infos.items():
            yield read_part(self.folder, name, info)

    def read(self) -> DocumentRows:
        """Reads all parts, and skips repeated documents.

        Raises `InputError` if an id has two different documents.
        """
        ids: list[str] = []
        titles: list[str] = []
        tags: list[tuple[str, ...]] = []
        vectors = np.empty((self.rows, self.dimension), np.float32)
        hashes = np.empty((self.rows, HASH_BYTES), np.uint8)
        row_of: dict[str, int] = {}
        row_of_title: dict[bytes, int] = {}
        for part in self:
            start, new_rows = len(ids), []
            for row, (key, title_hash, row_tags) in enumerate(
                zip(part.ids, part.hashes, part.tag_rows, strict=True)
            ):
                first = row_of.setdefault(key, len(ids))
                if first == len(ids):
                    new_rows.append(row)
                    ids.append(key)
                    titles.append(part.titles[row])
                    hashes[first] = title_hash
                    tags.append(tuple(row_tags))
                    continue
                other_title = (hashes[first] != title_hash).any()
                if other_title or tags[first] != tuple(row_tags):
                    difference = "titles" if other_title else "sets of tags"
                    raise InputError(
                        f"{self.folder}: id {key!r:.60} has two different "
                        f"{difference}; give each document its own id"
                    )
            vectors[start : len(ids)] = part.vectors[new_rows]
            for row in range(start, len(ids)):
                # A title may be in two parts, and the two vectors may differ in
                # the last bits. All rows of the title get the first vector.
                first = row_of_title.setdefault(hashes[row].tobytes(), row)
                if first < row:
                    vectors[row] = vectors[first]
        count = len(ids)
        known_tags = tags if self.tagged else ()
        return DocumentRows(ids, vectors[:count], known_tags, titles)

    def _check_complete(self) -> None:
        first = next(iter(self._infos.values()))
        by_file: dict[int, list[PartInfo]] = {}
        for name, info in self._infos.items():
            for field in ("files", "lines", "dimension", "encoder_sha256"):
                found, expected = getattr(info, field), getattr(first, field)
                if found != expected:
                    raise InputError(
                        f"{self.folder}/{name}.json: found {field}={found}, "
                        f"expected {expected} as in the first part: encode "
                        "one input, with one encoder, into a folder"
                    )
            by_file.setdefault(info.file_number, []).append(info)
        for number in range(first.files):
            infos = by_file.get(number, [])
            numbers = [info.part for info in infos]
            missing = next(
                (i for i, part in enumerate(numbers) if part != i), len(infos)
            )
            if missing < len(infos) or not infos or not infos[-1].last:
                raise InputError(
                    f"{self.folder}: {part_name(number, missing)} is missing; "
                    "expected all parts: start lstm-dssm-encode again for the "
                    "shards that are not finished"
                )


def read_part(folder: Path, name: str, info: PartInfo) -> PartRows:
    """Reads a part; raises `InputError` if a file of the part is damaged."""
    if not info.rows:
        return PartRows(
            [],
            np.empty((0, info.dimension), np.float32),
            np.empty((0, HASH_BYTES), np.uint8),
            [],
        )
    rows = _FORMATS[info.format].read(folder / name, info.tagged > 0)
    shapes = (
        len(rows.ids), rows.vectors.shape, rows.hashes.shape,
        len(rows.titles), len(rows.tag_rows), sum(map(bool, rows.tags)),
    )  # fmt: skip
    expected = (
        info.rows, (info.rows, info.dimension), (info.rows, HASH_BYTES),
        info.rows, info.rows, info.tagged,
    )  # fmt: skip
    if shapes != expected:
        raise InputError(
            f"{folder / name}: found {shapes[0]:,} ids, vectors {shapes[1]}, "
            f"{shapes[5]:,} tagged titles, expected a part of {info.rows:,} ids"
            f", vectors {expected[1]}, {info.tagged:,} tagged, {_EXPECTED}"
        )
    return rows


@contextmanager
def writing_part(
    folder: Path, name: str, kind: str, dimension: int
) -> Iterator[Callable[[PartRows], None]]:
    """Opens the files of a part; yields a function that writes rows to them.

    The part is complete when `write_info` is called after the `with` block.
    """
    base = folder / name
    with ExitStack() as files:
        part = _FORMATS[kind](
            lambda suffix: files.enter_context(_binary_file(base, suffix)),
            dimension,
        )

        def write(rows: PartRows) -> None:
            _check_ids(base, rows.ids)
            part.write(rows)

        try:
            yield write
        except BaseException:
            with suppress(Exception):  # the disk may be full
                part.finish()
            raise
        part.finish()


class _NpyPart:
    """Writes and reads a part with vectors in an `.npy` file."""

    def __init__(
        self, open_file: Callable[[str], IO[bytes]], dimension: int
    ) -> None:
        self._vectors = open_file("npy")
        self._ids = open_file("ids")
        self._hashes = open_file("hashes")
        self._titles = open_file("titles")
        self._tags: IO[bytes] | None = None  # opened when a title has tags
        self._open_file = open_file
        self._dimension = dimension
        self._rows = 0
        self._write_header()

    def write(self, rows: PartRows) -> None:
        self._vectors.write(np.ascontiguousarray(rows.vectors).data)
        self._ids.write("".join(f"{key}\n" for key in rows.ids).encode())
        self._hashes.write(rows.hashes.tobytes())
        self._titles.write("".join(f"{t}\n" for t in rows.titles).encode())
        if rows.tags and self._tags is None:
            self._tags = self._open_file("tags")
            self._tags.write(b"\n" * self._rows)
        if self._tags is not None:
            lines = (f"{','.join(tags)}\n" for tags in rows.tag_rows)
            self._tags.write("".join(lines).encode())
        self._rows += len(rows.ids)

    def finish(self) -> None:
        self._vectors.seek(0)
        self._write_header()

    def _write_header(self) -> None:
        # `finish` writes the header again, with the final number of rows.
        # NumPy pads both headers to the same size.
        np.lib.format.write_array_header_1_0(
            self._vectors,
            {
                "descr": "<f4",
                "fortran_order": False,
                "shape": (self._rows, self._dimension),
            },
        )

    @staticmethod
    def read(base: Path, tagged: bool) -> PartRows:
        def lines(suffix: str) -> list[str]:
            path = base.with_name(f"{base.name}.{suffix}")
            return read_text(path, remedy, max_bytes=TEXTS_BYTES).split("\n")

        remedy = f"expected a part {_EXPECTED}"
        vectors = read_vectors(base.with_name(f"{base.name}.npy"))
        hashes = read_bytes(base.with_name(f"{base.name}.hashes"), remedy)
        whole = len(hashes) - len(hashes) % HASH_BYTES
        tags: list[list[str]] = []
        if tagged:
            tags = [
                line.split(",") if line else [] for line in lines("tags")[:-1]
            ]
        return PartRows(
            lines("ids")[:-1],
            vectors,
            np.frombuffer(hashes[:whole], np.uint8).reshape(-1, HASH_BYTES),
            lines("titles")[:-1],
            tags,
        )


class _ParquetPart:
    """Writes and reads a part as one parquet file."""

    def __init__(
        self, open_file: Callable[[str], IO[bytes]], dimension: int
    ) -> None:
        self._arrow = arrow = import_optional("pyarrow", "parquet")
        parquet = import_optional("pyarrow.parquet", "parquet")
        self._schema = arrow.schema(
            [
                ("id", arrow.string()),
                ("vector", arrow.list_(arrow.float32(), dimension)),
                ("title_hash", arrow.binary(HASH_BYTES)),
                ("title", arrow.string()),
                ("tags", arrow.list_(arrow.string())),
            ]
        )
        # Compression would not help: vectors and hashes look like random bits.
        self._parquet = parquet.ParquetWriter(
            open_file("parquet"),
            self._schema,
            use_dictionary=False,
            compression="none",
        )

    def write(self, rows: PartRows) -> None:
        arrow, types = self._arrow, self._schema.types
        key, vector, title_hash, title, tags = types
        columns = [
            arrow.array(rows.ids, key),
            arrow.FixedSizeListArray.from_arrays(
                rows.vectors.ravel(), type=vector
            ),
            arrow.FixedSizeBinaryArray.from_buffers(
                title_hash,
                len(rows.hashes),
                [None, arrow.py_buffer(rows.hashes.tobytes())],
            ),
            arrow.array(rows.titles, title),
            arrow.array(rows.tag_rows, tags),
        ]
        self._parquet.write_batch(
            arrow.record_batch(columns, schema=self._schema)
        )

    def finish(self) -> None:
        try:
            self._parquet.close()
        finally:  # else, after an error, the destructor would write again
            self._parquet.is_open = False

    @staticmethod
    def read(base: Path, tagged: bool) -> PartRows:
        arrow = import_optional("pyarrow", "parquet")
        parquet = import_optional("pyarrow.parquet", "parquet")
        path = base.with_name(f"{base.name}.parquet")
        check_plain_file(path)
        expected = f"expected a part {_EXPECTED}"
        with damage_named(path, expected, arrow.ArrowException):
            _check_unpacked(parquet.read_metadata(path), path)
            table = parquet.read_table(path).combine_chunks()
            table.validate(full=True)
            vectors = table["vector"].combine_chunks()
            hashes = table["title_hash"].combine_chunks()
            width = vectors.type.list_size
            ids = table["id"].to_pylist()
            titles = table["title"].to_pylist()
            tags = table["tags"].to_pylist() if tagged else ()
            texts = chain(ids, titles, *tags)
            if not all(isinstance(text, str) for text in texts):
                raise ValueError("found an id, title or tag that is no text")
            rows = vectors.flatten().to_numpy().reshape(-1, width)
            if rows.dtype != np.float32:
                raise ValueError(f"found vectors of {rows.dtype}")
            return PartRows(
                ids,
                rows,
                np.frombuffer(b"".join(hashes.to_pylist()), np.uint8).reshape(
                    -1, HASH_BYTES
                ),
                titles,
                tags,
            )


def _check_unpacked(metadata: Any, path: Path) -> None:
    """Rejects a parquet file that unpacks to more than twice its size."""
    groups = range(metadata.num_row_groups)
    unpacked = sum(metadata.row_group(n).total_byte_size for n in groups)
    if unpacked > 2 * (size := path.stat().st_size):
        raise ValueError(f"found {size:,} bytes that unpack to {unpacked:,}")


_FORMATS: dict[str, type[_NpyPart] | type[_ParquetPart]] = dict(
    zip(FORMATS, (_NpyPart, _ParquetPart), strict=True)
)


@contextmanager
def _binary_file(base: Path, suffix: str) -> Iterator[IO[bytes]]:
    path = base.with_name(f"{base.name}.{suffix}")
    with replacing(path) as partial, partial.open("wb") as file:
        yield file


def _check_ids(path: str | os.PathLike[str], ids: Sequence[str]) -> None:
    for key in ids:
        if "\n" in key or "\r" in key:
            raise InputError(
                f"{path}: id {key!r:.60} has a line break; expected ids of one "
                "line"
            )


def write_vectors(path: str | os.PathLike[str], vectors: np.ndarray) -> None:
    """Writes vectors, float32 `[n, d]`, as an `.npy` file."""
    with replacing(path) as partial, partial.open("wb") as file:
        try:
            np.save(file, vectors, allow_pickle=False)
        except OSError as error:
            # NumPy's error states the number of written bytes, but no reason.
            reason = error.strerror or "the disk is full"
            raise OSError(error.errno or ENOSPC, reason) from error


def read_vectors(path: str | os.PathLike[str]) -> np.ndarray:
    """Maps a `.npy` file of vectors, float32 `[n, d]`, into memory."""
    expected = "expected float32 [n, d], as lstm-dssm-encode writes it"
    vectors = read_array(path, expected)
    if vectors.dtype != np.float32 or vectors.ndim != 2 or not vectors.size:
        raise InputError(
            f"{path}: found {vectors.dtype} {list(vectors.shape)}, {expected}"
        )
    return vectors


def write_ids(path: str | os.PathLike[str], ids: Sequence[str]) -> None:
    """Writes one id in each line, in the order of the vectors."""
    _check_ids(path, ids)
    with replacing(path) as partial:
        with partial.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{key}\n" for key in ids)


def read_ids(path: str | os.PathLike[str], rows: int) -> list[str]:
    r"""Reads the ids that belong to a file of vectors.

    Args:
        path: A file that `write_ids` wrote.
        rows: The number of vectors, which must be the number of ids.

    Raises:
        InputError: The file cannot be read, or does not have `rows` lines.

    Example:
    >>> _ = Path("ids.txt").write_text("b1\nb2\n")
    >>> read_ids("ids.txt", rows=2)
    ['b1', 'b2']
    """
    ids = list(text_lines(path))
    if len(ids) != rows:
        raise InputError(
            f"{path}: found {len(ids)} ids for {rows} vectors; expected an "
            "id for each vector, as lstm-dssm-encode --ids writes them"
        )
    return ids
