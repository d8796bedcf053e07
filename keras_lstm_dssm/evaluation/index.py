"""Index: exact search for the documents nearest to a query by cosine."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.ranking import Ranker, kth_largest
from lstm_dssm_client.signatures import Hit

Encode = Callable[[list[str]], np.ndarray]
"""Function from a list of n strings to a float array `[n, d]`."""

# Number of scores in memory at once: 64 MiB of float32.
_BLOCK = 2**24


class Index:
    """Searches the vectors of a corpus exactly, in bounded memory.

    Every search compares the query with all documents. The order of the
    documents in the corpus never changes a result: documents with the same
    cosine are ordered by a hash of the query and the id, as in `Ranker`.

    Args:
        encoder: The encoder of the documents: an object with
            `encode(list of n str) -> float array [n, d]`, such as a
            `TextEncoder`, or a function of that form. A `TwoTower` encodes
            documents with its document encoder and queries with its query
            encoder.
        titles: The documents' texts. Each distinct text is encoded once.
        ids: A distinct id for each document; by default its title, and equal
            titles are then one document.
        query_encoder: The encoder of the queries, like `encoder`; by default
            `encoder` itself, which is right for a tied model.

    Attributes:
        ids: The documents' ids, in the corpus's order.
        vectors: float32 `[documents, d]`, the documents' vectors, of norm
            1 each (a zero vector stays zero and has cosine 0 with all).

    Raises:
        InputError: There is no document, the ids are not distinct or not as
            many as the titles, or a vector is not finite.

    Example:
    >>> titles = ["Angle bracket", "Deck screws", "Paint brush"]
    >>> index = Index(model, titles, ids=["d1", "d2", "d3"])
    >>> index.search(["brackets"], k=1)
    [[Hit(id='d1', score=0.93)]]
    """

    def __init__(
        self,
        encoder: Any,
        titles: Iterable[str],
        ids: Iterable[str] | None = None,
        query_encoder: Any = None,
    ) -> None:
        titles = list(titles)
        if ids is None:
            ids = titles = list(dict.fromkeys(titles))
        if query_encoder is None:
            query_encoder = getattr(encoder, "query_encoder", encoder)
        encoder = getattr(encoder, "document_encoder", encoder)
        self._encode_query: Encode | None = _encode_function(query_encoder)
        self._set_documents(
            lambda: encode_texts(_encode_function(encoder), titles), list(ids)
        )

    @classmethod
    def from_vectors(
        cls,
        vectors: np.ndarray,
        ids: Iterable[str] | None = None,
        query_encoder: Any = None,
    ) -> "Index":
        """Makes an index of vectors that are already computed.

        Args:
            vectors: Float `[documents, d]`; they are scaled to unit length.
            ids: A distinct id for each row; by default its number as a
                string, so that ties then depend on the corpus's order.
            query_encoder: See `Index`; without one, `search` takes vectors
                only.

        Raises:
            InputError: See `Index`.

        Example:
        >>> index = Index.from_vectors(np.eye(2), ["x", "y"])
        >>> index.search(np.array([[3.0, 4.0]]), k=1)
        [[Hit(id='y', score=0.800000011920929)]]
        """
        index = cls.__new__(cls)
        index._encode_query = query_encoder and _encode_function(query_encoder)
        if ids is None:
            ids = map(str, range(len(vectors)))
        index._set_documents(lambda: vectors, list(ids))
        return index

    def __len__(self) -> int:
        """Returns the number of documents."""
        return len(self.ids)

    def search(
        self, queries: Sequence[str] | np.ndarray, k: int
    ) -> list[list[Hit]]:
        """Returns the k nearest documents of each query, nearest first.

        Args:
            queries: n texts, or their vectors, float `[n, d]`.
            k: Number of documents for each query, at least 1; a smaller
                corpus is returned whole.

        Returns:
            For each query a list of `Hit`s.

        Raises:
            InputError: `k` is below 1, `queries` is a single string, texts
                were given to an index without a query encoder, or the
                vectors have another width or are not finite.
        """
        if isinstance(queries, np.ndarray) and queries.dtype.kind == "f":
            rows, scores = self.nearest(queries, k)
        else:
            if isinstance(queries, str):
                raise InputError(
                    f"queries is the string {queries!r:.40}: expected a list"
                    " of strings"
                )
            if self._encode_query is None:
                raise InputError(
                    "this index has no query encoder: give query_encoder to"
                    " Index.from_vectors, or vectors to search"
                )
            texts = list(queries)
            if not texts:
                return []
            vectors = encode_texts(self._encode_query, texts)
            rows, scores = self.nearest(vectors, k, query_ids=texts)
        return [
            [Hit(self.ids[i], score) for i, score in zip(*hits, strict=True)]
            for hits in zip(rows.tolist(), scores.tolist(), strict=True)
        ]

    def nearest(
        self,
        query_vectors: np.ndarray,
        k: int,
        query_ids: Sequence[str] | None = None,
        exclude: Sequence[Sequence[int]] | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns the rows and the cosines of the k nearest documents.

        A blocked matrix product finds which documents may be among the k
        nearest; their cosines are then computed one by one. The product
        alone may round the cosines of equal vectors differently, depending
        on their positions.

        Args:
            query_vectors: Float `[n, d]`; they are scaled to unit length.
            k: Number of documents for each query, at least 1.
            query_ids: n strings that the breaking of ties depends on; by
                default ties are broken in the same way for all queries.
            exclude: For each query, rows that must not be returned.

        Returns:
            rows: Integers `[n, min(k, documents)]`, nearest first; -1 where
                `exclude` leaves fewer.
            scores: float32 of the same shape: their cosines; -inf for -1.

        Raises:
            InputError: `k` is below 1, or the vectors have another width or
                are not finite.
        """
        if k < 1:
            raise InputError(f"k is {k}: expected 1 or more")
        vectors = unit_vectors(query_vectors, "query")
        width = self.vectors.shape[1]
        if vectors.shape[1] != width:
            raise InputError(
                f"found query vectors of width {vectors.shape[1]}, expected"
                f" {width}, as the documents have"
            )
        shape = len(vectors), min(k, len(self))
        rows = np.full(shape, -1, np.intp)
        scores = np.full(shape, -np.inf, np.float32)
        # Twice the bound on the rounding error of a product of unit vectors.
        margin = width * np.finfo(np.float32).eps
        size = max(1, _BLOCK // len(self))
        for start in range(0, len(vectors), size):
            block = vectors[start : start + size] @ self.vectors.T
            for n, rough in enumerate(block, start):
                if exclude is not None:
                    rough[list(exclude[n])] = -np.inf
                threshold = kth_largest(rough, k) - margin
                # The cosines of excluded rows are -inf.
                near = np.flatnonzero(rough >= max(threshold, -2))
                exact = cosines(self.vectors[near], vectors[n])
                query_id = query_ids[n] if query_ids else ""
                order = self._ranker.order(query_id, exact, k, near)
                rows[n, : len(order)] = near[order]
                scores[n, : len(order)] = exact[order]
        return rows, scores

    def _set_documents(
        self, get_vectors: Callable[[], np.ndarray], ids: list[str]
    ) -> None:
        # The ids are checked before the documents are encoded.
        if not ids:
            raise InputError("found no document: expected one or more titles")
        if len(set(ids)) < len(ids):
            raise InputError(
                "the ids are not distinct: expected a different one for each"
                " document"
            )
        vectors = unit_vectors(get_vectors(), "document")
        if len(vectors) != len(ids):
            raise InputError(
                f"found {len(ids)} ids for {len(vectors)} documents: expected"
                " one for each"
            )
        self.ids = ids
        self.vectors = vectors
        self._ranker = Ranker(ids)


def cosines(vectors: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Returns the cosines of unit vectors `[n, d]` with one `[d]`.

    Equal rows give bitwise equal cosines, which `vectors @ vector` does not
    guarantee.
    """
    return np.sum(vectors * vector, axis=1)


def encode_texts(encode: Encode, texts: Iterable[str]) -> np.ndarray:
    """Encodes each distinct text once.

    Returns:
        Float `[texts, d]`, in the texts' order.
    """
    texts = list(texts)
    row = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    vectors = np.asarray(encode(list(row)))
    if len(row) == len(texts):
        return vectors
    return vectors[[row[text] for text in texts]]


def unit_vectors(vectors: np.ndarray, name: str = "row") -> np.ndarray:
    """Scales vectors to unit length.

    Args:
        vectors: Float `[n, d]`.
        name: What error messages call a row.

    Returns:
        float32 `[n, d]`; a zero vector stays zero.

    Raises:
        InputError: The shape is not `[n, d]`, or a number is not finite.
    """
    vectors = np.asarray(vectors, np.float32)
    if vectors.ndim != 2:
        raise InputError(
            f"found vectors of shape {vectors.shape}, expected"
            " [number of texts, width]"
        )
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        raise InputError(
            f"{name} {np.argmin(finite)} of {len(vectors)}, counted from 0:"
            " found a vector with a number that is not finite"
        )
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.maximum(lengths, np.finfo(np.float32).tiny)


def _encode_function(encoder: Any) -> Encode:
    encode: Encode = getattr(encoder, "encode", encoder)
    if not callable(encode):
        raise InputError(
            f"encoder is {encoder!r:.40}: expected an object with a method"
            " `encode`, or a function of a list of strings"
        )
    return encode
