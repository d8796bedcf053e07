"""Keywords and topics: the words that active cells take up (section V-A)."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_lstm_dssm.analysis.activations import Activations, each_activations
from keras_lstm_dssm.encoders import TextEncoder

CELLS = 10
"""Most active cells that are looked at, as in the paper."""

CHANGE = 0.25
"""Least change of a cell that assigns it a word, see `assigned`."""

SHARE = 0.4
"""A keyword is assigned more than this share of the cells."""


class ActiveCell(NamedTuple):
    """A cell, counted from 0 within its network, and y at the text's end."""

    cell: int
    y: float


class Keyword(NamedTuple):
    """A word of Tables I and II.

    Attributes:
        word: The word.
        counts: Cells it is assigned to, for each direction of reading; None
            ("-") where it is the first word read.
        keyword: Whether every count there is exceeds the share; False where
            there is none.
    """

    word: str
    counts: tuple[int | None, ...]
    keyword: bool


def active_cells(found: Activations, cells: int = CELLS) -> list[ActiveCell]:
    """Finds the cells of one network that are most active at the end.

    Active is what is far from zero: the cosine knows no sign.

    Args:
        found: From `activations`; of a bidirectional encoder, `.backward`
            has the second network's.
        cells: How many, at most all.

    Returns:
        The most active first.

    Example:
    >>> active_cells(activations(encoder, "hotels in shanghai"), 2)
    [ActiveCell(cell=17, y=0.81), ActiveCell(cell=3, y=-0.78)]
    """
    order = np.argsort(-np.abs(found.final), kind="stable")[:cells]
    return [ActiveCell(int(cell), float(found.final[cell])) for cell in order]


def assigned(
    found: Activations, cells: int = CELLS, change: float = CHANGE
) -> np.ndarray:
    """Tells which words are assigned to which active cells.

    "Whenever there is a large enough change in cell activation value, we
    assume an important keyword has been detected" (section V-A2). The paper
    gives no number. Here a change is large enough when it is `change` times
    what the cell has at the end, |y(t) - y(t-1)| >= change |y(T)|, so that
    one threshold serves models of any scale.

    Args:
        found: Of one network, see `active_cells`.
        cells: Most active cells looked at.
        change: Threshold, a share of the final activation.

    Returns:
        bool `[words, all cells]`; False for cells that are not active and
        for the first word read, which changes every cell from zero.
    """
    active = [one.cell for one in active_cells(found, cells)]
    result = np.zeros(found.y.shape, bool)
    moved = np.abs(found.change[:, active])
    result[:, active] = moved >= change * np.abs(found.final[active])
    result[found.first] = False
    return result


def keywords(
    found: Activations,
    cells: int = CELLS,
    change: float = CHANGE,
    share: float = SHARE,
) -> list[Keyword]:
    """Counts for each word the active cells it is assigned to.

    Tables I and II of the paper. With a bidirectional encoder each network
    counts over its own active cells.

    Args:
        found: From `activations`.
        cells: Most active cells looked at.
        change: See `assigned`.
        share: Of the cells, which a keyword's counts exceed.

    Returns:
        One for each word, in the order of the words.

    Example:
    >>> keywords(activations(encoder, "hotels in shanghai"))[1]
    Keyword(word='in', counts=(0,), keyword=False)
    """
    columns = []
    for one in found.directions:
        column: list[int | None] = list(
            map(int, assigned(one, cells, change).sum(axis=1))
        )
        column[one.first] = None
        columns.append(column)
    least = share * min(cells, found.y.shape[1])
    rows = zip(*columns, strict=True)
    return [
        Keyword(word, counts, _exceed(counts, least))
        for word, counts in zip(found.words, rows, strict=True)
    ]


def _exceed(counts: Sequence[int | None], least: float) -> bool:
    known = [count for count in counts if count is not None]
    return bool(known) and min(known) > least


TOPIC_CELLS = 5
"""Most active cells of each query that are looked at, as in the paper."""


class TopicWord(NamedTuple):
    """A word that a cell took up; `query` is its place among the queries."""

    word: str
    query: int


def topics(
    encoder: TextEncoder,
    queries: Sequence[str],
    cells: int = TOPIC_CELLS,
    change: float = CHANGE,
) -> dict[int, list[TopicWord]]:
    """Collects the words assigned to the most active cells of each query.

    Section V-A3 and Table III of the paper.

    Args:
        encoder: A recurrent one.
        queries: The texts.
        cells: Most active cells looked at in each, of each network.
        change: See `assigned`.

    Returns:
        Cell -> its words, the cell with the most words first. A cell is its
        place in the sentence vector: with a bidirectional encoder the cells
        that read from the right follow the others.

    Raises:
        InputError: The encoder has no recurrence (DSSM, CLSM).

    Example:
    >>> topics(encoder, ["fried chicken", "torre de pizza"])
    {26: [TopicWord(word='chicken', query=0), TopicWord(word='pizza', query=1)]}
    """
    found: dict[int, list[TopicWord]] = {}
    for query, read in enumerate(each_activations(encoder, queries)):
        both = [assigned(one, cells, change) for one in read.directions]
        for place, cell in np.argwhere(np.hstack(both)):
            word = TopicWord(read.words[place], query)
            found.setdefault(int(cell), []).append(word)
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))
