"""The files of one part of encoded titles: written atomically, read back.

A part has a name, such as `part-00002-00013`: the third file of the input,
and its fourteenth run of lines. `NAME.json` describes it and is written last,
so that a part with this file is complete.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from keras_lstm_dssm.errors import InputError, import_optional
from keras_lstm_dssm.export.documents import read_vectors
from keras_lstm_dssm.files import read_json, replacing, write_json
from keras_lstm_dssm.fingerprints import HASH_BYTES

FORMATS = ("npy", "parquet")
"""How parts are written: NumPy arrays and text, or one parquet file."""

_EXPECTED = "as lstm-dssm-encode writes it: restore the part, or encode again"


class PartInfo(NamedTuple):
    """Describes one part of the vectors that `lstm-dssm-encode` writes.

    It is stored beside the vectors, in the file `.json` of the part.

    Attributes:
        format: One of `FORMATS`.
        file: Name of the input file, without its folder.
        file_number: Index of the file among those of the input.
        files: Number of input files.
        part: Index of the part in its file.
        last: Whether it is the last part of its file.
        lines: Number of lines in each part of a file but the last.
        rows: Number of titles.
        dimension: Width of a vector.
        input_sha256: Hash of ids and titles.
        encoder_sha256: Fingerprint of the encoder.
    """

    format: str
    file: str
    file_number: int
    files: int
    part: int
    last: bool
    lines: int
    rows: int
    dimension: int
    input_sha256: str
    encoder_sha256: str


def part_name(file_number: int, part: int) -> str:
    """Returns the name of a part, without a suffix."""
    return f"part-{file_number:05}-{part:05}"


def read_info(folder: Path, name: str) -> PartInfo | None:
    """Reads the description of a part; `None` if the part is not complete.

    Raises:
        InputError: The file is damaged.
    """
    path = folder / f"{name}.json"
    if not path.exists():
        return None
    try:
        info = PartInfo(**read_json(path))
    except TypeError as error:
        raise InputError(f"{path}: {error}; {_EXPECTED}") from None
    data = folder / f"{name}.{info.format}"
    if not data.exists():
        raise InputError(f"{data}: not found, expected a part {_EXPECTED}")
    return info


def write_info(folder: Path, name: str, info: PartInfo) -> None:
    """Completes a part by its description; removes what other starts left."""
    write_json(folder / f"{name}.json", info._asdict())
    for partial in folder.glob(f".partial-*-{name}.*"):
        partial.unlink(missing_ok=True)


class PartRows(NamedTuple):
    """The rows of a part, or some of them.

    Attributes:
        ids: The id of each title.
        vectors: float32 `[n, d]`.
        hashes: Hashes of the titles, uint8 `[n, 16]`.
    """

    ids: list[str]
    vectors: np.ndarray
    hashes: np.ndarray


class PartWriter:
    """Writes the rows of a part as they come, in one of the formats.

    Use it in a `with` statement: at its end the files get their names, unless
    an exception is raised. `write_info` then completes the part.

    Args:
        folder: The folder of the parts.
        name: The name of the part.
        kind: One of `FORMATS`.
        dimension: Width of a vector.

    Raises:
        InputError: An id has a line break; or pyarrow is not installed.
        OSError: A file cannot be written.
    """

    def __init__(
        self, folder: Path, name: str, kind: str, dimension: int
    ) -> None:
        self._base = folder / name
        self._kind = kind
        self._dimension = dimension
        self._files = ExitStack()
        self._writer: _NpyWriter | _ParquetWriter

    def __enter__(self) -> "PartWriter":
        with ExitStack() as files:
            make = _NpyWriter if self._kind == "npy" else _ParquetWriter
            self._writer = make(
                [files.enter_context(self._opened(s)) for s in make.suffixes],
                self._dimension,
            )
            self._files = files.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        with self._files as files:
            if error[0] is None:
                self._writer.finish()
            else:
                self._writer.abort()
                files.__exit__(*error)

    def write(self, rows: PartRows) -> None:
        """Writes some rows."""
        self._writer.write(rows)

    @contextmanager
    def _opened(self, suffix: str) -> Iterator[IO[bytes]]:
        path = self._base.with_name(f"{self._base.name}.{suffix}")
        with replacing(path) as partial, partial.open("wb") as file:
            yield file


class _NpyWriter:
    suffixes = ("npy", "ids", "hashes")

    def __init__(self, files: list[IO[bytes]], dimension: int) -> None:
        self._vectors, self._ids, self._hashes = files
        self._dimension = dimension
        self._rows = 0
        self._write_header()

    def write(self, rows: PartRows) -> None:
        check_ids(rows.ids)
        self._vectors.write(np.ascontiguousarray(rows.vectors).data)
        self._ids.write("".join(f"{key}\n" for key in rows.ids).encode())
        self._hashes.write(rows.hashes.tobytes())
        self._rows += len(rows.ids)

    def finish(self) -> None:
        self._vectors.seek(0)
        self._write_header()

    def abort(self) -> None:
        """Does nothing: the files are removed."""

    def _write_header(self) -> None:
        # NumPy leaves room for the digits of any number of rows.
        np.lib.format.write_array_header_1_0(
            self._vectors,
            {
                "descr": "<f4",
                "fortran_order": False,
                "shape": (self._rows, self._dimension),
            },
        )


class _ParquetWriter:
    suffixes = ("parquet",)

    def __init__(self, files: list[IO[bytes]], dimension: int) -> None:
        self._arrow = arrow = import_optional("pyarrow", "parquet")
        parquet = import_optional("pyarrow.parquet", "parquet")
        self._schema = arrow.schema(
            [
                ("id", arrow.string()),
                ("vector", arrow.list_(arrow.float32(), dimension)),
                ("title_hash", arrow.binary(HASH_BYTES)),
            ]
        )
        # Vectors and hashes do not compress, and have no repeated values.
        self._parquet = parquet.ParquetWriter(
            files[0], self._schema, use_dictionary=False, compression="none"
        )

    def write(self, rows: PartRows) -> None:
        arrow, (key, vector, title_hash) = self._arrow, self._schema.types
        check_ids(rows.ids)
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
        ]
        self._parquet.write_batch(
            arrow.record_batch(columns, schema=self._schema)
        )

    def finish(self) -> None:
        try:
            self._parquet.close()
        finally:
            self._parquet.is_open = False

    def abort(self) -> None:
        """Closes the writer, which would otherwise write at some later time."""
        with suppress(Exception):  # the disk may be full
            self.finish()


def check_ids(ids: list[str]) -> None:
    """Checks that ids can be written one a line.

    Raises:
        InputError: One has a line break.
    """
    for key in ids:
        if "\n" in key or "\r" in key:
            raise InputError(
                f"id {key!r:.60} has a line break; expected ids of one line"
            )


def read_part(folder: Path, name: str, info: PartInfo) -> PartRows:
    """Reads a part.

    Raises:
        InputError: A file is missing or damaged.
    """
    if not info.rows:
        return PartRows(
            [],
            np.empty((0, info.dimension), np.float32),
            np.empty((0, HASH_BYTES), np.uint8),
        )
    read = _read_npy if info.format == "npy" else _read_parquet
    rows = read(folder / name)
    shapes = len(rows.ids), rows.vectors.shape, rows.hashes.shape
    expected = (
        info.rows, (info.rows, info.dimension), (info.rows, HASH_BYTES),
    )  # fmt: skip
    if shapes != expected:
        raise InputError(
            f"{folder / name}: found {shapes[0]:,} ids and vectors of shape "
            f"{list(shapes[1])}, expected {list(expected[1])}, {_EXPECTED}"
        )
    return rows


def _read_npy(base: Path) -> PartRows:
    vectors = read_vectors(base.with_name(f"{base.name}.npy"))
    ids = base.with_name(f"{base.name}.ids").read_bytes().decode()
    hashes = base.with_name(f"{base.name}.hashes").read_bytes()
    whole = len(hashes) - len(hashes) % HASH_BYTES
    return PartRows(
        ids.split("\n")[:-1],
        vectors,
        np.frombuffer(hashes[:whole], np.uint8).reshape(-1, HASH_BYTES),
    )


def _read_parquet(base: Path) -> PartRows:
    arrow = import_optional("pyarrow", "parquet")
    parquet = import_optional("pyarrow.parquet", "parquet")
    path = base.with_name(f"{base.name}.parquet")
    try:
        table = parquet.read_table(path).combine_chunks()
        vectors = table["vector"].combine_chunks()
        hashes = table["title_hash"].combine_chunks()
        width = vectors.type.list_size
        return PartRows(
            table["id"].to_pylist(),
            vectors.flatten().to_numpy().reshape(-1, width),
            np.frombuffer(b"".join(hashes.to_pylist()), np.uint8).reshape(
                -1, HASH_BYTES
            ),
        )
    except (OSError, KeyError, ValueError, arrow.ArrowException) as error:
        reason = str(error).strip().split("\n")[0]
        raise InputError(
            f"{path}: {reason}; expected a part {_EXPECTED}"
        ) from error
