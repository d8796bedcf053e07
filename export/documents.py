"""Files of documents: their titles, their ids, and their vectors."""

import os
from collections.abc import Sequence
from errno import ENOSPC
from typing import NamedTuple

import numpy as np

from keras_lstm_dssm.data.line_reader import text_lines
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import replacing


class Documents(NamedTuple):
    """The documents of a retriever.

    Attributes:
        ids: The ids that the retriever returns, one for each document.
        titles: The texts that are encoded, one for each document.
    """

    ids: list[str]
    titles: list[str]


def read_documents(path: str | os.PathLike[str]) -> Documents:
    """Reads documents, one a line: a title, or an id, a tab and a title.

    A title without an id is its own id. Repeated lines are read once, blank
    lines are skipped.

    Args:
        path: A text file in UTF-8, with or without gzip compression.

    Raises:
        InputError: The file is missing or has no title; a line is not UTF-8,
            has more than one tab or a blank id or title; an id has two
            different titles.
    """
    titles: dict[str, str] = {}
    for number, line in enumerate(text_lines(path), 1):
        if not line.strip():
            continue
        fields = [field.strip() for field in line.split("\t")]
        if len(fields) > 2 or not all(fields):
            raise InputError(
                f"{path}:{number}: found {line!r:.80}, expected a title, or "
                "an id, one tab and a title"
            )
        document_id, title = fields[0], fields[-1]
        if titles.setdefault(document_id, title) != title:
            raise InputError(
                f"{path}:{number}: id {document_id!r} has another title "
                "above; give each document its own id"
            )
    if not titles:
        raise InputError(f"{path}: no titles; expected one a line")
    return Documents(list(titles), list(titles.values()))


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
