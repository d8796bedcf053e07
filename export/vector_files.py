"""Vectors and ids as files that vector indexes read.

`.npy`, float32 `[n, d]`, is what `faiss` and ScaNN take as it is; the ids
stand beside it, one a line, line i for row i.
"""

import os
from collections.abc import Sequence
from errno import ENOSPC

import numpy as np

from keras_lstm_dssm.data.text_files import text_lines
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import replacing


def write_vectors(path: str | os.PathLike[str], vectors: np.ndarray) -> None:
    """Writes an array as .npy.

    Raises:
        OSError: It cannot be written.
    """
    with replacing(path) as partial, partial.open("wb") as file:
        try:
            np.save(file, vectors, allow_pickle=False)
        except OSError as error:
            # NumPy's own says how much was written, and not why.
            reason = error.strerror or "the disk is full"
            raise OSError(error.errno or ENOSPC, reason) from error


def read_vectors(path: str | os.PathLike[str]) -> np.ndarray:
    """Opens vectors without reading them all: pages come when used.

    Returns:
        float32 `[n, d]`, read-only.

    Raises:
        InputError: It is no such file.

    Example:
    >>> read_vectors("titles.npy").shape
    (1000000, 96)
    """
    expected = "expected float32 [n, d], as lstm-dssm-encode writes it"
    try:
        vectors = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        # NumPy's own words would tell to load pickled objects.
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
    """Writes ids, one a line.

    Raises:
        InputError: An id is more than one line.
    """
    for row, name in enumerate(ids):
        if "\n" in name or "\r" in name:
            raise InputError(
                f"{path}: id {name!r:.60} of row {row} breaks the line; "
                "expected ids of one line"
            )
    with (
        replacing(path) as partial,
        partial.open("w", encoding="utf-8", newline="\n") as file,
    ):
        file.writelines(f"{name}\n" for name in ids)


def read_ids(path: str | os.PathLike[str], rows: int) -> list[str]:
    """Reads the ids of a file of vectors.

    Args:
        path: From `write_ids`.
        rows: How many vectors there are.

    Raises:
        InputError: The file cannot be read, or has not as many lines.
    """
    ids = list(text_lines(path))
    if len(ids) != rows:
        raise InputError(
            f"{path}: found {len(ids)} ids for {rows} vectors; expected one a "
            "line, as lstm-dssm-encode --ids writes them"
        )
    return ids
