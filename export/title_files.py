"""Reads titles from files of any size, in parts of whole lines or rows."""

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn, Protocol

from keras_lstm_dssm.data.document_lines import LINE_EXPECTED, parse_document
from keras_lstm_dssm.data.line_reader import EmptyFile, line_chunks
from keras_lstm_dssm.errors import InputError, import_optional
from keras_lstm_dssm.export.documents import joined_sentences
from keras_lstm_dssm.export.title_lines import (
    TitleLine,
    check_tag_count,
    parse_title,
    split_tags,
)
from lstm_dssm_client.texts import tags_as_bytes

ID, TITLE, TAGS = "id", "title", "tags"
"""Columns of a parquet file; the first and the last may be missing."""


class Titles(NamedTuple):
    """Some titles with their ids and tags.

    Attributes:
        ids: The id of each title.
        titles: The titles, or whole documents.
        tags: The tags of each title; none if no title has any.
    """

    ids: list[str]
    titles: list[str]
    tags: Sequence[Sequence[str]] = ()

    @classmethod
    def of(cls, rows: Iterable[TitleLine]) -> "Titles":
        """Makes one `Titles` of the lines of a file."""
        rows = list(rows)
        tags = [row.tags for row in rows]
        return cls(
            [row.id for row in rows],
            [row.title for row in rows],
            tags if any(tags) else (),
        )


class TitleReader(Protocol):
    """Protocol of what reads one file from its start to its end."""

    def take(self, lines: int, at_once: int) -> Iterator[Titles]:
        """Reads the next lines, some at once; blank ones have no title.

        The next call of any method comes after the last of these titles.
        """

    def skip(self, lines: int) -> None:
        """Passes over the next lines."""

    @property
    def at_end(self) -> bool:
        """Whether there are no more lines."""


def title_files(spec: str) -> list[str]:
    """Returns the files of titles that a specification names.

    Args:
        spec: Paths or globs, separated by commas: texts of one title a line
            (a title; an id, a tab and a title; or these, one more tab and
            tags with commas between), `.jsonl` documents, each compressed if
            it ends in `.gz`, or `.parquet`.

    Returns:
        The files, those of a glob sorted, each once.

    Raises:
        InputError: There is none.
    """
    files: dict[str, None] = {}
    for part in (part.strip() for part in spec.split(",") if part.strip()):
        found = [part] if os.path.isfile(part) else sorted(glob.glob(part))
        found = [path for path in found if os.path.isfile(path)]
        if not found:
            raise InputError(
                f"{part}: no such file, expected titles (.txt, .tsv, .jsonl, "
                "each also .gz, or .parquet): check the path"
            )
        files.update(dict.fromkeys(found))
    if not files:
        raise InputError("no file of titles was given: give a path or a glob")
    return list(files)


def open_titles(path: str) -> TitleReader:
    """Opens a file of titles; see `title_files`.

    Raises:
        InputError: The file is wrong; also later, while it is read.
    """
    return ParquetTitles(path) if is_parquet(path) else TextTitles(path)


def is_parquet(path: str | os.PathLike[str]) -> bool:
    """Returns whether a file is read as parquet."""
    return os.fspath(path).endswith(".parquet")


def count_lines(path: str) -> int:
    """Counts the lines of a text file, or the rows of a parquet file."""
    if is_parquet(path):
        return ParquetTitles(path).rows
    return sum(chunk.count(b"\n") for chunk in _chunks(path))


class TextTitles:
    """Reads a text file of titles, or of documents in JSON.

    Args:
        path: The file, compressed if it ends in `.gz`.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._json = path.removesuffix(".gz").endswith(".jsonl")
        self._chunks = _chunks(path)
        self._rest = b""  # whole lines that are not read yet
        self._line = 0

    @property
    def at_end(self) -> bool:
        """Whether there are no more lines."""
        if not self._rest:
            self._rest = next(self._chunks, b"")
        return not self._rest

    def take(self, lines: int, at_once: int) -> Iterator[Titles]:
        """Reads the next lines; see `TitleReader`."""
        while lines and not self.at_end:
            *taken, self._rest = self._rest.split(b"\n", min(lines, at_once))
            lines -= len(taken)
            rows = [
                row for line in taken if (row := self._parsed(line)) is not None
            ]
            yield Titles.of(rows)

    def skip(self, lines: int) -> None:
        """Passes over the next lines."""
        while lines and not self.at_end:
            count = self._rest.count(b"\n")
            if count > lines:
                count = lines
                self._rest = self._rest.split(b"\n", lines)[-1]
            else:
                self._rest = b""
            lines -= count
            self._line += count

    def _parsed(self, line: bytes) -> TitleLine | None:
        self._line += 1
        if not line.strip():
            return None
        if self._json:
            document = parse_document(line)
            if isinstance(document, str):
                self._refuse(f"found {document}, expected {LINE_EXPECTED}")
            text = joined_sentences(document.sentences)
            return TitleLine(document.id, text, ())
        try:
            title = parse_title(line.decode())
        except UnicodeDecodeError:
            self._refuse(f"found {line[:60]!r}, expected a title in UTF-8")
        if isinstance(title, str):
            self._refuse(title)
        return title

    def _refuse(self, problem: str) -> NoReturn:
        raise InputError(
            f"{self.path}:{self._line}: {problem}: correct or remove it"
        )


class ParquetTitles:
    """Reads a parquet file: column `title`, and perhaps `id` and `tags`.

    Tags are a list of strings, or one string with commas between.

    Args:
        path: The file.

    Attributes:
        rows: Number of its rows.

    Raises:
        InputError: It is no such file, or pyarrow is not installed.
    """

    def __init__(self, path: str) -> None:
        parquet = import_optional("pyarrow.parquet", "parquet")
        arrow = import_optional("pyarrow", "parquet")
        self.path = path
        try:
            self._file = parquet.ParquetFile(path)
        except (OSError, arrow.ArrowException) as error:
            raise InputError(
                f"{path}: cannot be read as parquet ({_first_line(error)}): "
                "write it again, or check the path"
            ) from error
        names = self._file.schema_arrow.names
        if TITLE not in names:
            raise InputError(
                f"{path}: found the columns {', '.join(names)}, expected "
                f"{TITLE!r} and, unless titles are ids, {ID!r}: rename them"
            )
        self._columns = [name for name in (ID, TITLE, TAGS) if name in names]
        self.rows: int = self._file.metadata.num_rows
        self._row = 0

    @property
    def at_end(self) -> bool:
        """Whether there are no more rows."""
        return self._row >= self.rows

    def take(self, lines: int, at_once: int) -> Iterator[Titles]:
        """Reads the next rows; see `TitleReader`."""
        stop = min(self._row + lines, self.rows)
        groups, skipped = self._groups(stop)
        batches = self._file.iter_batches(
            at_once, row_groups=groups, columns=self._columns
        )
        for batch in batches:
            rows = batch.slice(skipped, stop - self._row)
            skipped = max(0, skipped - len(batch))
            if len(rows):
                yield self._parsed(rows)
                self._row += len(rows)

    def skip(self, lines: int) -> None:
        """Passes over the next rows, which are not read."""
        self._row = min(self._row + lines, self.rows)

    def _groups(self, stop: int) -> tuple[list[int], int]:
        """Returns the row groups up to a row, and the rows to leave out."""
        groups: list[int] = []
        before = skipped = 0
        for number in range(self._file.num_row_groups):
            size = self._file.metadata.row_group(number).num_rows
            if before + size > self._row and before < stop:
                if not groups:
                    skipped = self._row - before
                groups.append(number)
            before += size
        return groups, skipped

    def _parsed(self, batch: Any) -> Titles:
        columns = batch.to_pydict()
        titles = columns[TITLE]
        ids = columns.get(ID, titles)
        for offset, (key, title) in enumerate(zip(ids, titles, strict=True)):
            good = isinstance(title, str) and title.strip()
            if not good or key is None or key == "":
                raise InputError(
                    f"{self.path}: row {self._row + offset} has the title "
                    f"{title!r:.60} and the id {key!r:.40}, expected texts "
                    "that are not empty: correct or remove it"
                )
        tags = [
            self._tags(self._row + offset, value)
            for offset, value in enumerate(columns.get(TAGS, ()))
        ]
        return Titles(
            [str(key) for key in ids], titles, tags if any(tags) else ()
        )

    def _tags(self, row: int, value: Any) -> tuple[str, ...]:
        """Returns the tags of a row, checked."""
        if not value:
            return ()
        given = value.split(",") if isinstance(value, str) else value
        try:
            tags = split_tags(tags_as_bytes(given).decode())
            check_tag_count(tags)
        except InputError as error:
            raise InputError(
                f"{self.path}: row {row}: {error}: correct or remove it"
            ) from None
        return tags


def _chunks(path: str) -> Iterator[bytes]:
    try:
        yield from line_chunks(path)
    except EmptyFile:
        return


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0]
