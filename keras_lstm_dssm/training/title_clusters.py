"""TitleClusters: fast search for near titles, for mining in large logs."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from keras_lstm_dssm.errors import InputError

_SAMPLED_IN_CLUSTER = 32
_ROUNDS = 6
_FOUND_AT_ONCE = 2**25  # titles of all clusters that queries are compared with
_SCORES_AT_ONCE = 2**24  # of each thread; 64 MiB, and twice that to sort them
_THREADS = 2
_GROUPS_FOR_EACH = 4  # groups of scores, for each of the largest to be found


class TitleClusters:
    """Finds titles near queries, not always the nearest ones.

    Spherical k-means on a sample divides n titles into sqrt(n) clusters.
    A query is compared with the titles of the clusters whose centres are
    nearest to it (an inverted file, Sivic and Zisserman 2003), so that the
    cost of n queries grows with n^1.5, and not with n^2. One product
    compares the titles of a cluster with all queries that read it.

    Args:
        titles: float32 `[titles, d]`, vectors of norm 1.
        seed: Seed of the sample and of the first centres. Default 0.

    Raises:
        InputError: There is no title.

    Example:
    >>> titles = np.eye(3, dtype="float32")
    >>> TitleClusters(titles).nearest(titles[:1], 2, [[0]], clusters=1).tolist()
    [[1, 2]]
    """

    def __init__(self, titles: np.ndarray, seed: int = 0) -> None:
        if not len(titles):
            raise InputError("found no title: expected one or more")
        centres = _centres(titles, np.random.default_rng(seed))
        # Of equal centres, only one is that of a cluster with titles.
        filled, self._cluster_of = np.unique(
            _nearest_centres(titles, centres, 1)[:, 0], return_inverse=True
        )
        self._centres = centres[filled]
        self._members = self._by_cluster(self._cluster_of)
        ends = np.cumsum([len(members) for members in self._members])
        in_order = titles[np.concatenate(self._members)]
        self._titles = np.split(in_order, ends[:-1])  # views of each cluster

    def nearest(
        self,
        queries: np.ndarray,
        k: int,
        exclude: Sequence[Sequence[int]],
        clusters: int,
    ) -> np.ndarray:
        """Finds titles near each query, among those of the nearest clusters.

        Args:
            queries: float32 `[queries, d]`, vectors of norm 1.
            k: Number of titles for each query.
            exclude: For each query, rows that are not returned.
            clusters: Number of clusters that a query is compared with; with
                all of them, the titles found are the nearest ones.

        Returns:
            Integers `[queries, k]`, nearest first; -1 where fewer are found.

        Raises:
            InputError: `k` or `clusters` is below 1.
        """
        for name, value in (("k", k), ("clusters", clusters)):
            if value < 1:
                raise InputError(f"{name} is {value}: expected 1 or more")
        found = np.full((len(queries), k), -1)
        size = max(1, _FOUND_AT_ONCE // (clusters * k))
        for start in range(0, len(queries), size):
            part = slice(start, start + size)
            rows, scores = self._compare(
                queries[part], k, exclude[part], clusters
            )
            best = _largest(scores, k)
            order = np.argsort(
                -np.take_along_axis(scores, best, axis=1), kind="stable"
            )
            best = np.take_along_axis(best, order, axis=1)
            found[part, : best.shape[1]] = np.take_along_axis(rows, best, 1)
        return found

    def _compare(
        self,
        queries: np.ndarray,
        k: int,
        exclude: Sequence[Sequence[int]],
        clusters: int,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns the k best rows of each cluster read, and their cosines."""
        read = _nearest_centres(queries, self._centres, clusters)
        shape = len(queries), read.shape[1], k
        rows = np.full(shape, -1)
        scores = np.full(shape, -np.inf, np.float32)
        excluded_query = np.repeat(
            np.arange(len(queries)), [len(each) for each in exclude]
        )
        excluded_row = np.array([row for each in exclude for row in each], int)

        def compare(
            members: np.ndarray,
            titles: np.ndarray,
            reading: np.ndarray,
            excluded: np.ndarray,
        ) -> None:
            query, place = np.divmod(reading, read.shape[1])  # ascending
            block = queries[query] @ titles.T
            excluded = excluded[np.isin(excluded_query[excluded], query)]
            block[
                np.searchsorted(query, excluded_query[excluded]),
                np.searchsorted(members, excluded_row[excluded]),
            ] = -np.inf
            best = _largest(block, k)
            cosines = np.take_along_axis(block, best, axis=1)
            count = best.shape[1]
            scores[query, place, :count] = cosines
            rows[query, place, :count] = np.where(
                cosines > -np.inf, members[best], -1
            )

        # NumPy computes without Python's lock, so that blocks of queries run
        # in parallel.
        with ThreadPoolExecutor(_THREADS) as pool:
            blocks = [
                pool.submit(compare, members, titles, part, excluded)
                for members, titles, reading, excluded in zip(
                    self._members,
                    self._titles,
                    self._by_cluster(read.ravel()),
                    self._by_cluster(self._cluster_of[excluded_row]),
                    strict=True,
                )
                for part in _parts(reading, len(members))
            ]
            for block in blocks:
                block.result()
        return rows.reshape(len(queries), -1), scores.reshape(len(queries), -1)

    def _by_cluster(self, clusters: np.ndarray) -> list[np.ndarray]:
        """Lists, for each cluster, the ascending positions of its number."""
        order = np.argsort(clusters, kind="stable")
        counts = np.bincount(clusters, minlength=len(self._centres))
        return np.split(order, np.cumsum(counts)[:-1])


def _centres(titles: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Finds centres of norm 1 by k-means on a sample of the titles."""
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
    """Returns the numbers of the nearest centres, `[vectors, count]`."""
    return np.concatenate(
        [
            _largest(each @ centres.T, count)
            for each in _parts(vectors, len(centres))
        ]
    )


def _parts(values: np.ndarray, scores: int) -> list[np.ndarray]:
    """Divides an array into parts that have `_SCORES_AT_ONCE` scores each.

    Args:
        values: The array; an empty one is returned as one part.
        scores: Number of scores that are computed for each of its rows.
    """
    size = max(1, _SCORES_AT_ONCE // scores)
    return [
        values[start : start + size]
        for start in range(0, max(len(values), 1), size)
    ]


def _largest(scores: np.ndarray, count: int) -> np.ndarray:
    """Returns the columns of the largest scores of each row, in any order."""
    if count == 1:
        return np.argmax(scores, axis=1)[:, np.newaxis]
    rows, width = scores.shape
    count = min(count, width)
    size = width // (_GROUPS_FOR_EACH * count)
    if size < 2:
        return np.argpartition(scores, -count, axis=1)[:, -count:]
    # Of the maxima of groups of scores, `count` are at least as large as
    # their count-th largest, so that no smaller score can be among the
    # largest: few scores remain to be compared.
    groups = width // size
    maxima = scores[:, : groups * size].reshape(rows, size, groups).max(axis=1)
    least = np.partition(maxima, -count, axis=1)[:, [-count]]
    row, column = np.divmod(np.flatnonzero(scores >= least), width)
    counts = np.bincount(row, minlength=rows)
    place = np.arange(len(row)) - (np.cumsum(counts) - counts)[row]
    remaining = np.full((rows, counts.max(initial=0)), -np.inf, scores.dtype)
    columns = np.zeros(remaining.shape, np.intp)
    remaining[row, place] = scores[row, column]
    columns[row, place] = column
    best = np.argpartition(remaining, -count, axis=1)[:, -count:]
    return np.take_along_axis(columns, best, axis=1)
