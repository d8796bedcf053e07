"""How much a position is looked at, estimated from titles that moved.

By the position-based model a title is clicked with the probability p_k r: users
look at position k with p_k, and click what they look at with r, whatever k is.
A title that the same query has shown at positions k and k' then has clicks in
the ratio p_k : p_k'.

Source: Agarwal et al. 2019, "Estimating Position Bias without Intrusive
Interventions", https://arxiv.org/abs/1812.05161, for the pairs of all
positions; the ratios are combined by least squares of their logarithms.
"""

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from itertools import islice
from typing import NamedTuple

import numpy as np

from keras_lstm_dssm.data.click_pages import Page
from keras_lstm_dssm.data.split import joined
from keras_lstm_dssm.text.word_hashing import normalize

MOST_POSITIONS = 50
"""Positions below are not estimated."""

SMALLEST_SHARE = 0.1
"""No click counts more than ten times, however rarely its position is seen."""

LARGEST_ERROR = 0.05
"""Nothing is estimated if log p_k is known less well, with 95 % confidence."""

_LEAST_CLICKS = 10.0  # of both positions of a pair; logarithms of fewer are off
_LEAST_PART = 0.005  # of all clicks: positions with fewer are not needed
_MOST_ROWS = 1 << 24  # titles that were shown, in memory at once
_AT_ONCE = 4096  # pages
_GROUPS = 16  # of queries, each is left out once
_QUANTILE = 2.131  # 0.975 of Student's t with 15 degrees of freedom


class PositionBias(NamedTuple):
    """Holds the share of users who look at a position, that of the first is 1.

    `reason` says why there is no estimate, and `shares` is empty then.
    """

    shares: Mapping[int, float] = {}
    # Half the widths of the 95 % intervals of the shares' logarithms.
    errors: Mapping[int, float] = {}
    reason: str | None = None

    def weights(self) -> dict[int, float]:
        """Returns position -> share, clipped, for `write_clicks`."""
        return {k: max(p, SMALLEST_SHARE) for k, p in self.shares.items()}

    def describe(self) -> str:
        """Describes the estimate, or why there is none, in one line."""
        if self.reason:
            return f"position bias: not estimated: {self.reason}; weights are 1"
        listed = ", ".join(f"{k}: {p:.2f}" for k, p in self.shares.items())
        return f"position bias: share of users who look at each: {listed}"


def position_bias(pages: Iterable[Page]) -> PositionBias:
    """Estimates how much each position is looked at, or says why it cannot.

    It can if the positions with clicks are joined by titles that a query has
    shown at two of them, and each share is known to `LARGEST_ERROR`, by the
    jackknife over groups of queries.
    Queries with the same normalised words are one query. Memory is bounded: of
    a log that shows more than 16.8 million titles, a part of the queries,
    drawn by a hash of their words, is used.

    Example:
    >>> pages = [Page("bolts", ["hex bolt", "nut"], [1.0, 0.0], [1, 2])] * 30
    >>> position_bias(pages).reason
    'no title was shown at two positions'
    """
    queries, keys, positions, clicks = _shown(pages)
    if not clicks.sum():
        return PositionBias(reason="no click has a position")
    of_position = np.bincount(positions, clicks, MOST_POSITIONS + 1)
    needed = np.flatnonzero(of_position >= _LEAST_PART * of_position.sum())
    # Parts of the queries, as what is clicked on a page can depend on the rest.
    distinct, queries = np.unique(queries, return_inverse=True)
    parts = np.stack(
        [
            _moved(keys[part], positions[part], clicks[part])
            for group in range(_GROUPS)
            if (part := queries % _GROUPS == group).any()
        ]
    )
    tables = parts.sum(axis=0)
    counts = tables[0]  # [k, l]: clicks at k of titles that were at k and at l
    if not counts.any():
        return PositionBias(reason="no title was shown at two positions")
    heavy = np.minimum(counts, counts.T) >= _LEAST_CLICKS
    groups = np.array(joined(len(heavy), np.argwhere(heavy)))
    found = np.flatnonzero(groups == groups[needed[0]]).tolist()
    if missing := [k for k in needed.tolist() if k not in found]:
        return PositionBias(
            reason=f"position {missing[0]} and position {needed[0]} are not"
            f" joined by {_LEAST_CLICKS:.0f} clicks of titles that were at"
            " both, or at others between: the rankings were always the same"
        )
    if len(distinct) < _GROUPS:
        return PositionBias(
            reason=f"found {len(distinct)} queries, expected {_GROUPS} or more,"
            " to estimate errors by"
        )
    grid = (..., *np.ix_(found, found))
    logs = _solve(tables[grid])
    left_out = np.stack([_solve((tables - part)[grid]) for part in parts])
    spread = ((left_out - left_out.mean(axis=0)) ** 2).sum(axis=0)
    errors = _QUANTILE * np.sqrt(spread * (len(parts) - 1) / len(parts))
    shares, of_node = (
        dict(zip(found, values.tolist(), strict=True))
        for values in (np.exp(logs), errors)
    )
    if wide := [k for k in needed.tolist() if of_node[k] > LARGEST_ERROR]:
        return PositionBias(
            reason=f"the share of position {wide[0]} is known to"
            f" {100 * of_node[wide[0]]:.0f} % only: too few clicks of titles"
            " that moved"
        )
    return PositionBias(shares, of_node)


def _solve(tables: np.ndarray) -> np.ndarray:
    """Solves log p_k - log p_l = log(c_kl / c_lk) by weighted least squares.

    `tables` are the sums and variances of `_moved`; p of the first is 1.
    """
    counts, variances = tables
    heavy = np.minimum(counts, counts.T) > _LEAST_CLICKS / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(heavy, np.log(counts / counts.T), 0.0)
        relative = variances / counts**2
        weight = np.where(heavy, 1 / (relative + relative.T), 0.0)
    laplacian = np.diag(weight.sum(axis=1)) - weight
    total = (weight * ratio).sum(axis=1)
    rest = np.linalg.lstsq(laplacian[1:, 1:], total[1:], rcond=None)[0]
    return np.concatenate([[0.0], rest])


def _shown(pages: Iterable[Page]) -> tuple[np.ndarray, ...]:
    """Returns the columns of `_hashed`, of some queries if there are many."""
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []
    rows, limit, stream = 0, np.uint64(2**64 - 1), iter(pages)
    block = [Page("", [], [], [])]
    while block:  # the last one is empty
        block = list(islice(stream, _AT_ONCE))
        columns = _hashed(block)
        parts.append(columns)
        rows += len(columns[0])
        while rows > _MOST_ROWS:  # keeps half of the queries
            limit //= np.uint64(2)
            joined = [np.concatenate(c) for c in zip(*parts, strict=True)]
            kept = joined[0] <= limit
            parts = [tuple(c[kept] for c in joined)]  # type: ignore[list-item]
            rows = int(kept.sum())
    queries, keys, positions, clicks = (
        np.concatenate(c) for c in zip(*parts, strict=True)
    )
    kept = queries <= limit
    shown = (c[kept] for c in (queries, keys, positions))
    return *shown, clicks[kept].astype(np.float64)


def _hashed(
    block: list[Page],
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    queries, keys, positions, clicks = [], [], [], []
    words = normalize([page.query for page in block], "alphanumeric")
    for page, text in zip(block, words, strict=True):
        # Python's hashes are salted, which changes the part that is kept.
        query = _hash(text)
        for title, weight, position in zip(
            page.titles, page.weights, page.positions, strict=True
        ):
            if 1 <= position <= MOST_POSITIONS:
                queries.append(query)
                keys.append(_hash(f"{text}\t{title}"))
                positions.append(position)
                clicks.append(weight > 0)
    return (
        np.array(queries, np.uint64),
        np.array(keys, np.uint64),
        np.array(positions, np.uint8),
        np.array(clicks, np.bool_),
    )


def _hash(text: str) -> int:
    return int.from_bytes(
        blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big"
    )


def _moved(
    keys: np.ndarray, positions: np.ndarray, clicks: np.ndarray
) -> np.ndarray:
    """Adds the clicks of titles that a query has shown at two positions.

    Element [k, l] is the sum of n C_k / N_k over titles at k and l, with the
    clicks C and the impressions N: a title counts as n = N_k N_l / (N_k + N_l)
    impressions at both. With the sums come their variances: float `[2, P, P]`.
    """
    order = np.lexsort((positions, keys))
    keys, positions, clicks = keys[order], positions[order], clicks[order]
    first = np.ones(len(keys), bool)
    first[1:] = (keys[1:] != keys[:-1]) | (positions[1:] != positions[:-1])
    starts = np.flatnonzero(first)
    shown = np.diff(np.append(starts, len(keys))).astype(np.float64)
    clicked = np.add.reduceat(clicks, starts)
    keys, positions = keys[starts], positions[starts].astype(np.int64)
    size = MOST_POSITIONS + 1
    tables = np.zeros((2, size, size))
    for lag in range(1, MOST_POSITIONS):
        one = np.flatnonzero(keys[lag:] == keys[:-lag])
        if not len(one):
            break
        other = one + lag
        times = shown[one] * shown[other] / (shown[one] + shown[other])
        for here, there in ((one, other), (other, one)):
            cell = positions[here] * size + positions[there]
            rate = clicked[here] / shown[here]
            for table, value in zip(
                tables,
                (times * rate, times**2 * rate / shown[here]),
                strict=True,
            ):
                table += np.bincount(cell, value, size**2).reshape(size, size)
    return tables
