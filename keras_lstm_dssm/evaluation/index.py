"""Vector search by cosine: `Index` is exact, `IVFIndex` is approximate."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from tqdm import tqdm

from keras_lstm_dssm.errors import InputError, check_at_least, check_lists
from keras_lstm_dssm.evaluation.runs import TieBreaker, kth_largest
from lstm_dssm_client.signatures import Hit, distinct_values

_T = TypeVar("_T")

Encode = Callable[[list[str]], np.ndarray]
"""Function from a list of n strings to a float array `[n, d]`."""

_BLOCK = 2**24  # number of scores in memory at once: 64 MiB of float32


class Index:
    """Searches the vectors of a corpus exactly, in bounded memory.

    Ties are broken by a hash of the query's text, if any, and the document id,
    not by the order of the corpus.

    Args:
        encoder: The encoder of the documents: an object with
            `encode(list of n str) -> float array [n, d]`, such as a
            `TextEncoder`, or a function with this signature. If
            `encoder` is a `TwoTower`, its document encoder is used.
        titles: Texts of the documents. Each distinct text is encoded once.
        ids: A distinct id for each document. Default: the title is the id, and
            equal titles are one document.
        query_encoder: The encoder of the queries. Default: `encoder`, or the
            query encoder of a `TwoTower`.

    Attributes:
        ids: The ids of the documents, in the order of the corpus.
        vectors: float32 `[documents, d]`, unit vectors of the documents. A zero
            vector stays zero; its cosine with all vectors is 0.

    Raises:
        InputError: There is no document, an id occurs twice, the numbers of
            ids and titles differ, or a vector is not finite.

    Example:
    >>> titles = ["Angle bracket", "Deck screws", "Paint brush"]
    >>> index = Index(model, titles, ids=["d1", "d2", "d3"])
    >>> index.search(["brackets"], k=1)
    [[Hit(id='d1', score=0.93, title='')]]
    """

    def __init__(
        self,
        encoder: Any,
        titles: Iterable[str],
        ids: Iterable[str] | None = None,
        query_encoder: Any = None,
    ) -> None:
        check_lists(titles=titles, ids=() if ids is None else ids)
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
        """Makes an index of computed vectors.

        Args:
            vectors: Float `[documents, d]`; they are scaled to unit length.
            ids: A distinct id for each row. Default: the index of the row, as
                a string; ties then depend on the order of the corpus.
            query_encoder: See `Index`. Without a query encoder, `search` takes
                vectors only.

        Raises:
            InputError: See `Index`.

        Example:
        >>> index = Index.from_vectors(np.eye(2), ["x", "y"])
        >>> index.search(np.array([[3.0, 4.0]]), k=1)
        [[Hit(id='y', score=0.800000011920929, title='')]]
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
            k: Number of documents for each query, at least 1. If the corpus
                has fewer documents, all documents are returned.

        Returns:
            For each query a list of `Hit`s.

        Raises:
            InputError: `k` is below 1; `queries` is a string; `queries` are
                texts and the index has no query encoder; or the vectors have
                the wrong width or are not finite.
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
        progress: bool = False,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns the rows and the cosines of the k nearest documents.

        Equal document vectors have exactly equal cosines.

        Args:
            query_vectors: Float `[n, d]`; they are scaled to unit length.
            k: Number of documents for each query, at least 1.
            query_ids: n strings by which ties are broken. Default: ties are
                broken in the same way for all queries.
            exclude: For each query, indices of documents to leave out.
            progress: Whether to show a progress bar. Default `False`.

        Returns:
            rows: Indices of documents, int `[n, min(k, documents)]`, nearest
                first. The last indices are -1 if `exclude` leaves too few
                documents.
            scores: float32 cosines of the documents; -inf where `rows` is -1.

        Raises:
            InputError: `k` is below 1, or the vectors have the wrong width or
                are not finite.
        """
        check_at_least(1, k=k)
        vectors = unit_vectors(query_vectors, "query")
        width = self.vectors.shape[1]
        if vectors.shape[1] != width:
            raise InputError(
                f"found query vectors of width {vectors.shape[1]}, expected"
                f" the width of the documents' vectors, {width}"
            )
        shape = len(vectors), min(k, len(self))
        rows = np.full(shape, -1, np.intp)
        scores = np.full(shape, -np.inf, np.float32)
        searched = _with_bar(
            self.rough_cosines(vectors), len(vectors), progress
        )
        # A matrix product may round the cosines of equal vectors differently.
        # So `cosines` computes the cosines of the nearest documents again.
        for n, rough in enumerate(searched):
            if exclude is not None:
                rough[list(exclude[n])] = -np.inf
            threshold = kth_largest(rough, k) - self.margin
            # -2 is below each cosine, and above the -inf of excluded rows.
            near = np.flatnonzero(rough >= max(threshold, -2))
            exact = cosines(self.vectors[near], vectors[n])
            query_id = query_ids[n] if query_ids else ""
            order = self._ties.order(query_id, exact, k, near)
            rows[n, : len(order)] = near[order]
            scores[n, : len(order)] = exact[order]
        return rows, scores

    def rough_cosines(self, vectors: np.ndarray) -> Iterator[np.ndarray]:
        """Yields the inexact cosines of each query with all documents."""
        size = max(1, _BLOCK // len(self))
        for start in range(0, len(vectors), size):
            yield from vectors[start : start + size] @ self.vectors.T

    @property
    def margin(self) -> np.float32:
        """Twice the largest possible rounding error of `rough_cosines`."""
        return self.vectors.shape[1] * np.finfo(np.float32).eps

    def _set_documents(
        self, get_vectors: Callable[[], np.ndarray], ids: list[str]
    ) -> None:
        # The ids are checked first, because encoding takes long.
        if not ids:
            raise InputError("found no document: expected one or more titles")
        for document_id in ids:
            if not isinstance(document_id, str):
                raise InputError(
                    f"ids has {document_id!r:.40}"
                    f" ({type(document_id).__name__}): expected strings, such"
                    f" as {str(document_id)!r:.40}"
                )
        if len(set(ids)) < len(ids):
            raise InputError(
                "the ids are not distinct: expected a different id for each"
                " document"
            )
        vectors = unit_vectors(get_vectors(), "document")
        if len(vectors) != len(ids):
            raise InputError(
                f"found {len(ids)} ids for {len(vectors)} documents: expected"
                " an id for each document"
            )
        self.ids = ids
        self.vectors = vectors
        self._ties = TieBreaker(ids)


def _with_bar(items: Iterable[_T], total: int, progress: bool) -> Iterable[_T]:
    return tqdm(items, "search", total, leave=False, disable=not progress)


def cosines(vectors: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Returns the cosines of unit vectors `[n, d]` with a unit vector `[d]`."""
    # Unlike in `vectors @ vector`, equal rows have bitwise equal cosines.
    return np.sum(vectors * vector, axis=1)


def encode_texts(encode: Encode, texts: Iterable[str]) -> np.ndarray:
    """Encodes each distinct text once; returns float `[texts, d]`."""
    texts = list(texts)
    first, row_of = distinct_values(texts)
    vectors = np.asarray(encode([texts[i] for i in first]))
    return vectors if len(first) == len(texts) else vectors[row_of]


def unit_vectors(vectors: np.ndarray, name: str = "row") -> np.ndarray:
    """Scales rows to unit length, float32 `[n, d]`. Zero rows stay zero."""
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


_SAMPLED_IN_CLUSTER = 32  # k-means reads this many titles for each cluster
_ROUNDS = 6  # iterations of k-means
_RESULTS_AT_ONCE = 2**25  # limit of queries x searched clusters x k
_SCORES_AT_ONCE = 2**24  # scores in a thread: 64 MiB, and 128 MiB of indices
_THREADS = 2
_GROUPS_PER_RESULT = 4  # minimum number of groups per result in `_largest`


class IVFIndex:
    """Searches titles approximately, by an inverted file of clusters (IVF).

    n titles are divided into at most sqrt(n) clusters. A query is compared only
    with the titles of its nearest clusters (Sivic and Zisserman 2003).
    Therefore n queries take time O(n^1.5), not O(n^2).
    """

    def __init__(
        self,
        titles: np.ndarray,  # float32 unit vectors `[n, d]`
        seed: int = 0,
    ) -> None:
        if not len(titles):
            raise InputError("found no title: expected one or more")
        centres = _centres(titles, np.random.default_rng(seed))
        # Drops centres without titles, such as repetitions of a centre.
        filled, self._cluster_of = np.unique(
            _nearest_centres(titles, centres, 1)[:, 0], return_inverse=True
        )
        self._centres = centres[filled]
        self._members = self._by_cluster(self._cluster_of)
        ends = np.cumsum([len(members) for members in self._members])
        in_order = titles[np.concatenate(self._members)]
        self._titles = np.split(in_order, ends[:-1])  # a view for each cluster

    def nearest(
        self,
        queries: np.ndarray,  # float32 unit vectors `[queries, d]`
        k: int,
        exclude: Sequence[Sequence[int]],  # for each query: titles to leave out
        clusters: int,  # number of clusters to search
        progress: bool = False,
    ) -> np.ndarray:
        """Returns indices of titles, int `[queries, k]`, nearest first.

        A row ends in -1 if fewer than k titles are found.
        """
        check_at_least(1, k=k, clusters=clusters)
        nearest_rows = np.full((len(queries), k), -1)
        size = max(1, _RESULTS_AT_ONCE // (clusters * k))
        starts = range(0, len(queries), size)
        for start in _with_bar(starts, len(starts), progress):
            block = slice(start, start + size)
            rows, scores = self._compare(
                queries[block], k, exclude[block], clusters
            )
            best = _largest(scores, k)
            order = np.argsort(
                -np.take_along_axis(scores, best, axis=1), kind="stable"
            )
            best = np.take_along_axis(best, order, axis=1)
            best_rows = np.take_along_axis(rows, best, axis=1)
            nearest_rows[block, : best.shape[1]] = best_rows
        return nearest_rows

    def _compare(
        self,
        queries: np.ndarray,
        k: int,
        exclude: Sequence[Sequence[int]],
        clusters: int,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns the indices and the cosines of titles, `[queries, n]` each.

        n is k times the number of searched clusters. Each cluster has k columns
        for the cluster's best titles. Missing titles have the index -1 and the
        cosine -inf.
        """
        clusters_of = _nearest_centres(queries, self._centres, clusters)
        per_query = clusters_of.shape[1]
        shape = len(queries), per_query, k
        rows = np.full(shape, -1)
        scores = np.full(shape, -np.inf, np.float32)
        excluded_query = np.repeat(
            np.arange(len(queries)), list(map(len, exclude))
        )
        excluded_row = np.array(list(chain.from_iterable(exclude)), int)

        def compare(
            members: np.ndarray,
            titles: np.ndarray,
            pairs: np.ndarray,  # indices in `clusters_of.ravel()`, ascending
            excluded: np.ndarray,  # indices in `excluded_query`
        ) -> None:
            query, column = np.divmod(pairs, per_query)
            products = queries[query] @ titles.T
            excluded = excluded[np.isin(excluded_query[excluded], query)]
            products[
                np.searchsorted(query, excluded_query[excluded]),
                np.searchsorted(members, excluded_row[excluded]),
            ] = -np.inf
            best = _largest(products, k)
            cosines = np.take_along_axis(products, best, axis=1)
            count = best.shape[1]
            scores[query, column, :count] = cosines
            rows[query, column, :count] = np.where(
                cosines > -np.inf, members[best], -1
            )

        # NumPy releases Python's global lock, so threads run in parallel.
        with ThreadPoolExecutor(_THREADS) as pool:
            futures = [
                pool.submit(compare, members, titles, block, excluded)
                for members, titles, pairs, excluded in zip(
                    self._members,
                    self._titles,
                    self._by_cluster(clusters_of.ravel()),
                    self._by_cluster(self._cluster_of[excluded_row]),
                    strict=True,
                )
                for block in _row_blocks(pairs, len(members))
            ]
            for future in futures:
                future.result()
        return rows.reshape(len(queries), -1), scores.reshape(len(queries), -1)

    def _by_cluster(self, clusters: np.ndarray) -> list[np.ndarray]:
        """Returns for each cluster c the positions where `clusters` is c."""
        order = np.argsort(clusters, kind="stable")
        counts = np.bincount(clusters, minlength=len(self._centres))
        return np.split(order, np.cumsum(counts)[:-1])


def _centres(titles: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Returns unit centres of k-means on a sample of the titles."""
    clusters = int(len(titles) ** 0.5)
    size = min(len(titles), _SAMPLED_IN_CLUSTER * clusters)
    sample = titles[random.choice(len(titles), size, replace=False)]
    centres = sample[:clusters].copy()
    for _ in range(_ROUNDS):
        nearest = _nearest_centres(sample, centres, 1)[:, 0]
        order = np.argsort(nearest, kind="stable")
        filled, starts = np.unique(nearest[order], return_index=True)
        sums = np.add.reduceat(sample[order], starts, axis=0)
        norms = np.linalg.norm(sums, axis=1, keepdims=True)
        centres[filled] = sums / np.maximum(norms, np.finfo(np.float32).tiny)
    return centres


def _nearest_centres(
    vectors: np.ndarray, centres: np.ndarray, count: int
) -> np.ndarray:
    """Returns the indices of the nearest centres, `[vectors, count]`."""
    blocks = _row_blocks(vectors, len(centres))
    return np.concatenate([_largest(b @ centres.T, count) for b in blocks])


def _row_blocks(values: np.ndarray, width: int) -> list[np.ndarray]:
    """Splits rows, each with `width` scores, into blocks that fit in memory."""
    size = max(1, _SCORES_AT_ONCE // width)
    return [
        values[start : start + size]
        for start in range(0, max(len(values), 1), size)
    ]


def _largest(scores: np.ndarray, count: int) -> np.ndarray:
    """Returns the columns of each row's `count` largest scores, unordered."""
    if count == 1:
        return np.argmax(scores, axis=1)[:, np.newaxis]
    rows, width = scores.shape
    count = min(count, width)
    size = width // (_GROUPS_PER_RESULT * count)
    if size < 2:
        return np.argpartition(scores, -count, axis=1)[:, -count:]
    # Each row is divided into groups. `least` is the `count`-th largest maximum
    # of a group. Scores below `least` are not among the `count` largest scores.
    groups = width // size
    maxima = scores[:, : groups * size].reshape(rows, size, groups).max(axis=1)
    least = np.partition(maxima, -count, axis=1)[:, [-count]]
    row, column = np.divmod(np.flatnonzero(scores >= least), width)
    counts = np.bincount(row, minlength=rows)
    position = np.arange(len(row)) - (np.cumsum(counts) - counts)[row]
    remaining = np.full((rows, counts.max(initial=0)), -np.inf, scores.dtype)
    columns = np.zeros(remaining.shape, np.intp)
    remaining[row, position] = scores[row, column]
    columns[row, position] = column
    best = np.argpartition(remaining, -count, axis=1)[:, -count:]
    return np.take_along_axis(columns, best, axis=1)
