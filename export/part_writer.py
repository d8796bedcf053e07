"""PartWriter: writes one part of encoded titles, in one of two formats."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from keras_lstm_dssm.errors import InputError, import_optional
from keras_lstm_dssm.export.part_files import PartRows, tag_lines
from keras_lstm_dssm.files import replacing
from keras_lstm_dssm.fingerprints import HASH_BYTES

OpenFile = Callable[[str], IO[bytes]]
"""From a suffix, such as `.npy`, to the open file of a part that has it."""


class PartWriter:
    """Writes the rows of a part as they come, in one of the formats.

    Use it in a `with` statement: at its end the files get their names, unless
    an exception is raised. `write_info` then completes the part.

    Args:
        folder: The folder of the parts.
        name: The name of the part.
        kind: One of `part_files.FORMATS`.
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
        with self._files as files:
            make = _NpyWriter if self._kind == "npy" else _ParquetWriter
            self._writer = make(self._open, self._dimension)
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

    def _open(self, suffix: str) -> IO[bytes]:
        return self._files.enter_context(self._opened(suffix))

    @contextmanager
    def _opened(self, suffix: str) -> Iterator[IO[bytes]]:
        path = self._base.with_name(f"{self._base.name}.{suffix}")
        with replacing(path) as partial, partial.open("wb") as file:
            yield file


class _NpyWriter:
    def __init__(self, open_file: OpenFile, dimension: int) -> None:
        self._vectors = open_file("npy")
        self._ids = open_file("ids")
        self._hashes = open_file("hashes")
        self._tags: IO[bytes] | None = None  # without tags there is no file
        self._open_file = open_file
        self._dimension = dimension
        self._rows = 0
        self._write_header()

    def write(self, rows: PartRows) -> None:
        check_ids(rows.ids)
        self._vectors.write(np.ascontiguousarray(rows.vectors).data)
        self._ids.write("".join(f"{key}\n" for key in rows.ids).encode())
        self._hashes.write(rows.hashes.tobytes())
        if rows.tags and self._tags is None:
            self._tags = self._open_file("tags")
            self._tags.write(b"\n" * self._rows)
        if self._tags is not None:
            self._tags.write("".join(tag_lines(rows.tags_of_each)).encode())
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
    def __init__(self, open_file: OpenFile, dimension: int) -> None:
        self._arrow = arrow = import_optional("pyarrow", "parquet")
        parquet = import_optional("pyarrow.parquet", "parquet")
        self._schema = arrow.schema(
            [
                ("id", arrow.string()),
                ("vector", arrow.list_(arrow.float32(), dimension)),
                ("title_hash", arrow.binary(HASH_BYTES)),
                ("tags", arrow.list_(arrow.string())),
            ]
        )
        # Vectors and hashes do not compress, and have no repeated values.
        self._parquet = parquet.ParquetWriter(
            open_file("parquet"),
            self._schema,
            use_dictionary=False,
            compression="none",
        )

    def write(self, rows: PartRows) -> None:
        arrow, (key, vector, title_hash, tags) = self._arrow, self._schema.types
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
            arrow.array(rows.tags_of_each, tags),
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
