"""Files of documents: their texts, their ids, and their vectors.

Lines of a file of titles: a title, perhaps with an id and with tags.
Reads titles from files of any size, in parts of whole lines or rows.
"""

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from errno import ENOSPC
from typing import Any, NamedTuple, NoReturn, Protocol

import numpy as np

from keras_lstm_dssm.data.document_folder import DocumentFolder
from keras_lstm_dssm.data.document_lines import (
    LINE_EXPECTED,
    Document,
    parse_document,
)
from keras_lstm_dssm.data.line_reader import EmptyFile, line_chunks, text_lines
from keras_lstm_dssm.errors import InputError, import_optional
from keras_lstm_dssm.files import replacing
from lstm_dssm_client.texts import tags_as_bytes

MAX_TAGS = 32
"""Maximum number of tags of a title."""


class TitleLine(NamedTuple):
    """Holds what a line of a file of titles has.

    Attributes:
        id: The id, or the title if there is none.
        title: The title.
        tags: Its tags, each once.
    """

    id: str
    title: str
    tags: tuple[str, ...]


def parse_title(line: str) -> TitleLine | str:
    r"""Parses a title; an id and a title; or these and tags, with tabs between.

    White space around fields and tags is left out.

    Args:
        line: A line that is not blank.

    Returns:
        Its content; or, if it is wrong, what was found and expected.

    Example:
    >>> parse_title("a7\thex bolt\tsteel, in stock")
    TitleLine(id='a7', title='hex bolt', tags=('steel', 'in stock'))
    """
    fields = [field.strip() for field in line.split("\t")]
    tags = split_tags(fields[2]) if len(fields) == 3 else ()
    if len(fields) > 3 or not all(fields) or not all(tags):
        return (
            f"found {line!r:.80}, expected a title, or an id, one tab and a "
            "title, or these, one more tab and tags that are separated by "
            "commas"
        )
    try:
        check_tag_count(tags)
    except InputError as error:
        return str(error)
    return TitleLine(fields[0], fields[min(1, len(fields) - 1)], tags)


def check_tag_count(tags: Sequence[str]) -> None:
    """Checks how many tags a title has.

    Raises:
        InputError: They are more than 32.
    """
    if len(tags) > MAX_TAGS:
        raise InputError(
            f"found {len(tags)} tags of one title, expected {MAX_TAGS} at most"
        )


def split_tags(field: str) -> tuple[str, ...]:
    """Returns the tags in a field, once each, without white space around them.

    Args:
        field: Tags, separated by commas.

    Example:
    >>> split_tags("steel, in stock")
    ('steel', 'in stock')
    """
    return tuple(dict.fromkeys(tag.strip() for tag in field.split(",")))


_EMPTY_LINE = "\n\n"


class Documents(NamedTuple):
    """The documents of a retriever.

    Attributes:
        ids: The ids that the retriever returns, one for each document.
        titles: The texts that are encoded, one for each document: titles, or
            whole documents.
        sentences: The sentences of each document, which a KeyVec encodes
            instead of its text; none if the documents are texts.
        tags: The tags of each document, by which a search can be restricted;
            none if no document has any.

    Example:
    >>> Documents(["d1", "d2"], ["hex bolt", "wood glue"]).titles[1]
    'wood glue'
    """

    ids: list[str]
    titles: list[str]
    sentences: Sequence[list[str]] = ()
    tags: Sequence[Sequence[str]] = ()


def read_documents(path: str | os.PathLike[str]) -> Documents:
    r"""Reads documents, one a line: a title, or an id, a tab and a title.

    A title without an id is its own id. A third field has the tags of the
    title, separated by commas. Repeated lines are read once, blank lines are
    skipped. `has_json_documents` says which files are read as
    documents of many sentences, in the form of docs/documents.md: their
    sentences are joined by empty lines, at which a KeyVec splits them.

    Args:
        path: A text file in UTF-8, with or without gzip compression, or a
            folder of documents.

    Raises:
        InputError: The file is missing or has no document; a line is not
            UTF-8, has more than two tabs or a blank id, title or tag, or is no
            document in JSON; an id has two different documents.

    Example:
    >>> _ = Path("titles.tsv").write_text("d1\thex bolt\nd2\twood glue\n")
    >>> documents = read_documents("titles.tsv")
    >>> documents.ids, documents.titles
    (['d1', 'd2'], ['hex bolt', 'wood glue'])
    """
    if has_json_documents(path):
        folder = os.path.isdir(path)
        # The model has its own limit of sentences.
        documents = list(
            DocumentFolder(path, max_sentences=None)
            if folder
            else _json_lines(path)
        )
        return Documents(
            [document.id for document in documents],
            [joined_sentences(document.sentences) for document in documents],
            [document.sentences for document in documents],
        )
    titles: dict[str, _Titled] = {}
    for number, line in enumerate(text_lines(path), 1):
        if not line.strip():
            continue
        parsed = parse_title(line)
        if isinstance(parsed, str):
            raise InputError(f"{path}:{number}: {parsed}")
        document_id, title, tags = parsed
        known = titles.setdefault(document_id, _Titled(title, tags))
        if known != (title, tags):
            what = "other tags" if known.title == title else "another title"
            raise InputError(
                f"{path}:{number}: id {document_id!r} has {what} "
                "above; give each document its own id"
            )
    if not titles:
        raise InputError(f"{path}: no titles; expected one a line")
    all_tags = [titled.tags for titled in titles.values()]
    return Documents(
        list(titles),
        [titled.title for titled in titles.values()],
        tags=all_tags if any(all_tags) else (),
    )


class _Titled(NamedTuple):
    title: str
    tags: tuple[str, ...]


def joined_sentences(text: str | bytes | Sequence[str | bytes]) -> str:
    """Returns a document as one text, at whose empty lines a KeyVec splits."""
    if isinstance(text, bytes):
        return text.decode("utf-8", "surrogateescape")
    if isinstance(text, str):
        return text
    return _EMPTY_LINE.join(map(joined_sentences, text))


def has_json_documents(path: str | os.PathLike[str]) -> bool:
    """Returns whether a path holds documents as JSON.

    It does if it is a folder, or a file that ends in `.jsonl` or `.jsonl.gz`.
    """
    name = os.fspath(path).removesuffix(".gz")
    return name.endswith(".jsonl") or os.path.isdir(path)


def _json_lines(path: str | os.PathLike[str]) -> Iterator[Document]:
    ids: set[str] = set()
    for number, line in enumerate(text_lines(path), 1):
        document = parse_document(line.encode())
        if not isinstance(document, str) and document.id in ids:
            document = "a repeated _id"
        if isinstance(document, str):
            raise InputError(
                f"{path}:{number}: found {document}, expected {LINE_EXPECTED}:"
                " correct or remove it"
            )
        ids.add(document.id)
        yield document


def write_vectors(path: str | os.PathLike[str], vectors: np.ndarray) -> None:
    """Writes vectors as `.npy`, the format that faiss and ScaNN users read.

    Args:
        path: The file to write.
        vectors: Float32 `[n, d]`.

    Raises:
        OSError: The file cannot be written.
    """
    with replacing(path) as partial, partial.open("wb") as file:
        try:
            np.save(file, vectors, allow_pickle=False)
        except OSError as error:
            # NumPy reports how many bytes were written, but not the reason.
            reason = error.strerror or "the disk is full"
            raise OSError(error.errno or ENOSPC, reason) from error


def read_vectors(path: str | os.PathLike[str]) -> np.ndarray:
    """Maps a `.npy` file of vectors into memory, read-only.

    Args:
        path: A file that `write_vectors` wrote.

    Returns:
        float32 `[n, d]`, read from disk on first use.

    Raises:
        InputError: The file is missing, or holds something else.

    Example:
    >>> read_vectors("titles.npy").shape
    (1000000, 96)
    """
    expected = "expected float32 [n, d], as lstm-dssm-encode writes it"
    try:
        vectors = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        # NumPy's message would advise to load pickled objects.
        reason = getattr(error, "strerror", None) or "no array of numbers"
        raise InputError(f"{path}: {reason}; {expected}") from error
    if not isinstance(vectors, np.ndarray):
        vectors.close()
        raise InputError(f"{path}: found several arrays, {expected}")
    if vectors.dtype != np.float32 or vectors.ndim != 2 or not vectors.size:
        raise InputError(
            f"{path}: found {vectors.dtype} {list(vectors.shape)}, {expected}"
        )
    return vectors


def write_ids(path: str | os.PathLike[str], ids: Sequence[str]) -> None:
    """Writes ids, one a line; line i belongs to row i of the vectors.

    Args:
        path: The file to write.
        ids: Strings without a line break.

    Raises:
        InputError: An id has a line break.
    """
    for row, document_id in enumerate(ids):
        if "\n" in document_id or "\r" in document_id:
            raise InputError(
                f"{path}: id {document_id!r:.60} of row {row} has a line "
                "break; expected ids of one line"
            )
    with (
        replacing(path) as partial,
        partial.open("w", encoding="utf-8", newline="\n") as file,
    ):
        file.writelines(f"{document_id}\n" for document_id in ids)


def read_ids(path: str | os.PathLike[str], rows: int) -> list[str]:
    """Reads the ids that belong to a file of vectors.

    Args:
        path: A file that `write_ids` wrote.
        rows: The number of vectors, which must be the number of ids.

    Raises:
        InputError: The file cannot be read, or its number of lines is not
            `rows`.
    """
    ids = list(text_lines(path))
    if len(ids) != rows:
        raise InputError(
            f"{path}: found {len(ids)} ids for {rows} vectors; expected one a "
            "line, as lstm-dssm-encode --ids writes them"
        )
    return ids


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
