"""Rankings: scores into a strict order, and the systems that give scores."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

Run = dict[str, dict[str, float]]
"""Query id -> document id -> score, best first, strictly descending; each
score is a float32 number, so that 32-bit readers see the same order."""

Qrels = dict[str, dict[str, int]]
"""Query id -> document id -> grade (0: judged and not relevant)."""

# Below the smallest normal float32 some readers flush numbers to zero.
_SUBNORMAL = 0x007FFFFF


class Ranker:
    """Orders documents by score, strictly.

    Ties are broken by a fixed hash of the query id and the document id: the
    same in every process, and blind to the order of the input. Tied scores
    are then lowered by single float32 steps, because trec_eval reads 32-bit
    scores, forgets the order of the file and breaks ties by document id.

    Args:
        document_ids: Distinct ids of the documents that scores refer to.

    Example:
    >>> Ranker(["d1", "d2", "d3"]).rank("q1", [1.0, 3.0, 1.0])
    {'d2': 3.0, 'd3': 1.0, 'd1': 0.9999999403953552}
    """

    def __init__(self, document_ids: Sequence[str]) -> None:
        self._ids = np.array(document_ids, dtype=object)
        self._hashes = np.array([_hash(i) for i in document_ids], np.uint64)

    def rank(
        self,
        query_id: str,
        scores: np.ndarray | Sequence[float],
        depth: int | None = None,
        positions: np.ndarray | None = None,
    ) -> dict[str, float]:
        """Orders one query's documents.

        Args:
            query_id: The query's id, for the hash that breaks ties.
            scores: `[n]`, one score for each document, higher is better.
            depth: Documents kept; `None` for all.
            positions: `[n]` integers: which documents the scores are of;
                `None` for all, in their order.

        Returns:
            Document id -> score, one query of a `Run`.

        Raises:
            ValueError: A score is NaN or infinite.
        """
        scores = np.asarray(scores, np.float32)
        if not np.isfinite(scores).all():
            raise ValueError(f"query {query_id}: a score is not finite")
        if positions is None:
            positions = np.arange(len(self._ids))
        order = self.order(query_id, scores, depth, positions)
        ranked = self._ids[positions[order]].tolist()
        strict = strictly_descending(scores[order]).tolist()
        return dict(zip(ranked, strict, strict=True))

    def order(
        self,
        query_id: str,
        scores: np.ndarray,
        depth: int | None,
        positions: np.ndarray,
    ) -> np.ndarray:
        """Returns the order of `rank`, without names and strict scores.

        Args:
            query_id: See `rank`.
            scores: See `rank`.
            depth: See `rank`.
            positions: See `rank`.

        Returns:
            Integers `[min(n, depth)]`: positions in `scores`, best first.
        """
        best = np.flatnonzero(scores >= kth_largest(scores, depth))
        ties = _mix(self._hashes[positions[best]] ^ np.uint64(_hash(query_id)))
        return best[np.lexsort((ties, -scores[best]))[:depth]]


def kth_largest(scores: np.ndarray, k: int | None) -> float:
    """Returns the k-th largest score; -inf if there are not more than k."""
    if k is None or k >= len(scores):
        return -np.inf
    return float(np.partition(scores, len(scores) - k)[len(scores) - k])


def strictly_descending(scores: np.ndarray) -> np.ndarray:
    """Lowers scores that do not fall by as few float32 steps as it takes.

    Args:
        scores: float32 `[n]`, descending, with ties.

    Returns:
        float32 `[n]`, strictly descending.
    """
    # The bits of a float32, read as sign and magnitude, count the numbers
    # from zero; s[i] = min(s[i], s[i-1] - 1) is then a running minimum.
    bits = np.ascontiguousarray(scores, np.float32).view(np.int32)
    magnitude = np.maximum((bits & 0x7FFFFFFF) - np.int64(_SUBNORMAL), 0)
    steps = np.arange(len(bits))
    number = np.where(bits < 0, -magnitude, magnitude)
    number = np.minimum.accumulate(number + steps) - steps
    magnitude = np.abs(number) + _SUBNORMAL * (number != 0)
    result = magnitude.astype(np.int32).view(np.float32)
    return np.where(number < 0, -result, result)


def _hash(text: str) -> int:
    data = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big")


def _mix(values: np.ndarray) -> np.ndarray:
    """Scatters 64-bit numbers (the finalizer of SplitMix64)."""
    values = (values ^ (values >> 30)) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> 27)) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> 31)


class System(Protocol):
    """What is evaluated: a trained model, BM25, a language model...

    A system holds what it learnt in training and no corpus: both modes get
    the documents, so that one object serves any number of collections.
    """

    def rerank(
        self,
        queries: Mapping[str, str],
        candidates: Mapping[str, Sequence[str]],
        documents: Mapping[str, str],
    ) -> Run:
        """Orders given candidates.

        Args:
            queries: Query id -> text.
            candidates: Query id -> ids of the documents to order; its keys
                are the queries of the run.
            documents: Document id -> title, the whole corpus: what counts
                words in it (IDF) sees all of it.

        Returns:
            All candidates of each query, best first.
        """
        ...

    def retrieve(
        self,
        queries: Mapping[str, str],
        documents: Mapping[str, str],
        depth: int,
    ) -> Run:
        """Finds the best documents of the whole corpus.

        Args:
            queries: Query id -> text.
            documents: Document id -> title.
            depth: Documents returned for each query at most; a system may
                return fewer when the others do not match at all.

        Returns:
            The best documents of each query, best first.
        """
        ...
