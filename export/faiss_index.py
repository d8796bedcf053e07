"""Beyond a retriever's size: an approximate index over exported vectors.

Source: https://github.com/facebookresearch/faiss/wiki/The-index-factory
"""

import os
from typing import Any

import numpy as np

from keras_lstm_dssm.errors import InputError, import_optional
from keras_lstm_dssm.files import replacing


def build_index(
    vectors: np.ndarray, factory: str = "HNSW32", search: str = ""
) -> Any:
    """Builds a `faiss` index over unit vectors; inner products are cosines.

    Args:
        vectors: float32 `[n, d]`, rows of length 1.
        factory: Which index, in the words of `faiss.index_factory`: `HNSW32`,
            `HNSW32_SQ8`, `IVF1024,Flat`, say.
        search: How far it looks, `efSearch=128` or `nprobe=16`, say; several
            are separated by commas.

    Returns:
        The `faiss.Index`; row numbers of `vectors` are its ids.

    Raises:
        InputError: `faiss` is not installed, or refuses the words.

    Example:
    >>> index = build_index(np.load("titles.npy"), "HNSW32", "efSearch=128")
    >>> scores, rows = index.search(encoder.encode(["angle bracket"]), 10)
    """
    faiss = import_optional("faiss", "faiss")
    try:
        index = faiss.index_factory(
            vectors.shape[1], factory, faiss.METRIC_INNER_PRODUCT
        )
        if search:
            faiss.ParameterSpace().set_index_parameters(index, search)
        index.train(vectors)
    except RuntimeError as error:
        # C++'s message has its own file and line, and several lines.
        reason = str(error).strip().splitlines()[0]
        raise InputError(
            f"faiss refuses {factory!r} {search!r}: {reason}"
        ) from error
    index.add(vectors)
    return index


def write_index(path: str | os.PathLike[str], index: Any) -> None:
    """Writes an index, for `faiss.read_index`.

    Raises:
        InputError: faiss cannot write it.
    """
    faiss = import_optional("faiss", "faiss")
    with replacing(path) as partial:
        try:
            faiss.write_index(index, str(partial))
        except RuntimeError as error:
            reason = str(error).strip().rsplit("failed: ", 1)[-1]
            raise InputError(
                f"{path}: faiss cannot write it: {reason}; make room, or name "
                "another file"
            ) from error


def index_recall(
    index: Any, vectors: np.ndarray, queries: np.ndarray, k: int
) -> float:
    """Measures which share of the true k nearest an index finds.

    Args:
        index: Over `vectors`.
        vectors: float32 `[n, d]`.
        queries: float32 `[m, d]`, unit vectors.
        k: Neighbours of each query, n at most.

    Returns:
        Recall@k beside exact search, from 0 to 1, the mean over queries.
    """
    faiss = import_optional("faiss", "faiss")
    _, exact = faiss.knn(queries, vectors, k, metric=faiss.METRIC_INNER_PRODUCT)
    _, found = index.search(queries, k)
    return overlap(exact, found)


def overlap(exact: np.ndarray, found: np.ndarray) -> float:
    """Returns the share of `exact [m, k]` that is in `found`, row by row.

    Example:
    >>> overlap(np.array([[1, 2]]), np.array([[2, 9]]))
    0.5
    """
    shared = [
        len(np.intersect1d(*pair)) for pair in zip(exact, found, strict=True)
    ]
    return sum(shared) / exact.size
