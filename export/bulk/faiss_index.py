"""Approximate search of exported vectors with faiss, and its recall.

Source: https://github.com/facebookresearch/faiss/wiki/The-index-factory
"""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from keras_lstm_dssm.errors import InputError, import_optional
from keras_lstm_dssm.export.bulk.parts import EncodedParts
from keras_lstm_dssm.files import replacing

_TRAINING_ROWS = 1_000_000  # for the centroids of an index such as IVF


def build_index(
    vectors: np.ndarray | EncodedParts,
    factory: str = "HNSW32",
    search: str = "",
) -> Any:
    """Builds a faiss index over unit vectors, with inner products as scores.

    Of encoded parts one is in memory at a time; a million vectors at most train
    the index. For `factory` and `search` see `faiss.index_factory` and
    `faiss.ParameterSpace`, such as `HNSW32` and `efSearch=128`.
    """
    faiss = import_optional("faiss", "faiss")
    try:
        width = (
            vectors.shape[1]
            if isinstance(vectors, np.ndarray)
            else vectors.dimension
        )
        index = faiss.index_factory(width, factory, faiss.METRIC_INNER_PRODUCT)
        if search:
            faiss.ParameterSpace().set_index_parameters(index, search)
        if not index.is_trained:
            index.train(
                vectors
                if isinstance(vectors, np.ndarray)
                else vectors.sample(_TRAINING_ROWS)
            )
    except RuntimeError as error:
        # The C++ message begins with file and line and has several lines.
        reason = str(error).strip().splitlines()[0]
        raise InputError(
            f"faiss does not accept {factory!r} {search!r}: {reason}; "
            "correct the index's description or parameters"
        ) from error
    for block in _blocks(vectors):
        index.add(block)
    return index


def write_index(path: str | os.PathLike[str], index: Any) -> None:
    """Writes a `faiss.Index` to a file, for `faiss.read_index`."""
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
    index: Any,
    vectors: np.ndarray | EncodedParts,
    queries: np.ndarray,
    k: int,
) -> float:
    """Computes the recall@k of an index compared with exact search.

    This is the mean share of the k nearest documents that it returns.
    """
    faiss = import_optional("faiss", "faiss")
    search = import_optional("faiss.contrib.exhaustive_search", "faiss")
    evaluation = import_optional("faiss.contrib.evaluation", "faiss")
    _, exact = search.knn_ground_truth(
        queries, _blocks(vectors), k, faiss.METRIC_INNER_PRODUCT, ngpu=0
    )
    _, approximate = index.search(queries, k)
    return evaluation.knn_intersection_measure(exact, approximate)


def _blocks(vectors: np.ndarray | EncodedParts) -> Iterator[np.ndarray]:
    if isinstance(vectors, np.ndarray):
        yield vectors
    else:
        yield from (part.vectors for part in vectors if len(part.ids))
