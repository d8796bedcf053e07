"""Files of documents: their texts, their ids, and their vectors."""

import os
from collections.abc import Iterator, Sequence
from errno import ENOSPC
from typing import NamedTuple

import numpy as np

from keras_lstm_dssm.data.document_folder import DocumentFolder
from keras_lstm_dssm.data.document_lines import (
    LINE_EXPECTED,
    Document,
    parse_document,
)
from keras_lstm_dssm.data.line_reader import text_lines
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.title_lines import parse_title
from keras_lstm_dssm.files import replacing

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
