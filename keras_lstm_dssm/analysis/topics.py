"""Topics: which words a cell takes up, over many texts."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_lstm_dssm.analysis.activations import each_activations
from keras_lstm_dssm.analysis.keywords import CHANGE, assigned
from keras_lstm_dssm.encoders import TextEncoder

CELLS = 5
"""Most active cells of each query that are looked at, as in the paper."""


class TopicWord(NamedTuple):
    """A word that a cell took up; `query` is its place among the queries."""

    word: str
    query: int


def topics(
    encoder: TextEncoder,
    queries: Sequence[str],
    cells: int = CELLS,
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
