"""DenseSystem: the cosine of two encoders' vectors."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from keras_lstm_dssm.evaluation.ranking import Ranker, Run, kth_largest

Encode = Callable[[list[str]], np.ndarray]

# Scores held at once in whole-corpus retrieval: 64 MB of float32.
_BLOCK = 2**24


class DenseSystem:
    """Ranks by R(Q, D) = cosine of a query and a document vector (3).

    Whole-corpus retrieval is exact: a blocked matrix product finds what can
    be among the best, and these are scored again one by one. A matrix
    product may round equal columns differently, by where they stand, so its
    figures alone would let the order of the corpus decide between equals.

    Args:
        encode_query: List of n strings -> float array `[n, d]`.
        encode_document: The same for documents. Each distinct title is
            encoded once.

    Example:
    >>> system = DenseSystem(
    ...     model.query_encoder.encode, model.document_encoder.encode
    ... )
    >>> run = system.retrieve(queries, documents, depth=1000)
    """

    def __init__(self, encode_query: Encode, encode_document: Encode) -> None:
        self.encode_query = encode_query
        self.encode_document = encode_document

    def rerank(
        self,
        queries: Mapping[str, str],
        candidates: Mapping[str, Sequence[str]],
        documents: Mapping[str, str],
    ) -> Run:
        """Orders candidates; see `System.rerank`."""
        needed = {d for found in candidates.values() for d in found}
        row = {d: i for i, d in enumerate(needed)}
        titles = _unit(self.encode_document, (documents[d] for d in row))
        vectors = _unit(self.encode_query, (queries[q] for q in candidates))
        return {
            query_id: Ranker(found).rank(
                query_id, _cosines(titles[[row[d] for d in found]], vector)
            )
            for (query_id, found), vector in zip(
                candidates.items(), vectors, strict=True
            )
        }

    def retrieve(
        self,
        queries: Mapping[str, str],
        documents: Mapping[str, str],
        depth: int,
    ) -> Run:
        """Searches the whole corpus; see `System.retrieve`."""
        titles = _unit(self.encode_document, documents.values())
        vectors = _unit(self.encode_query, queries.values())
        ranker = Ranker(list(documents))
        # Twice the bound on the rounding error of a product of unit vectors.
        margin = titles.shape[1] * np.finfo(np.float32).eps
        names = list(queries)
        size = max(1, _BLOCK // len(documents))
        run: Run = {}
        for start in range(0, len(names), size):
            rows = slice(start, start + size)
            for query_id, vector, rough in zip(
                names[rows], vectors[rows], vectors[rows] @ titles.T,
                strict=True,
            ):  # fmt: skip
                near = np.flatnonzero(
                    rough >= kth_largest(rough, depth) - margin
                )
                run[query_id] = ranker.rank(
                    query_id, _cosines(titles[near], vector), depth, near
                )
        return run


def _cosines(titles: np.ndarray, vector: np.ndarray) -> np.ndarray:
    # Row by row: equal rows give equal bits, which `titles @ vector` does
    # not promise.
    return np.sum(titles * vector, axis=1)


def _unit(encode: Encode, texts: Iterable[str]) -> np.ndarray:
    """Encodes distinct texts once; returns unit rows in the texts' order."""
    texts = list(texts)
    row = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    vectors = np.asarray(encode(list(row)), np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = vectors / np.maximum(lengths, np.finfo(np.float32).tiny)
    return vectors[[row[text] for text in texts]]
