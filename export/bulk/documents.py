"""Reads files of documents: text files of titles, JSON lines, and parquet."""

import functools
import glob
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from keras_lstm_dssm.data.collection import Collection, find_file
from keras_lstm_dssm.data.documents import (
    LINE_EXPECTED,
    Document,
    DocumentFolder,
    parse_document,
)
from keras_lstm_dssm.errors import InputError, import_optional
from keras_lstm_dssm.evaluation.bm25 import FieldTexts
from keras_lstm_dssm.plain_files import EmptyFile, damage_named, line_chunks
from lstm_dssm_client.signatures import tags_as_bytes

ID, TITLE, TAGS = "id", "title", "tags"
"""Columns of a parquet file. `id` and `tags` are optional."""

_EMPTY_LINE = "\n\n"  # separates sentences in the text of a document
_ALL = 1 << 62  # a number of lines that no file reaches
_PARQUET_ROWS = 65_536  # maximum number of rows in memory at once

_Row = tuple[str, str, list[str], tuple[str, ...], str]
"""Id, text, sentences, tags and display title of one document."""


class Documents(NamedTuple):
    """Documents of a retriever.

    Attributes:
        ids: The documents' ids, which the retriever returns.
        titles: For each document, the text that is encoded: a title, or the
            whole document.
        sentences: The sentences of each document, or empty. A KeyVec encodes
            the sentences instead of `titles`.
        tags: The tags of each document, or empty. A search can filter by tags.
        display: For each document, the title that is shown with a hit. If
            empty, `titles` are shown.
        fields: The fields of the documents for BM25; by default BM25 reads
            `titles`.

    Example:
    >>> Documents(["d1", "d2"], ["hex bolt", "wood glue"]).titles[1]
    'wood glue'
    """

    ids: list[str]
    titles: list[str]
    sentences: Sequence[list[str]] = ()
    tags: Sequence[Sequence[str]] = ()
    display: Sequence[str] = ()
    fields: FieldTexts | None = None

    @property
    def shown(self) -> Sequence[str]:
        """For each document, the title that is shown with a hit."""
        return self.display or self.titles

    @classmethod
    def from_rows(cls, rows: Iterable[_Row]) -> "Documents":
        """Converts rows to columns."""
        ids, titles, sentences, tags, display = [
            list(column) for column in zip(*rows, strict=True)
        ] or [[], [], [], [], []]
        return cls(
            ids,
            titles,
            sentences if any(sentences) else (),
            tags if any(tags) else (),
            display if display != titles else (),
        )


class DocumentRows(NamedTuple):
    """The encoded documents of a retriever."""

    ids: Sequence[str]
    vectors: Any  # unit vectors, float32 [n, d]; None without an encoder
    tags: Sequence[Sequence[str]] = ()  # empty if no document has tags
    titles: Sequence[str] = ()  # shown with hits; empty if unknown


def check_documents(documents: Documents) -> None:
    """Raises `InputError` for wrong ids, titles, display titles or tags."""
    ids, tags = documents.ids, documents.tags
    titles = len(documents.titles)
    if titles == 0 or len(ids) != titles:
        raise InputError(
            f"a retriever needs titles, each with an id; got {titles} titles "
            f"and {len(ids)} ids"
        )
    if not all(ids):  # the id "" in a reply means that there is no hit
        row = [*map(bool, ids)].index(False)
        raise InputError(f"the id of document {row} (counted from 0) is empty")
    if len(tags) not in (0, len(ids)):
        raise InputError(
            f"found tags of {len(tags)} documents, expected tags of"
            f" {len(ids)}: give an empty list to each document without tags"
        )
    if len(documents.display) not in (0, len(ids)):
        raise InputError(
            f"found display titles of {len(documents.display)} documents,"
            f" expected titles of {len(ids)}: give each document a title"
        )
    for row, document_tags in enumerate(tags):
        try:
            checked_tags(document_tags)
        except InputError as error:
            raise InputError(f"document {row}: {error}") from None


MAX_TAGS = 32


def checked_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Checks, strips and returns the distinct tags of a document."""
    joined = tags_as_bytes(tags).decode("utf-8", "surrogateescape")
    distinct = tuple(dict.fromkeys(joined.split(","))) if joined else ()
    if len(distinct) > MAX_TAGS:
        raise InputError(
            f"found {len(distinct)} tags of one title, expected {MAX_TAGS} at"
            " most"
        )
    return distinct


def read_documents(
    path: str | os.PathLike[str], fields: str | None = None
) -> Documents:
    r"""Reads documents, one in each line: `title` or `id TAB title`.

    If a line has no id, its title is also the id. A third field has the tags,
    separated by commas. Repeated lines of a text file are read once, and blank
    lines are skipped. A folder of documents, or a file that ends in `.jsonl` or
    `.jsonl.gz`, holds documents of many sentences (see docs/documents.md). The
    sentences of a document, with empty lines between the sentences, are the
    document's text. In JSON, a repeated `_id` is an error.

    Args:
        path: A text file in UTF-8, with or without gzip compression; a
            `.parquet` file with the column `title` and, optionally, `id` and
            `tags` (lists, or strings with commas); several files or globs,
            with commas between them; a folder of documents; or a BEIR folder,
            see `Collection`.
        fields: Which product fields to read, if `path` is a BEIR folder; see
            `Recipe.fields`.

    Raises:
        InputError: The file is missing or has no document; a line is not
            UTF-8, has more than two tabs or a blank id, title or tag, or is not
            a document in JSON; two different documents have the same id.

    Example:
    >>> _ = Path("titles.tsv").write_text("d1\thex bolt\nd2\twood glue\n")
    >>> documents = read_documents("titles.tsv")
    >>> documents.ids, documents.titles
    (['d1', 'd2'], ['hex bolt', 'wood glue'])
    """
    path = os.fspath(path)
    if find_file(path, "corpus.jsonl"):
        collection = Collection(path, fields)
        tags, titles = collection.tags, collection.titles
        return Documents.from_rows(
            (key, text, [], checked_tags(tags[key]), titles[key])
            for key, text in collection.documents.items()
        )._replace(fields=collection.field_texts)
    if os.path.isdir(path):
        # No limit, because the model limits the number of encoded sentences.
        folder = DocumentFolder(path, max_sentences=None)
        return Documents.from_rows(map(_document_row, folder))
    is_path = os.path.exists(path) or not (glob.has_magic(path) or "," in path)
    distinct: dict[str, _Row] = {}
    files = [path] if is_path else document_files(path)
    readers = (open_document_file(name, distinct) for name in files)
    documents = Documents.from_rows(
        chain.from_iterable(
            rows for reader in readers for rows in reader.rows(_ALL, _ALL)
        )
    )
    if not documents.ids:
        raise InputError(f"{path}: no titles; expected one title a line")
    return documents


def has_json_documents(path: str | os.PathLike[str]) -> bool:
    """Returns whether a path is a folder, or a file of JSON documents."""
    name = os.fspath(path).removesuffix(".gz")
    return name.endswith(".jsonl") or os.path.isdir(path)


def is_parquet(path: str | os.PathLike[str]) -> bool:
    """Returns whether a file is read as parquet."""
    return os.fspath(path).endswith(".parquet")


def document_files(spec: str) -> list[str]:
    """Returns the distinct files of comma-separated paths and globs."""
    files: dict[str, None] = {}
    for part in (part.strip() for part in spec.split(",") if part.strip()):
        paths = [part] if os.path.isfile(part) else sorted(glob.glob(part))
        paths = [path for path in paths if os.path.isfile(path)]
        if not paths:
            raise InputError(
                f"{part}: no such file, expected titles (.parquet; or .txt, "
                ".tsv or .jsonl, also with .gz): check the path"
            )
        files.update(dict.fromkeys(paths))
    if not files:
        raise InputError("no file of titles was given: give a path or a glob")
    return list(files)


class DocumentReader(ABC):
    """Reads one file of documents from the start to the end.

    Readers can share `distinct`: id -> document that has been read. Repeated
    documents are left out; in `.jsonl` files they are errors. If `distinct` is
    `None`, repeated documents are not looked for.
    """

    def __init__(
        self, path: str, distinct: dict[str, _Row] | None = None
    ) -> None:
        self.path = path
        self._distinct = distinct

    def take(self, lines: int, at_once: int) -> Iterator[Documents]:
        """Reads the next `lines` lines or rows, at most `at_once` at a time."""
        return map(Documents.from_rows, self.rows(lines, at_once))

    @abstractmethod
    def rows(self, lines: int, at_once: int) -> Iterator[list[_Row]]:
        """Yields the same documents as `take`, as lists of `_Row`."""

    @abstractmethod
    def skip(self, lines: int) -> None:
        """Skips the next lines or rows."""

    @property
    @abstractmethod
    def at_end(self) -> bool:
        """Whether there are no more lines or rows."""

    def _is_new(self, row: _Row) -> bool:
        """Returns whether a row is new; rejects different rows with one id."""
        if self._distinct is None:
            return True
        earlier_row = self._distinct.setdefault(row[0], row)
        if earlier_row is not row and earlier_row != row:
            difference = (
                "other tags" if earlier_row[1] == row[1] else "another title"
            )
            raise InputError(
                f"id {row[0]!r} has {difference} above; give each document its"
                " own id"
            )
        return earlier_row is row


def open_document_file(
    path: str, distinct: dict[str, _Row] | None = None
) -> DocumentReader:
    """Returns a reader for the format of a file of documents."""
    if is_parquet(path):
        return ParquetDocuments(path, distinct)
    if path.removesuffix(".gz").endswith((".csv", ".json", ".ndjson")):
        raise InputError(
            f"{path}: found a catalogue, expected titles (.txt, .tsv, .jsonl or"
            " .parquet): convert the catalogue to a folder with"
            " lstm-dssm-prepare --catalogue, and give the folder with --data"
        )
    return TextDocuments(path, distinct)


def count_lines(path: str) -> int:
    """Counts the lines of a text file, or the rows of a parquet file."""
    if is_parquet(path):
        return ParquetDocuments(path).count
    try:
        return sum(chunk.count(b"\n") for chunk in line_chunks(path))
    except EmptyFile:
        return 0


class TextDocuments(DocumentReader):
    """Reads titles, or JSON documents (`.jsonl`), from a text or `.gz` file."""

    def __init__(
        self, path: str, distinct: dict[str, _Row] | None = None
    ) -> None:
        super().__init__(path, distinct)
        self._is_json = has_json_documents(path)
        self._chunks = line_chunks(path)
        self._rest = b""  # unread lines of the current chunk
        self._line = 0

    @property
    def at_end(self) -> bool:
        """See `DocumentReader`."""
        if not self._rest:
            try:
                self._rest = next(self._chunks, b"")
            except EmptyFile:
                if self._distinct is not None:
                    raise
        return not self._rest

    def rows(self, lines: int, at_once: int) -> Iterator[list[_Row]]:
        """See `DocumentReader`."""
        while lines and not self.at_end:
            *taken, self._rest = self._rest.split(b"\n", min(lines, at_once))
            lines -= len(taken)
            yield [row for line in taken if (row := self._row(line))]

    def skip(self, lines: int) -> None:
        """See `DocumentReader`."""
        while lines and not self.at_end:
            count = self._rest.count(b"\n")
            if count > lines:
                count = lines
                self._rest = self._rest.split(b"\n", lines)[-1]
            else:
                self._rest = b""
            lines -= count
            self._line += count

    def _row(self, line: bytes) -> _Row | None:
        """Parses a line; returns None for a blank or repeated line."""
        self._line += 1
        try:
            row = _parse_json(line) if self._is_json else _parse_title(line)
            if row and self._is_json and row[0] in (self._distinct or ()):
                raise InputError(
                    f"found a repeated _id, expected {LINE_EXPECTED}"
                )
            return row if row and self._is_new(row) else None
        except InputError as error:
            raise InputError(
                f"{self.path}:{self._line}: {error}: correct or remove the line"
            ) from None


def _parse_title(line: bytes) -> _Row | None:
    """Parses `title`, `id TAB title` or `id TAB title TAB tags`."""
    try:
        text = line.decode()
    except UnicodeDecodeError:
        raise InputError(
            f"found invalid UTF-8 in {line[:60]!r}, expected a title in UTF-8"
        ) from None
    if not text.strip():
        return None
    fields = [field.strip() for field in text.split("\t")]
    tags = fields[2].split(",") if len(fields) == 3 else []
    if len(fields) > 3 or not all(fields) or not all(map(str.strip, tags)):
        raise InputError(
            f"found {text!r:.80}, expected a title, or id TAB title, or id TAB"
            " title TAB tags, with commas between tags"
        )
    title = fields[min(1, len(fields) - 1)]
    return fields[0], title, [], checked_tags(tags) if tags else (), title


def _parse_json(line: bytes) -> _Row | None:
    if not line.strip():
        return None
    document = parse_document(line)
    if isinstance(document, str):
        raise InputError(f"found {document}, expected {LINE_EXPECTED}")
    return _document_row(document)


def _document_row(document: Document) -> _Row:
    """Converts a document; the first sentence replaces a missing title."""
    sentences = document.sentences
    title = document.title or sentences[0]
    return document.id, _EMPTY_LINE.join(sentences), sentences, (), title


class ParquetDocuments(DocumentReader):
    """Reads a parquet file with the columns `title`, `id` and `tags`."""

    def __init__(
        self, path: str, distinct: dict[str, _Row] | None = None
    ) -> None:
        super().__init__(path, distinct)
        parquet = import_optional("pyarrow.parquet", "parquet")
        arrow = import_optional("pyarrow", "parquet")
        self._reading = functools.partial(
            damage_named,
            path,
            "expected parquet: write it again, or check the path",
            arrow.ArrowException,
        )
        with self._reading():
            self._file = parquet.ParquetFile(path)
        names = self._file.schema_arrow.names
        if TITLE not in names:
            raise InputError(
                f"{path}: found the columns {', '.join(names)}, expected "
                f"{TITLE!r}, and {ID!r} unless titles are ids: rename them"
            )
        self._columns = [name for name in (ID, TITLE, TAGS) if name in names]
        self.count: int = self._file.metadata.num_rows
        self._next_row = 0

    @property
    def at_end(self) -> bool:
        """See `DocumentReader`."""
        return self._next_row >= self.count

    def rows(self, lines: int, at_once: int) -> Iterator[list[_Row]]:
        """See `DocumentReader`."""
        stop = min(self._next_row + lines, self.count)
        groups, skipped = self._groups(stop)
        with self._reading():
            batches = self._file.iter_batches(
                min(at_once, _PARQUET_ROWS),
                row_groups=groups,
                columns=self._columns,
            )
            for batch in batches:
                rows = batch.slice(skipped, stop - self._next_row)
                skipped = max(0, skipped - len(batch))
                if len(rows):
                    yield [row for row in self._parsed(rows) if row]

    def skip(self, lines: int) -> None:
        """See `DocumentReader`."""
        self._next_row = min(self._next_row + lines, self.count)

    def _groups(self, stop: int) -> tuple[list[int], int]:
        """Returns the row groups to read, and how many rows to skip first."""
        groups: list[int] = []
        group_start = skipped = 0
        for number in range(self._file.num_row_groups):
            size = self._file.metadata.row_group(number).num_rows
            if group_start + size > self._next_row and group_start < stop:
                if not groups:
                    skipped = self._next_row - group_start
                groups.append(number)
            group_start += size
        return groups, skipped

    def _parsed(self, batch: Any) -> Iterator[_Row | None]:
        columns = batch.to_pydict()
        titles = columns[TITLE]
        ids = columns.get(ID, titles)
        tags = columns.get(TAGS, [()] * len(titles))
        for values in zip(ids, titles, tags, strict=True):
            try:
                row = _parse_values(*values)
                yield row if self._is_new(row) else None
            except InputError as error:
                raise InputError(
                    f"{self.path}: row {self._next_row}: {error}: correct or "
                    "remove the row"
                ) from None
            self._next_row += 1


def _parse_values(key: Any, title: Any, tags: Any) -> _Row:
    has_title = isinstance(title, str) and title.strip()
    if not has_title or key is None or key == "":
        raise InputError(
            f"found the title {title!r:.60} and the id {key!r:.40}, expected "
            "texts that are not empty"
        )
    if isinstance(tags, str):
        tags = tags.split(",") if tags else ()
    return str(key), title, [], checked_tags(tags or ()), title
