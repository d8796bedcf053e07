"""Keywords and topics: the words that active cells respond to (section V-A)."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from keras_lstm_dssm.analysis.activations import Activations, each_activations
from keras_lstm_dssm.encoders import TextEncoder
from keras_lstm_dssm.settings.reports import (
    ACTIVE_CELLS,
    KEYWORD_SHARE,
    LEAST_CHANGE,
    TOPIC_CELLS,
)


class ActiveCell(NamedTuple):
    """A cell, counted from 0 within its network, and its final output y.

    Example:
    >>> from keras_lstm_dssm.analysis import activations
    >>> read = activations(dssm.LSTMEncoder(cells=4), "hotels in shanghai")
    >>> first, second = active_cells(read, cells=2)
    >>> abs(first.y) >= abs(second.y)
    True
    """

    cell: int
    y: float


class Keyword(NamedTuple):
    """A word of a text, as in Tables I and II of the paper.

    Attributes:
        word: The word.
        counts: The number of active cells that the word is assigned to, for
            each direction of reading; None where the word is the first one
            read.
        keyword: Whether the word is a keyword: whether every count exceeds
            the share of the cells. A word without a count is not a keyword.

    Example:
    >>> from keras_lstm_dssm.analysis import activations
    >>> read = activations(dssm.LSTMEncoder(cells=4), "hotels in shanghai")
    >>> [(found.word, found.keyword) for found in keywords(read)][0]
    ('hotels', False)
    """

    word: str
    counts: tuple[int | None, ...]
    keyword: bool


def active_cells(
    read: Activations, cells: int = ACTIVE_CELLS
) -> list[ActiveCell]:
    """Return the most active cells of one network at the end of a text.

    Cells are ranked by the absolute value of y, because a strongly negative
    output adds as much to a cosine as a strongly positive one.

    Args:
        read: From `activations`. Of a bidirectional encoder, it holds the
            network that reads from the left, and `read.backward` the other.
        cells: The number of cells, by default 10; at most all are returned.

    Returns:
        The cells, the most active one first.

    Example:
    >>> active_cells(activations(encoder, "hotels in shanghai"), 2)
    [ActiveCell(cell=17, y=0.81), ActiveCell(cell=3, y=-0.78)]
    """
    order = np.argsort(-np.abs(read.final_y), kind="stable")[:cells]
    return [ActiveCell(int(cell), float(read.final_y[cell])) for cell in order]


def assigned(
    read: Activations, cells: int = ACTIVE_CELLS, change: float = LEAST_CHANGE
) -> np.ndarray:
    """Return which words are assigned to which active cells.

    "Whenever there is a large enough change in cell activation value, we
    assume an important keyword has been detected" (section V-A2). The paper
    gives no number. Here a change is large enough when
    |y(t) - y(t-1)| >= change |y(T)|, where y(T) is the cell's final output,
    so that one threshold serves models of any scale.

    Args:
        read: The activations of one network, see `active_cells`.
        cells: The number of most active cells.
        change: The threshold, as a share of the final output.

    Returns:
        bool `[words, all cells]`; False for cells that are not among the
        most active, and for the first word read, which changes every cell
        from zero.
    """
    active = [cell for cell, _ in active_cells(read, cells)]
    result = np.zeros(read.y.shape, bool)
    changes = np.abs(read.change[:, active])
    result[:, active] = changes >= change * np.abs(read.final_y[active])
    result[read.first_read] = False
    return result


def keywords(
    read: Activations,
    cells: int = ACTIVE_CELLS,
    change: float = LEAST_CHANGE,
    share: float = KEYWORD_SHARE,
) -> list[Keyword]:
    """Count for each word the active cells that it is assigned to.

    The counts are those of Tables I and II of the paper. Each network of a
    bidirectional encoder has its own active cells.

    Args:
        read: From `activations`.
        cells: The number of most active cells.
        change: The threshold of `assigned`.
        share: The share of the active cells that the count of a keyword
            exceeds.

    Returns:
        A `Keyword` for each word, in the order of the words.

    Example:
    >>> keywords(activations(encoder, "hotels in shanghai"))[1]
    Keyword(word='in', counts=(0,), keyword=False)
    """
    columns = []
    for network in read.directions:
        counts = assigned(network, cells, change).sum(axis=1)
        column: list[int | None] = list(map(int, counts))
        column[network.first_read] = None
        columns.append(column)
    least = share * min(cells, read.y.shape[1])
    words = []
    for word, *row in zip(read.words, *columns, strict=True):
        known = [count for count in row if count is not None]
        keyword = min(known, default=0) > least
        words.append(Keyword(word, tuple(row), keyword))
    return words


class TopicWord(NamedTuple):
    """A word that is assigned to a cell.

    Attributes:
        word: The word.
        query: The position, among the queries, of the query that has it.

    Example:
    >>> words = topics(dssm.LSTMEncoder(cells=4), ["hex bolt", "wood glue"])
    >>> found = {word for of_cell in words.values() for word, query in of_cell}
    >>> found <= {"hex", "bolt", "wood", "glue"}
    True
    """

    word: str
    query: int


def topics(
    encoder: TextEncoder,
    queries: Sequence[str],
    cells: int = TOPIC_CELLS,
    change: float = LEAST_CHANGE,
) -> dict[int, list[TopicWord]]:
    """Collect the words that are assigned to the active cells of queries.

    See section V-A3 and Table III of the paper.

    Args:
        encoder: A recurrent encoder.
        queries: The texts to read.
        cells: The number of most active cells of each query, and of each
            network of a bidirectional encoder.
        change: The threshold of `assigned`.

    Returns:
        Cell -> its words, the cell with the most words first. A cell is
        counted from 0 in the text's vector: in a bidirectional encoder, the
        cells of the backward network follow those of the forward network.

    Raises:
        InputError: The encoder is not recurrent (DSSM, CLSM).

    Example:
    >>> topics(encoder, ["fried chicken", "torre de pizza"])
    {26: [TopicWord(word='chicken', query=0), TopicWord(word='pizza', query=1)]}
    """
    topic_words: dict[int, list[TopicWord]] = {}
    for query, read in enumerate(each_activations(encoder, queries)):
        words = [assigned(part, cells, change) for part in read.directions]
        for position, cell in np.argwhere(np.hstack(words)):
            word = TopicWord(read.words[position], query)
            topic_words.setdefault(int(cell), []).append(word)
    return dict(sorted(topic_words.items(), key=lambda item: -len(item[1])))


def distinctive_words(
    groups: Sequence[Iterable[str]], most: int
) -> list[list[tuple[str, int]]]:
    """Choose the words that distinguish each group from the others.

    Words are ranked by count^2 / (count in all groups + 5): words that are
    frequent in the group and rare in the others. Ranked by the count alone,
    every group would have the same stop words; without the 5, words that
    occur once would come first.

    Args:
        groups: The words of each group, repeated as often as they occur.
        most: The largest number of words for each group.

    Returns:
        For each group, its words and their counts in it, the best first.

    Example:
    >>> distinctive_words([["the", "fft", "fft"], ["the", "csv"]], 1)
    [[('fft', 2)], [('csv', 1)]]
    """
    counts = [Counter(group) for group in groups]
    total: Counter[str] = sum(counts, Counter())

    def rank(item: tuple[str, int]) -> tuple[float, str]:
        word, count = item
        return -(count**2) / (total[word] + 5), word

    return [sorted(group.items(), key=rank)[:most] for group in counts]
